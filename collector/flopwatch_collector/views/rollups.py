"""Rollup rows of jobs as views need them: by job, as a trend, and without time whose steps are not told yet. Pure."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.buckets import WINDOW_SECONDS
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.rollup import empty_rollup
from flopwatch_collector.model import Columns
from flopwatch_collector.views.present import JobNow
from flopwatch_collector.views.thinning import known

TREND_POINTS = 48
STEP_COLUMNS = ("kept_flops", "leased_peak_flop_seconds", "steady_flops", "steady_peak_flop_seconds")
UNTOLD = "untold_peak_flop_seconds"
"""What jobs could have done in time of which they have not told their steps yet."""
UNTOLD_RATIO = 0.2
Floats = npt.NDArray[np.float64]


def told_only(rows: Columns, jobs: Mapping[int, JobNow]) -> Columns:
    """The rows with what comes from steps unknown where a running job has not reported its steps yet.

    Without this the newest minutes of every run would look like a loss.
    """
    until = {
        number: job.timeline.last_progress_seconds
        for number, job in jobs.items()
        if job.timeline is not None
        and job.bucket != "HANG"
        and job.timeline.last_progress_seconds is not None
    }
    numbers, inverse = np.unique(rows["job"], return_inverse=True)
    if not numbers.size:
        return {**rows, UNTOLD: np.zeros(0)}
    limits = np.array([until.get(int(number), np.inf) for number in numbers])
    untold = rows["ts"] + WINDOW_SECONDS > limits[inverse]
    told = {
        name: np.where(untold, np.nan, values) if name in STEP_COLUMNS else values
        for name, values in rows.items()
    }
    return {**told, UNTOLD: np.where(untold, rows["leased_peak_flop_seconds"], 0.0)}


def comparable(rows: Columns) -> Columns:
    """The rows with step columns unknown in windows of which too much is not told yet.

    What little is told there, a run that hangs and reports nothing for instance, does not stand for the fleet.
    """
    times, index = np.unique(rows["ts"], return_inverse=True)
    untold = summed(rows, UNTOLD, index, times.size)
    told = summed(rows, "leased_peak_flop_seconds", index, times.size)
    thin = (untold > UNTOLD_RATIO * (untold + told))[index]
    return {
        name: np.where(thin, np.nan, values) if name in STEP_COLUMNS else values
        for name, values in rows.items()
    }


def by_job(rows: Columns) -> dict[int, Columns]:
    """The rows of every job, in order of time."""
    ordered = take(rows, np.lexsort((rows["ts"], rows["job"])))
    numbers, first = np.unique(ordered["job"], return_index=True)
    last = np.append(first, ordered["job"].size)[1:]
    return {
        int(number): {name: values[begin:end] for name, values in ordered.items()}
        for number, begin, end in zip(numbers, first, last, strict=True)
    }


def joined(tables: Mapping[int, Columns]) -> Columns:
    """The rows of all jobs in one table."""
    parts = list(tables.values())
    if not parts:
        return {**empty_rollup(), UNTOLD: np.zeros(0)}
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def trend(rows: Columns, start: float, end: float) -> tuple[float | None, ...]:
    """Step MFU over equal parts of the interval, oldest first; unknown where no steady step lies."""
    edges = np.linspace(start, end, TREND_POINTS + 1)
    part = np.clip(np.searchsorted(edges, rows["ts"], side="right") - 1, 0, TREND_POINTS - 1)
    done, could = (
        summed(rows, name, part, TREND_POINTS) for name in ("steady_flops", "steady_peak_flop_seconds")
    )
    return known(ratio(done, could))


def ratio(part: Floats, whole: Floats) -> Floats:
    """``part / whole``, not a number where there is no whole."""
    result = np.full(part.shape, np.nan)
    np.divide(part, whole, out=result, where=whole > 0)
    return result


def summed(rows: Columns, name: str, index: npt.NDArray[np.int64], count: int) -> Floats:
    """Sums of a column by index; what is unknown adds nothing."""
    return counted(index, np.nan_to_num(rows[name]), count)


def counted(index: npt.NDArray[np.int64], values: Floats, count: int) -> Floats:
    """Sums of values by index, from 0 up to ``count``."""
    return np.bincount(index, weights=values, minlength=count).astype(np.float64)
