"""The GPUs an MFU is measured against: how many, which, and their peak."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from flopwatch import accelerators
from flopwatch.query import GpusBasis
from flopwatch_collector.compute.runs import Run
from flopwatch_collector.model import Gpu, JobRecord, LeaseRecord

EIGHT_BIT_AND_LESS = frozenset({"fp8", "fp4"})
"""Mixed runs of these do part of their matmuls in bf16: their MFU is against the bf16 peak."""
ASSUMED = ("bf16", "fp16")
Model = tuple[str, str | None, int | None]
"""(NVML name, MIG profile, SMs of the instance)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Devices:
    """The denominator of an MFU; ``reason`` says why there is none."""

    gpus: int | None = None
    gpus_basis: GpusBasis | None = None
    observed: int = 0
    leased: int = 0
    """GPUs known here to be leased; fewer than ``gpus`` where nodes have no agent."""
    model: str | None = None
    peak_flops: float | None = None
    """Dense FLOP/s of one GPU, the mean over models weighted by GPUs."""
    peak_source: str | None = None
    dtype: str | None = None
    dtype_basis: str | None = None
    reason: str | None = None

    @property
    def total_flops(self) -> float | None:
        """Peak FLOP/s of all GPUs together."""
        if self.gpus is None or self.peak_flops is None:
            return None
        return self.gpus * self.peak_flops


def devices_of(job: JobRecord, run: Run, leases: Iterable[LeaseRecord], gpus: Mapping[int, Gpu]) -> Devices:
    """The job's GPUs: the trainer's world size, else the lease, else those observed.

    The count of observed ones is of GPUs known here that a process of the job uses, else that it leases.
    """
    leased = {number for lease in leases if lease.job == job.number for number in lease.gpus}
    for part in job.parts:
        leased.update(part.leased_gpus or ())
    used = {number for part in job.parts for number in part.gpus}
    seen = [gpus[number] for number in sorted(used or leased) if number in gpus]
    count, basis = _count(run.world_size or job.world_size, len(leased), len(seen))
    models = Counter((gpu.name, gpu.mig_profile, gpu.sm_count if gpu.mig_profile else None) for gpu in seen)
    model = ", ".join(sorted({gpu.name for gpu in seen})) or None
    dtype, dtype_basis, peak, source, reason = _peak(run, models)
    return Devices(
        gpus=count, gpus_basis=basis, observed=len(seen), leased=len(leased), model=model, peak_flops=peak,
        peak_source=source, dtype=dtype, dtype_basis=dtype_basis, reason=reason,
    )  # fmt: skip


def _count(world: int | None, leased: int, observed: int) -> tuple[int | None, GpusBasis | None]:
    if world:
        return world, "world_size"
    if leased:
        return leased, "lease"
    return (observed, "observed") if observed else (None, None)


_Peak = tuple[str | None, str | None, float | None, str | None, str | None]


def _peak(run: Run, models: Mapping[Model, int]) -> _Peak:
    """(dtype, its basis, peak, its source, reason): for the run's dtype, else the best one assumed."""
    if run.dtype:
        known = accelerators.dtype_of(run.dtype)
        wanted: Sequence[str] = ("bf16",) if known in EIGHT_BIT_AND_LESS else (known or run.dtype,)
        basis: str | None = run.dtype_basis
    else:
        wanted, basis = ASSUMED, "assumed"
    if not models:
        return wanted[0], basis, None, None, "unknown_gpu"
    for dtype in wanted:
        peak, source, reason = _mean_peak(models, dtype)
        if peak is not None:
            return dtype, basis, peak, source, None
        if reason == "unknown_gpu":
            return dtype, basis, None, None, reason
    return wanted[0], basis, None, None, "no_peak_for_dtype"


def _mean_peak(models: Mapping[Model, int], dtype: str) -> tuple[float | None, str | None, str | None]:
    """(peak, source, reason) over models weighted by GPUs; one model that is unknown leaves no peak."""
    total = 0.0
    sources: list[str] = []
    for (name, profile, sm_count), count in sorted(models.items(), key=str):
        device = accelerators.by_name(name)
        if device is not None and profile is not None:
            device = device.sliced(profile, sm_count)
        if device is None:
            return None, None, "unknown_gpu"
        peak = device.peak_flops(dtype)
        if peak is None:
            return None, None, "no_peak_for_dtype"
        total += peak * count
        sources.append(device.source)
    return total / sum(models.values()), "; ".join(dict.fromkeys(sources)), None
