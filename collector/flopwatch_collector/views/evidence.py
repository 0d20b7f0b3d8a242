"""What a job's counters say of its figure: activity, doubts, and an estimate where there are no steps."""

import numpy as np

from flopwatch.query import FindingInfo, MfuFigure
from flopwatch_collector.compute import rollup
from flopwatch_collector.compute.doubts import Hardware, doubts
from flopwatch_collector.compute.figure import estimated
from flopwatch_collector.compute.mfu import wall_ratio
from flopwatch_collector.model import Columns, FleetState
from flopwatch_collector.views.present import JobNow

ACTIVITY_SECONDS = 900.0
"""Activity of a running job is a mean of this much of the newest time."""
COMPARED = (
    "kept_flops", "leased_peak_flop_seconds",
    *(f"{name}_{part}" for name in ("tensor_active_ratio", rollup.TENSOR_CLOCK) for part in ("sum", "seconds")),
)  # fmt: skip
"""What steps and counters say of a job, side by side."""


def newest(job: JobNow, rolled: Columns | None, now: float) -> Columns | None:
    """Rollup rows, in order of time, of the newest time of a running job; of the whole range of an ended one."""
    if rolled is None or job.ended:
        return rolled
    first = int(np.searchsorted(rolled["ts"], now - ACTIVITY_SECONDS - 300.0))
    return {name: values[first:] for name, values in rolled.items()}


def mean_of(rows: Columns | None, name: str) -> float | None:
    """Mean activity; None where it is not known."""
    return None if rows is None else rollup.mean(rows, name)


def figure_of(job: JobNow, state: FleetState, rows: Columns | None) -> MfuFigure:
    """The job's MFU; where it has no steps, the hardware's estimate if its counters allow one."""
    if job.figure.reason not in ("waiting", "no_steps"):
        return job.figure
    clocks = {
        gpu.max_sm_clock_hertz
        for part in job.record.parts
        for number in (part.gpus or part.leased_gpus or ())
        if (gpu := state.gpus.get(number)) is not None
    }
    one_clock = clocks.pop() if len(clocks) == 1 else None
    return estimated(
        job.figure,
        job.basis.devices,
        tensor_active_ratio=mean_of(rows, "tensor_active_ratio"),
        tensor_clock_hertz=mean_of(rows, rollup.TENSOR_CLOCK),
        max_sm_clock_hertz=one_clock,
    )


def doubts_of(job: JobNow, rows: Columns | None) -> tuple[FindingInfo, ...]:
    """What contradicts the MFU of a job."""
    return doubts(job.basis, job.figure, _hardware(rows))


def _hardware(rows: Columns | None) -> Hardware:
    """Steps and counters over the same windows: those of which both are known."""
    if rows is None:
        return Hardware()
    known = np.isfinite(rows["leased_peak_flop_seconds"]) & (rows["tensor_active_ratio_seconds"] > 0)
    both = {name: rows[name][known] for name in COMPARED}
    return Hardware(
        wall_ratio=wall_ratio(both),
        tensor_active_ratio=mean_of(both, "tensor_active_ratio"),
        tensor_clock_hertz=mean_of(both, rollup.TENSOR_CLOCK),
    )
