"""Model FLOPs utilisation from work, time and peaks; the hardware's own estimate; where a figure stands.

Pure arithmetic, shared by the collector and ``flopwatch mfu``. A ratio is 0 to 1, never percent; None is unknown.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from flopwatch.accelerator import Accelerator

PRACTICAL_CEILING = (0.78, 0.87)
"""Best measured matmul over the dense bf16 peak: H100 794/989 and B200 1745/2250 at the low end, A100 at the high."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """Trained tokens and what one of them costs, by the default and by PaLM's convention."""

    tokens: float
    flops_per_token: float
    palm_flops_per_token: float | None = None

    def __post_init__(self) -> None:
        if self.tokens < 0 or self.flops_per_token <= 0:
            raise ValueError(
                f"work has tokens {self.tokens!r} and flops_per_token {self.flops_per_token!r}; "
                "allowed: 0 or more, and above 0"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldGpus:
    """GPUs of one model that a run held: ``peak_flops`` is the dense FLOP/s of one of them, None unknown."""

    gpu_seconds: float
    peak_flops: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Mfu:
    """An MFU by the default convention and by PaLM's, over the same peaks and GPU time."""

    ratio: float
    palm_ratio: float | None
    flops_per_gpu_second: float
    """Achieved model FLOP/s of one GPU."""
    peak_flops: float
    """Mean dense FLOP/s of a GPU, weighted by the GPU-seconds each model was held."""
    gpu_seconds: float


def mfu_of(work: Work, held: Iterable[HeldGpus]) -> Mfu | None:
    """FLOPs of the work over the FLOPs that the held GPUs could have done at their dense peaks.

    Each GPU-second counts with the peak of the GPU that gave it, so jobs over several models and jobs whose
    GPU count changes are weighted rightly. None when no GPU time was held or a peak is not known.
    """
    parts = tuple(part for part in held if part.gpu_seconds > 0)
    gpu_seconds = sum(part.gpu_seconds for part in parts)
    possible = 0.0
    for part in parts:
        if part.peak_flops is None or part.peak_flops <= 0:
            return None
        possible += part.gpu_seconds * part.peak_flops
    if possible <= 0:
        return None
    done = work.tokens * work.flops_per_token
    palm = work.palm_flops_per_token
    return Mfu(
        ratio=done / possible,
        palm_ratio=None if palm is None else work.tokens * palm / possible,
        flops_per_gpu_second=done / gpu_seconds,
        peak_flops=possible / gpu_seconds,
        gpu_seconds=gpu_seconds,
    )


def mfu_ratio(
    flops_per_token: float, *, tokens: float, seconds: float, gpus: float, peak_flops: float
) -> float:
    """flops_per_token * tokens / (seconds * gpus * peak_flops).

    Raises:
        ValueError: seconds, gpus or peak_flops is not above 0.
    """
    for name, value in (("seconds", seconds), ("gpus", gpus), ("peak_flops", peak_flops)):
        if not value > 0:
            raise ValueError(f"{name} is {value!r}; allowed: above 0")
    return flops_per_token * tokens / (seconds * gpus * peak_flops)


def fleet_ratio(parts: Iterable[tuple[float, float]]) -> float | None:
    """Weighted mean of (ratio, weight) pairs: weight is FLOPs possible, or money; None without any weight."""
    known = [(ratio, weight) for ratio, weight in parts if weight > 0]
    total = sum(weight for _, weight in known)
    return sum(ratio * weight for ratio, weight in known) / total if total > 0 else None


@dataclass(frozen=True, kw_only=True, slots=True)
class HardwareEstimate:
    """Overall FLOP utilisation from counters; ``clock_basis`` ``max_clock`` makes it a lower bound."""

    ratio: float
    clock_basis: Literal["peak_clock", "max_clock"]


def hardware_estimate(
    accelerator: Accelerator,
    *,
    tensor_active_ratio: float,
    sm_clock_hertz: float,
    max_sm_clock_hertz: float | None = None,
) -> HardwareEstimate | None:
    """Tensor-pipe activity * SM clock / clock of the peak: an estimate for jobs without steps, never an MFU.

    None when neither the clock of the peak nor the maximum clock is known. The maximum clock is above the clock
    of the peak, so with it the estimate is a lower bound.

    Source: arXiv 2605.20799 (overall FLOP utilisation), which reports agreement within about 2 percentage
    points after correction for tile quantisation, and r = 0.78 over 608 jobs. Its limits:

    - the pipe counts as active at any rate: instructions that cannot reach the peak rate read too high;
    - it counts what runs: recompute, padding, adapters, experts' padding tiles, evaluation, so it is nearer
      to HFU than to MFU;
    - it does not tell number formats apart: fp8 and bf16 matmuls of one step share the counter while their
      peaks differ by two;
    - partial tiles count as whole ones;
    - it is a mean over samples, so short windows and idle gaps between samples are not resolved.
    """
    if accelerator.peak_clock_hertz is not None:
        ratio = tensor_active_ratio * sm_clock_hertz / accelerator.peak_clock_hertz
        return HardwareEstimate(ratio=ratio, clock_basis="peak_clock")
    if max_sm_clock_hertz is not None and max_sm_clock_hertz > 0:
        ratio = tensor_active_ratio * sm_clock_hertz / max_sm_clock_hertz
        return HardwareEstimate(ratio=ratio, clock_basis="max_clock")
    return None
