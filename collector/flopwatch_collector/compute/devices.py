"""The GPUs an MFU is measured against: how many, which, and their peak."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from flopwatch import accelerators
from flopwatch.accelerators import Accelerator
from flopwatch.query import GpusBasis
from flopwatch_collector.compute.held import Held, held_of
from flopwatch_collector.compute.runs import Run
from flopwatch_collector.model import Gpu, JobRecord, LeaseRecord

EIGHT_BIT_AND_LESS = frozenset({"fp8", "fp4"})
"""Mixed runs of these do part of their matmuls in bf16: their MFU is against the bf16 peak."""
ASSUMED = ("bf16", "fp16")
NEWEST_SECONDS = 300.0
"""Leases that ended within this time of the last one of an ended job are its last GPUs."""
Model = tuple[str, str | None, int | None]
"""(NVML name, MIG profile, SMs of the instance)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Devices:
    """The denominator of an MFU; ``reason`` says why there is none."""

    gpus: int | None = None
    gpus_basis: GpusBasis | None = None
    observed: int = 0
    leased: int = 0
    """GPUs known here to be leased now; fewer than ``gpus`` where nodes have no agent."""
    model: str | None = None
    peak_flops: float | None = None
    """Dense FLOP/s of one GPU, the mean over models weighted by GPUs."""
    peak_source: str | None = None
    dtype: str | None = None
    """Number format of the peak."""
    dtype_basis: str | None = None
    reason: str | None = None
    run_dtype: str | None = None
    """Number format the run uses, where it is narrower than that of the peak: fp8 or fp4."""
    run_dtype_peak_flops: float | None = None
    """Dense FLOP/s of one GPU in ``run_dtype``."""
    kinds: tuple[tuple[Accelerator, int], ...] = ()
    """The products and how many GPUs of each."""
    held: Held = field(default_factory=Held)
    """GPUs leased over time, with their peaks."""

    @property
    def total_flops(self) -> float | None:
        """Peak FLOP/s of all GPUs together."""
        if self.gpus is None or self.peak_flops is None:
            return None
        return self.gpus * self.peak_flops

    @property
    def product(self) -> Accelerator | None:
        """The one product that all GPUs are; None when they differ or are not known."""
        return self.kinds[0][0] if len(self.kinds) == 1 else None

    def mean_peak(self, dtype: str) -> float | None:
        """Dense FLOP/s of one GPU in another number format, weighted by GPUs; None when any has none."""
        peaks = [(kind.peak_flops(dtype), count) for kind, count in self.kinds]
        known = [(peak, count) for peak, count in peaks if peak is not None]
        if not known or len(known) < len(peaks):
            return None
        return sum(peak * count for peak, count in known) / sum(count for _, count in known)


def devices_of(
    job: JobRecord,
    run: Run,
    leases: Iterable[LeaseRecord],
    gpus: Mapping[int, Gpu],
    site: Iterable[Accelerator] = (),
) -> Devices:
    """The job's GPUs: the trainer's world size, else the lease, else those observed.

    The count of observed ones is of GPUs known here that a process of the job uses, else that it leases, now or
    when it ended. ``site``: GPU models with the site's own peaks.
    """
    own = [lease for lease in leases if lease.job == job.number]
    leased = {number for lease in _newest(own) for number in lease.gpus}
    parts = [part for part in job.parts if part.end_seconds is None] or list(job.parts)
    for part in parts:
        leased.update(part.leased_gpus or ())
    used = {number for part in parts for number in part.gpus}
    seen = [gpus[number] for number in sorted(used or leased) if number in gpus]
    count, basis = _count(run.world_size or job.world_size, len(leased), len(seen))
    found = _Peaks(run, Counter(_model(gpu) for gpu in seen), tuple(site))
    return Devices(
        gpus=count, gpus_basis=basis, observed=len(seen), leased=len(leased),
        model=", ".join(sorted({gpu.name for gpu in seen})) or None, peak_flops=found.peak,
        peak_source=found.source, dtype=found.dtype, dtype_basis=run.dtype_basis if run.dtype else "assumed",
        reason=found.reason, run_dtype=found.run_dtype, run_dtype_peak_flops=found.mean(found.run_dtype)[0],
        kinds=found.kinds, held=_held(own, gpus, found),
    )  # fmt: skip


def _model(gpu: Gpu) -> Model:
    return gpu.name, gpu.mig_profile, gpu.sm_count if gpu.mig_profile else None


def _newest(leases: Sequence[LeaseRecord]) -> list[LeaseRecord]:
    """The leases that last, else those that ended last."""
    lasting = [lease for lease in leases if lease.end_seconds is None]
    ends = [lease.end_seconds for lease in leases if lease.end_seconds is not None]
    if lasting or not ends:
        return lasting
    return [lease for lease in leases if (lease.end_seconds or 0.0) >= max(ends) - NEWEST_SECONDS]


def _held(leases: Sequence[LeaseRecord], gpus: Mapping[int, Gpu], found: "_Peaks") -> Held:
    """GPUs over time; nothing while a peak is not known."""
    if found.peak is None:
        return Held()
    by_model: dict[Model, float | None] = {}
    peaks: dict[int, float] = {}
    for number in {number for lease in leases for number in lease.gpus}:
        gpu = gpus.get(number)
        if gpu is not None:
            model = _model(gpu)
            if model not in by_model:
                by_model[model] = found.of(model)
            peaks[number] = by_model[model] or found.peak
    return held_of(leases, peaks)


def _count(world: int | None, leased: int, observed: int) -> tuple[int | None, GpusBasis | None]:
    if world:
        return world, "world_size"
    if leased:
        return leased, "lease"
    return (observed, "observed") if observed else (None, None)


class _Peaks:
    """The peak of a run's GPUs in its number format, else in the best one assumed."""

    def __init__(self, run: Run, models: Mapping[Model, int], site: tuple[Accelerator, ...]) -> None:
        self._site = site
        self._models = models
        known = accelerators.dtype_of(run.dtype) if run.dtype else None
        self.run_dtype = known if known in EIGHT_BIT_AND_LESS else None
        wanted: Sequence[str] = ASSUMED
        if run.dtype:
            wanted = ("bf16",) if self.run_dtype is not None else (known or run.dtype,)
        devices = [(self._device(model), count) for model, count in sorted(models.items(), key=str)]
        self.kinds = tuple((device, count) for device, count in devices if device is not None)
        self.reason: str | None = "unknown_gpu" if len(self.kinds) < max(1, len(models)) else None
        self.dtype, self.peak, self.source = wanted[0], None, None
        for dtype in wanted if self.reason is None else ():
            self.peak, self.source = self.mean(dtype)
            if self.peak is not None:
                self.dtype = dtype
                break
        else:
            self.reason = self.reason or "no_peak_for_dtype"

    def _device(self, model: Model) -> Accelerator | None:
        name, profile, sm_count = model
        device = accelerators.by_name(name, self._site)
        return device.sliced(profile, sm_count) if device is not None and profile is not None else device

    def of(self, model: Model) -> float | None:
        """Dense FLOP/s of one GPU of a model in the format of the peak."""
        device = self._device(model)
        return device.peak_flops(self.dtype) if device is not None else None

    def mean(self, dtype: str | None) -> tuple[float | None, str | None]:
        """(peak, its source) over models weighted by GPUs; one model without it leaves none."""
        if dtype is None or self.reason == "unknown_gpu":
            return None, None
        peaks = [(kind.peak_flops(dtype), count) for kind, count in self.kinds]
        known = [(peak, count) for peak, count in peaks if peak is not None]
        if not known or len(known) < len(peaks):
            return None, None
        mean = sum(peak * count for peak, count in known) / sum(count for _, count in known)
        return mean, "; ".join(dict.fromkeys(kind.source for kind, _ in self.kinds))
