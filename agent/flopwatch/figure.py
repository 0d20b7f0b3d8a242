"""A figure of the answers with everything needed to check it: basis, arithmetic, doubts, standing."""

from dataclasses import dataclass
from typing import Any, Literal

Basis = Literal["steps+shape", "steps+params", "steps+reported", "hardware"]
GpusBasis = Literal["world_size", "lease", "observed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FindingInfo:
    """A doubt shown beside a figure."""

    code: str
    text: str
    values: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class MfuFigure:
    """An MFU with everything needed to check it.

    value_ratio = flops_per_token x tokens_per_second / (gpus x peak_flops). With basis ``hardware`` it is an
    estimate of the use of the hardware and no MFU: tensor_active_ratio x SM clock / clock of the peak.
    """

    value_ratio: float | None
    palm_ratio: float | None
    convention: str
    basis: Basis | None
    reason: str | None
    """Why there is no measured value: ``waiting``, ``no_steps``, ``no_step_time``, ``no_shape``,
    ``no_sequence_length``, ``no_encoder_tokens``, ``no_tokens``, ``unknown_gpu``, ``no_peak_for_dtype``."""
    flops_per_token: float | None
    palm_flops_per_token: float | None
    tokens_per_second: float | None
    gpus: int | None
    gpus_basis: GpusBasis | None
    gpus_observed: int
    gpu_model: str | None
    peak_flops: float | None
    """Dense FLOP/s of one GPU (the mean over models, weighted by GPUs)."""
    peak_source: str | None
    dtype: str | None
    dtype_basis: str | None
    shape_origin: str | None
    steps: int
    window_start_seconds: float | None
    window_end_seconds: float | None
    reported_ratio: float | None = None
    """MFU as the trainer prints it."""
    reported_flops_per_gpu: float | None = None
    """FLOP/s of one GPU as the trainer prints it."""
    tokens: float | None = None
    """Trained tokens of the window, padding left out."""
    padded_tokens: float | None = None
    """The same with padding, where it is known."""
    left_out: tuple[str, ...] = ()
    """Second stacks of the model that are not counted because their tokens are not known: ``vision``."""
    run_dtype: str | None = None
    """Number format the run uses where it is narrower than the peak's: ``fp8`` or ``fp4``."""
    run_dtype_peak_flops: float | None = None
    run_dtype_ratio: float | None = None
    """The same work against the dense peak of ``run_dtype``."""
    gpus_mean: float | None = None
    """GPUs over the window where their count changed in it; else ``None``, and ``gpus`` holds."""
    clock_basis: Literal["peak_clock", "max_clock"] | None = None
    """With basis ``hardware``: over which clock; ``max_clock`` makes it a lower bound."""
    tensor_active_ratio: float | None = None
    """With basis ``hardware``: mean tensor activity of the window."""
    sm_clock_hertz: float | None = None
    """With basis ``hardware``: mean SM clock while tensor pipes were active."""
    clock_hertz: float | None = None
    """With basis ``hardware``: the clock it is divided by (the mean over models, weighted by their peaks)."""

    @property
    def measured_ratio(self) -> float | None:
        """The MFU where it is one; ``None`` for a hardware estimate."""
        return None if self.basis == "hardware" else self.value_ratio


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """An MFU against the practical ceiling and published runs of the same class on the same GPU."""

    ratio: float
    """The MFU against the dense peak of ``dtype``, which is what published figures are against."""
    product: str | None
    dtype: str | None
    ceiling_low_ratio: float
    ceiling_high_ratio: float
    model_class: str | None = None
    """``dense_below_3b``, ``dense_3b_to_20b``, ``dense_20b_to_100b``, ``dense_above_100b``, ``mixture``, ``hybrid``;
    ``None`` while the shape is not known."""
    published_low_ratio: float | None = None
    published_high_ratio: float | None = None
    published_rows: int | None = None
    place: Literal["above", "upper", "lower", "below"] | None = None
    """Where it is in the published range."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Term:
    """One term of the arithmetic of an MFU, with its number filled in."""

    symbol: str
    meaning: str
    value: float | int | str | None
    unit: str
