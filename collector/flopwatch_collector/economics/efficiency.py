"""rho = E_own / E_cloud with E = MFU x goodput x peak: cloud GPU-hours that replace one own used GPU-hour."""

from dataclasses import dataclass
from typing import Literal

from flopwatch_collector.config_costs import EfficiencySettings

FACTORS = ("mfu", "goodput", "peak_tflops")


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What a collector measured of the own fleet; ``None`` is not known."""

    mfu: float | None = None
    """Step MFU."""
    goodput: float | None = None
    """Kept step time over billable time, of jobs whose steps are known."""
    peak_tflops: float | None = None
    coverage_ratio: float | None = None
    """Share of billable time whose job's steps are known."""
    billed_per_used: float | None = None
    """Leased over billable GPU time: what a cloud's bill would have held."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Efficiency:
    """Both sides, and their ratio."""

    ratio: float
    """rho; 1 where neither side is known."""
    basis: Literal["none", "assumed", "measured"]
    """Where the cloud's figures are from; ``none``: nothing could be compared, so rho is 1."""
    own: dict[str, float | None]
    """``mfu``, ``goodput``, ``peak_tflops``."""
    cloud: dict[str, float | None]
    own_sources: dict[str, Literal["file", "measured", "unknown"]]
    compared: tuple[str, ...]
    """Factors known on both sides: rho is their product."""
    one_sided: tuple[str, ...]
    """Factors known on one side only: they are left out of rho."""

    @property
    def own_flops(self) -> float | None:
        """Kept FLOP/s of one own GPU while it is used."""
        return _flops(self.own)

    @property
    def cloud_flops(self) -> float | None:
        """Kept FLOP/s of one GPU in the cloud."""
        return _flops(self.cloud)


def efficiency_of(settings: EfficiencySettings | None, measured: Measured | None = None) -> Efficiency:
    """The efficiency of both sides; what the file leaves out of the own one is what was measured.

    A peak that is known on one side only is taken for both: the same GPU.
    """
    told, seen = settings or EfficiencySettings(), measured or Measured()
    file: dict[str, float | None] = {name: getattr(told, f"own_{name}") for name in FACTORS}
    own = {name: file[name] if file[name] is not None else getattr(seen, name) for name in FACTORS}
    cloud: dict[str, float | None] = {name: getattr(told, f"cloud_{name}") for name in FACTORS}
    peaks = (own["peak_tflops"], cloud["peak_tflops"])
    if None in peaks:
        own["peak_tflops"] = cloud["peak_tflops"] = next((peak for peak in peaks if peak is not None), None)
    ratio, compared, one_sided = 1.0, [], []
    for name in FACTORS:
        mine, theirs = own[name], cloud[name]
        if mine is not None and theirs is not None:
            ratio *= mine / theirs
            compared.append(name)
        elif mine is not None or theirs is not None:
            one_sided.append(name)
    told_by_file = None not in peaks or any(name != "peak_tflops" for name in compared)
    return Efficiency(
        ratio=ratio,
        basis=told.cloud_basis if told_by_file else "none",
        own=own,
        cloud=cloud,
        own_sources={name: _source(file[name], own[name]) for name in FACTORS},
        compared=tuple(compared),
        one_sided=tuple(one_sided),
    )


def _source(file: float | None, used: float | None) -> Literal["file", "measured", "unknown"]:
    if file is not None:
        return "file"
    return "unknown" if used is None else "measured"


def _flops(side: dict[str, float | None]) -> float | None:
    mfu, goodput, peak = (side[name] for name in FACTORS)
    if mfu is None or goodput is None or peak is None:
        return None
    return mfu * goodput * peak * 1e12
