"""Courses over time for graphs: of the fleet and of one job."""

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from flopwatch.query import Series
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.mfu import JobBasis, useful_seconds
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import Columns
from flopwatch_collector.views.present import JobNow
from flopwatch_collector.views.rollups import UNTOLD_RATIO, comparable, counted, ratio, summed
from flopwatch_collector.views.sources import Moment, Sources
from flopwatch_collector.views.thinning import known, thinned

RAW_UP_TO_SECONDS = 2 * 3_600.0
"""Shorter ranges are drawn by the minute from raw samples."""
RAW_STEP_SECONDS = 60.0
ACTIVITY = ("kernel_active_ratio", "tensor_active_ratio")
Floats = npt.NDArray[np.float64]


def fleet_series(sources: Sources, moment: Moment, found: Mapping[int, JobNow], rolled: Columns) -> Series:
    """Kernel and tensor activity of GPUs that jobs hold, and fleet training MFU.

    ``rolled`` are the rollups of the range, for ranges that are not drawn from raw samples.
    """
    if moment.asked.seconds <= RAW_UP_TO_SECONDS:
        return _series("raw", RAW_STEP_SECONDS, _raw_fleet(sources, moment, found), moment)
    numbers = np.array(
        [number for number, job in moment.state.jobs.items() if _asked(moment, job.cluster)], dtype=np.int64
    )
    rows = comparable(take(rolled, np.isin(rolled["job"], numbers)))
    level, step = ("1h", 3_600.0) if moment.hourly else ("5m", 300.0)
    return _series(level, step, rollup_course(rows, step), moment)


def _asked(moment: Moment, cluster: str) -> bool:
    return moment.asked.cluster is None or cluster == moment.asked.cluster


def rollup_course(rows: Columns, step_seconds: float) -> Columns:
    """Activity and MFU over all jobs of the rows, by time."""
    times, index = np.unique(rows["ts"] // step_seconds * step_seconds, return_inverse=True)
    count = times.size
    return {
        "ts": times,
        "kernel_active": _mean(rows, "kernel_active_ratio", index, count),
        "tensor_active": _mean(rows, "tensor_active_ratio", index, count),
        "mfu": ratio(
            summed(rows, "kept_flops", index, count),
            summed(rows, "leased_peak_flop_seconds", index, count),
        ),
    }


def _mean(rows: Columns, name: str, index: npt.NDArray[np.int64], count: int) -> Floats:
    return ratio(summed(rows, f"{name}_sum", index, count), summed(rows, f"{name}_seconds", index, count))


def _raw_fleet(sources: Sources, moment: Moment, found: Mapping[int, JobNow]) -> Columns:
    """The same by the minute, from raw samples and the steps of the newest time."""
    edges = minutes(moment)
    running = {number: job for number, job in found.items() if not job.ended}
    samples = sources.store.job_series(edges[0], moment.now, RAW_STEP_SECONDS, jobs=sorted(found))
    index = np.round((samples["ts"] - edges[0]) / RAW_STEP_SECONDS).astype(np.int64)
    inside = (index >= 0) & (index < edges.size - 1)
    samples, index = take(samples, inside), index[inside]
    columns = {
        name.removesuffix("_ratio"): _weighted(samples[name], samples["samples"], index, edges.size - 1)
        for name in ACTIVITY
    }
    return {"ts": edges[:-1], **columns, "mfu": minute_mfu(running.values(), edges)}


def minutes(moment: Moment) -> Floats:
    """Borders of the minutes of the range; the running minute is left out."""
    end = moment.now // RAW_STEP_SECONDS * RAW_STEP_SECONDS
    return np.arange(
        end - moment.asked.seconds // RAW_STEP_SECONDS * RAW_STEP_SECONDS, end + 1, RAW_STEP_SECONDS
    )


def _weighted(values: Floats, weights: Floats, index: npt.NDArray[np.int64], count: int) -> Floats:
    known_rows = np.isfinite(values)
    done = counted(index[known_rows], (values * weights)[known_rows], count)
    return ratio(done, counted(index[known_rows], weights[known_rows], count))


def minute_mfu(jobs: Iterable[JobNow], edges: Floats) -> Floats:
    """Kept FLOPs over what the jobs' GPUs could have done, between edges.

    A run counts from its first step to its newest report, and while it hangs. Where much is not told yet, the
    fleet's figure is unknown.
    """
    done, could, all_told = (np.zeros(edges.size - 1) for _ in range(3))
    for job in jobs:
        timeline, basis = job.timeline, job.basis
        if timeline is None or basis.full_peak is None or basis.reason is not None:
            continue
        if not timeline.steps["ts"].size:
            continue
        until = edges[-1] if job.bucket == "HANG" else float(timeline.last_progress_seconds or edges[0])
        begin = float(timeline.steps["begin"][0])
        rate = basis.possible(edges[:-1], edges[1:]) / np.diff(edges)
        done += rate * useful_between(timeline, basis, edges)
        could += rate * np.diff(np.clip(edges, begin, until))
        all_told += rate * np.diff(np.clip(edges, begin, edges[-1]))
    return np.where(could >= (1.0 - UNTOLD_RATIO) * all_told, ratio(done, could), np.nan)


def useful_between(timeline: JobTimeline, basis: JobBasis, edges: Floats) -> Floats:
    """Seconds of full use of the peak that the kept steps were worth between edges."""
    steps = timeline.kept()
    useful = useful_seconds(steps, basis)
    chosen = np.isfinite(useful) & (steps["ts"] > steps["begin"])
    begin, end, useful = steps["begin"][chosen], steps["ts"][chosen], useful[chosen]
    if not begin.size:
        return np.zeros(edges.size - 1)
    total = np.concatenate(([0.0], np.cumsum(useful)))
    last = np.maximum(np.searchsorted(begin, edges, side="right") - 1, 0)
    share = np.clip((edges - begin[last]) / (end - begin)[last], 0.0, 1.0)
    return np.diff(total[last] + useful[last] * share)


def _series(level: str, step: float, rows: Columns, moment: Moment) -> Series:
    fewer = thinned(rows, "mfu", moment.asked.points)
    return Series(
        level=level,
        step_seconds=step,
        time_seconds=tuple(fewer["ts"].tolist()),
        columns={name: known(values) for name, values in fewer.items() if name != "ts"},
    )
