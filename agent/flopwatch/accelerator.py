"""What an accelerator can do: dense peaks by number format, and the part of it that a MIG instance holds."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

Dtype: TypeAlias = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"]
DTYPES: tuple[Dtype, ...] = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8")
_SPELLINGS: Mapping[str, Dtype] = MappingProxyType({
    "float64": "fp64", "double": "fp64", "float32": "fp32", "float": "fp32", "tfloat32": "tf32",
    "bfloat16": "bf16", "bf16-mixed": "bf16", "bf16-true": "bf16", "bf16_mixed": "bf16", "amp_bf16": "bf16",
    "float16": "fp16", "half": "fp16", "16-mixed": "fp16", "16-true": "fp16", "amp_fp16": "fp16",
    "float8": "fp8", "float8_e4m3fn": "fp8", "e4m3": "fp8", "hybrid": "fp8", "fp8_hybrid": "fp8", "mxfp8": "fp8",
    "amp_fp8": "fp8", "fp8-cs": "fp8", "fp8-ds": "fp8", "fp8-mx": "fp8", "fp8_cs": "fp8", "fp8_mx": "fp8",
    "nvfp4": "fp4", "mxfp4": "fp4", "float4": "fp4",
})  # fmt: skip


def dtype_of(text: str) -> Dtype | None:
    """The number format that a trainer's word means; None when the word is not known."""
    word = text.strip().lower().removeprefix("torch.").removeprefix("jnp.")
    exact: Dtype | None = next((dtype for dtype in DTYPES if dtype == word), None)
    return exact or _SPELLINGS.get(word)


@dataclass(frozen=True, kw_only=True, slots=True)
class MigSlice:
    """The part of a GPU that a MIG instance holds."""

    profile: str
    sm_count: int
    of_sm_count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Accelerator:
    """One product, with dense peaks from named sources; what is not verified is not there.

    ``tflops``: dense TFLOP/s (int8: TOP/s) by number format. ``mig_sm_counts``: SMs of each MIG profile.
    """

    name: str
    vendor: str
    architecture: str
    nvml_names: tuple[str, ...]
    tflops: Mapping[Dtype, float] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    sm_count: int | None = None
    mig_sm_counts: Mapping[str, int] = field(default_factory=dict)
    peak_clock_hertz: float | None = None
    """The SM clock at which the peak holds; below the maximum clock, so short kernels can exceed 100 %."""
    sources: tuple[str, ...] = ()
    unverified: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    slice: MigSlice | None = None
    site_override: bool = False

    def peak_flops(self, dtype: str) -> float | None:
        """Dense FLOP/s in a number format, or None: format unknown, not supported, or not verified.

        A MIG instance has its share by SMs, never by sevenths.
        """
        known = dtype_of(dtype)
        if known is None or known not in self.tflops:
            return None
        whole = self.tflops[known] * 1e12
        return whole if self.slice is None else whole * self.slice.sm_count / self.slice.of_sm_count

    def sliced(
        self, profile: str, sm_count: int | None = None, of_sm_count: int | None = None
    ) -> "Accelerator | None":
        """The MIG instance of a profile such as ``1g.10gb``; None when its SMs are not known.

        ``sm_count`` of the instance and ``of_sm_count`` of the whole GPU, as the driver reports them, win over
        the table.
        """
        size = profile.split("+", maxsplit=1)[0].strip()
        sms = sm_count or self.mig_sm_counts.get(size) or self.mig_sm_counts.get(size.split(".")[0])
        whole = of_sm_count or self.sm_count
        if sms is None or whole is None or sms > whole:
            return None
        return replace(self, slice=MigSlice(profile=profile, sm_count=sms, of_sm_count=whole))

    @property
    def source(self) -> str:
        """Where the peaks are from, in one line."""
        return self.sources[0] if self.site_override else "; ".join(self.sources)

    @property
    def fastest_dtype(self) -> Dtype | None:
        """The number format with the highest floating-point peak."""
        floats = [dtype for dtype in self.tflops if dtype != "int8"]
        return max(floats, key=lambda dtype: self.tflops[dtype], default=None)


_MIG_SUFFIX = re.compile(r"^(?P<device>.+) MIG (?P<profile>\d+(?:c\.\d+)?g\.\d+gb(?:\+\S+)?)$")


def split_mig(nvml_name: str) -> tuple[str, str | None]:
    """A device's name and, for a MIG instance, its profile: ``NVIDIA H100 80GB HBM3 MIG 1g.10gb``."""
    match = _MIG_SUFFIX.match(nvml_name)
    return (match["device"], match["profile"]) if match else (nvml_name, None)
