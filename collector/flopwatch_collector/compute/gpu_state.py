"""What samples say of a GPU over time: process or none, idle or not, silent or not."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.buckets import milliseconds
from flopwatch_collector.model import Columns

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
NO, YES, UNKNOWN = 0, 1, 2
STALE_INTERVALS = 2.5
IDLE_POWER_FACTOR = 1.15
"""A GPU drawing no more than this times its own idle power does no work, whatever kernel is resident."""
STATE_SAMPLES = (
    "ts",
    "gpu",
    "node",
    "job",
    "interval_seconds",
    "kernel_active_ratio",
    "power_watts",
    "process_count",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuRuns:
    """Stretches in which a GPU's samples say the same, disjoint, sorted by (gpu, start); silence is between."""

    gpu: Integers
    start: Integers
    end: Integers
    process: Integers
    """``NO``, ``YES`` or ``UNKNOWN``."""
    work: Integers
    """``YES``, ``NO`` for long enough to be idle, or ``UNKNOWN``."""
    job: Integers
    """Job whose process holds the GPU; 0 none."""


def gpu_runs(
    samples: Columns, now: float, *, idle_grace_seconds: float, idle_watts: Mapping[int, float] | None = None
) -> GpuRuns:
    """The runs of all GPUs. A sample stands for the time since the one before, when that is not too long ago.

    The newest sample of a GPU also stands for the time since, until it is 2.5 intervals old. Idle is kernel-active
    0, or power near the GPU's own idle power (``idle_watts`` by GPU), in all samples for the grace time.
    """
    rows = sorted_samples(samples)
    gpu = rows["gpu"].astype(np.int64)
    start, end, joined = cover(rows, gpu, now)
    job = np.nan_to_num(rows["job"]).astype(np.int64)
    process = _process(rows["process_count"], job)
    idle = _idle(rows, gpu, idle_watts or {})
    same = joined & _unchanged(process) & _unchanged(job)
    work = _work(idle, same, start, end, round(idle_grace_seconds * 1000.0))
    first = ~(same & _unchanged(work))
    last = np.concatenate((first[1:], [True])) if first.size else first
    chosen = np.flatnonzero(first)
    return GpuRuns(
        gpu=gpu[chosen], start=start[chosen], end=end[last], process=process[chosen], work=work[chosen],
        job=job[chosen],
    )  # fmt: skip


def sorted_samples(samples: Columns) -> Columns:
    """The samples by (gpu, ts); a second one of the same instant is left out."""
    ts, gpu = samples["ts"], samples["gpu"]
    later = (gpu[1:] > gpu[:-1]) | ((gpu[1:] == gpu[:-1]) & (ts[1:] > ts[:-1]))
    if later.all():
        return samples
    ties = (samples["process_count"], samples["kernel_active_ratio"])
    order = np.lexsort((*ties, ts, gpu))
    ts, gpu = ts[order], gpu[order]
    first = np.ones(ts.size, dtype=np.bool_)
    first[1:] = (np.diff(ts) > 0) | (np.diff(gpu) != 0)
    return {name: values[order][first] for name, values in samples.items()}


def cover(rows: Columns, gpu: Integers, now: float) -> tuple[Integers, Integers, Flags]:
    """(start, end, whether it continues the sample before) of the time each sorted sample stands for, ms."""
    ts = milliseconds(rows["ts"])
    interval = milliseconds(np.nan_to_num(rows["interval_seconds"], nan=10.0))
    stale = (interval * STALE_INTERVALS).astype(np.int64)
    joined = np.zeros(ts.size, dtype=np.bool_)
    joined[1:] = (gpu[1:] == gpu[:-1]) & (ts[1:] - ts[:-1] <= stale[1:])
    before = np.concatenate((ts[:1], ts[:-1]))
    start = np.where(joined, before, ts - interval)
    if ts.size > 1:
        follows = np.concatenate(([False], gpu[1:] == gpu[:-1])) & ~joined
        start = np.where(follows, np.maximum(start, before), start)
    newest = np.concatenate((gpu[1:] != gpu[:-1], [True])) if ts.size else joined
    until = round(now * 1000.0)
    fresh = newest & (ts <= until) & (until - ts <= stale)
    return start, np.where(fresh, until, ts), joined


def _process(count: Floats, job: Integers) -> Integers:
    known = np.where(count > 0, YES, NO)
    seen = np.where(job > 0, YES, UNKNOWN)
    return np.where(np.isnan(count), seen, known).astype(np.int64)


def _idle(rows: Columns, gpu: Integers, idle_watts: Mapping[int, float]) -> Integers:
    """Of each sample: ``YES`` no work, ``NO`` work, ``UNKNOWN``."""
    kernel = rows["kernel_active_ratio"]
    state = np.where(np.isnan(kernel), UNKNOWN, np.where(kernel <= 0.0, YES, NO))
    if idle_watts:
        numbers = np.array(sorted(idle_watts), dtype=np.int64)
        watts = np.array([idle_watts[int(number)] for number in numbers])
        index = np.minimum(np.searchsorted(numbers, gpu), numbers.size - 1)
        own = np.where(numbers[index] == gpu, watts[index], np.nan)
        state = np.where(rows["power_watts"] <= own * IDLE_POWER_FACTOR, YES, state)
    return state.astype(np.int64)


def _unchanged(values: Integers) -> Flags:
    same = np.zeros(values.size, dtype=np.bool_)
    same[1:] = values[1:] == values[:-1]
    return same


def _work(idle: Integers, same: Flags, start: Integers, end: Integers, grace: int) -> Integers:
    """``NO`` in idle runs of the grace time or more, counted over the whole run; else ``YES`` or ``UNKNOWN``."""
    if not idle.size:
        return idle
    run = np.cumsum(~(same & _unchanged(idle))) - 1
    first = np.flatnonzero(np.concatenate(([True], np.diff(run) > 0)))
    last = np.concatenate((first[1:] - 1, [idle.size - 1]))
    long = (end[last] - start[first])[run] >= grace
    working = np.where(idle == UNKNOWN, UNKNOWN, YES)
    return np.where((idle == YES) & long, NO, working)
