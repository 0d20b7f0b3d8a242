"""Rollups of jobs: sums over five minutes from raw data and the ledger, and over hours from those.

Every column but ``gpus`` adds up, so a rollup of rollups equals one made at once. NaN is not known.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flopwatch.mfu import fleet_ratio as weighted
from flopwatch_collector.compute import mfu
from flopwatch_collector.compute.buckets import CODE, REASON_CODE, WINDOW_SECONDS
from flopwatch_collector.compute.classes import is_leased
from flopwatch_collector.compute.gpu_state import cover, sorted_samples
from flopwatch_collector.compute.mfu import JobBasis
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import Columns

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
MEANS: Final = ("kernel_active_ratio", "tensor_active_ratio", "sm_active_ratio", "power_watts")
"""For each: ``<name>_sum`` (value x GPU-seconds) and ``<name>_seconds`` (GPU-seconds it is known for)."""
TENSOR_CLOCK: Final = "tensor_clock_hertz"
"""A mean like these: tensor activity x SM clock, what the hardware estimate is made from."""
SAMPLED: Final = (*MEANS, "sm_clock_hertz")
"""Columns of samples that rollups are made from."""
STEP_SUMS: Final = (
    "steps", "step_seconds", "tokens", "steady_flops", "steady_peak_flop_seconds", "kept_flops", "kept_palm_flops",
)  # fmt: skip
SUMS: Final = (
    "gpu_seconds", "opaque_gpu_seconds", "leased_peak_flop_seconds",
    *(f"{name}_{part}" for name in (*MEANS, TENSOR_CLOCK) for part in ("sum", "seconds")), *STEP_SUMS,
)  # fmt: skip
STEPPED_PEAK: Final = "stepped_peak_flop_seconds"
"""What the run's GPUs could have done during its kept steps; it goes into ``leased_peak_flop_seconds``."""
ROLLUP_COLUMNS: Final = ("ts", "job", "gpus", *SUMS)
"""``gpus`` is the mean number leased over the window, ``opaque_gpu_seconds`` the time in which it worked and
reported no steps; ``leased_peak_flop_seconds`` what these could have done at
their dense peak, for jobs whose MFU is known. Steps count by the time they overlap; rolled-back ones do not."""


def job_rollup(
    ledger: Columns,
    samples: Columns,
    timelines: Mapping[int, JobTimeline],
    bases: Mapping[int, JobBasis],
    now: float,
) -> Columns:
    """Rows by (five-minute window, job) for every window of these ledger rows."""
    starts = np.unique(ledger["ts"])
    if not starts.size:
        return empty_rollup()
    leased = is_leased(ledger) & (ledger["job"] > 0)
    time = ledger["gpu_milliseconds"][leased] / 1000.0
    jobs = ledger["job"][leased]
    table = _Sums(starts, _jobs_of(jobs, samples, timelines))
    place, _ = table.places(ledger["ts"][leased], jobs)
    table.add("gpu_seconds", place, time)
    table.add("opaque_gpu_seconds", place, np.where(_opaque(ledger)[leased], time, 0.0))
    peaks = _peaks(ledger["ts"][leased], jobs, timelines, bases)
    table.add("leased_peak_flop_seconds", place, time * peaks)
    _add_samples(table, samples, now)
    for number, timeline in timelines.items():
        _add_steps(table, timeline, bases.get(number))
    rows = table.columns()
    # A run in its steps holds its GPUs: kept FLOPs never stand over less than these could have done, though a
    # lease, or what its nodes sent, is not known yet.
    held = np.fmax(rows["leased_peak_flop_seconds"], rows[STEPPED_PEAK])
    return _with_gpus({**rows, "leased_peak_flop_seconds": held}, WINDOW_SECONDS)


def _opaque(ledger: Columns) -> npt.NDArray[np.bool_]:
    """Of each row, whether a job worked then of which no run is known."""
    unexplained = np.isin(ledger["reason"], [REASON_CODE[""], REASON_CODE["idle_unknown"]])
    return np.asarray((ledger["bucket"] == CODE["BUSY_OPAQUE"]) & unexplained)


def empty_rollup() -> Columns:
    """Rollup rows of nothing."""
    return {name: np.empty(0, dtype=np.int64 if name == "job" else np.float64) for name in ROLLUP_COLUMNS}


def completed(rows: Columns) -> Columns:
    """Rows that an older release wrote, with the columns it did not know as unknown."""
    unknown = np.full(rows["ts"].size, np.nan)
    return {name: rows.get(name, unknown) for name in ROLLUP_COLUMNS}


def hourly(rows: Columns, seconds: int = 3600) -> Columns:
    """Rollup rows added up over longer windows; a sum of only unknown values is unknown."""
    rows = completed(rows)
    ts, jobs = rows["ts"] // seconds * seconds, rows["job"].astype(np.int64)
    table = _Sums(np.unique(ts), np.unique(jobs))
    place, _ = table.places(ts, jobs)
    for name in SUMS:
        table.add(name, place, rows[name])
    return _with_gpus(table.columns(), seconds)


def mean(rows: Columns, name: str) -> float | None:
    """Time-weighted mean of one of ``MEANS`` or ``TENSOR_CLOCK`` over rollup rows; None where never known."""
    seconds = mfu.known_sum(rows[f"{name}_seconds"])
    return mfu.known_sum(rows[f"{name}_sum"]) / seconds if seconds > 0 else None


def fleet_ratio(rows: Columns) -> float | None:
    """Fleet training MFU: kept FLOPs over what the leased GPUs of jobs with an MFU could have done."""
    return mfu.wall_ratio(rows)


def money_ratio(rows: Columns, prices: Mapping[int, float]) -> float | None:
    """Fleet training MFU with every job's own weighted by what its leased GPU time cost; None without a price.

    ``prices``: of a GPU-hour, by job; a job without one does not count.
    """
    parts = []
    for number in np.unique(rows["job"]):
        price = prices.get(int(number))
        if price is None:
            continue
        known = (rows["job"] == number) & np.isfinite(rows["leased_peak_flop_seconds"])
        own = {name: values[known] for name, values in rows.items()}
        ratio = mfu.wall_ratio(own)
        if ratio is not None:
            parts.append((ratio, float(np.nansum(own["gpu_seconds"])) / 3600.0 * price))
    return weighted(parts)


def coverage(rows: Columns) -> float | None:
    """Share of leased GPU time whose job has an MFU; None when nothing is leased."""
    leased = float(np.nansum(rows["gpu_seconds"]))
    known = float(np.nansum(rows["gpu_seconds"][np.isfinite(rows["leased_peak_flop_seconds"])]))
    return known / leased if leased > 0 else None


class _Sums:
    """Sums by (window, job), unknown until something known is added."""

    def __init__(self, starts: Floats, jobs: Integers) -> None:
        self._starts, self._jobs = starts, jobs
        self._total = {name: np.zeros(starts.size * jobs.size) for name in (*SUMS, STEPPED_PEAK)}
        self._known = {name: np.zeros(starts.size * jobs.size) for name in (*SUMS, STEPPED_PEAK)}
        self._any = np.zeros(starts.size * jobs.size, dtype=np.bool_)

    @property
    def span(self) -> tuple[float, float]:
        """Milliseconds from the first window's start to the last one's end."""
        return self._starts[0] * 1000.0, (self._starts[-1] + WINDOW_SECONDS) * 1000.0

    def places(self, ts: Floats, job: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """Where rows belong, and which of them belong anywhere."""
        window, inside = _found(self._starts, ts)
        column, known = _found(self._jobs, job)
        inside &= known
        place = (window * self._jobs.size + column)[inside]
        self._any[place] = True
        return place, inside

    def add(self, name: str, place: Integers, value: Floats) -> None:
        """Add values at places."""
        finite = np.isfinite(value)
        if not finite.all():
            place, value = place[finite], value[finite]
        size = self._any.size
        self._total[name] += np.bincount(place, weights=value, minlength=size)
        self._known[name] += np.bincount(place, minlength=size)

    def columns(self) -> Columns:
        """The rows anything was added to."""
        rows = np.flatnonzero(self._any)
        window, column = np.divmod(rows, max(1, self._jobs.size))
        sums = {
            name: np.where(self._known[name][rows] > 0, self._total[name][rows], np.nan)
            for name in self._total
        }
        return {"ts": self._starts[window], "job": self._jobs[column], **sums}


def _found(ordered: npt.NDArray[Any], values: npt.NDArray[Any]) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """(index, whether it is there) of values in an ordered table."""
    if not ordered.size:
        return np.zeros(values.size, dtype=np.int64), np.zeros(values.size, dtype=np.bool_)
    index = np.minimum(np.searchsorted(ordered, values), ordered.size - 1)
    return index, ordered[index] == values


def _with_gpus(rows: Columns, seconds: int) -> Columns:
    columns = {**rows, "gpus": np.nan_to_num(rows["gpu_seconds"]) / seconds}
    return {name: columns[name] for name in ROLLUP_COLUMNS}


def _peaks(
    ts: Floats, jobs: Integers, timelines: Mapping[int, JobTimeline], bases: Mapping[int, JobBasis]
) -> Floats:
    """Peak FLOP/s of one leased GPU of each row's job in its window; NaN where its MFU is not known."""
    peaks = np.full(ts.size, np.nan)
    for number in np.unique(jobs).tolist():
        basis, timeline = bases.get(number), timelines.get(number)
        if basis is None or timeline is None or not timeline.instrumented or basis.reason is not None:
            continue
        rows = np.flatnonzero(jobs == number)
        windows, index = np.unique(ts[rows], return_inverse=True)
        peaks[rows] = _leased_peaks(windows, timeline, basis)[index]
    return peaks


def _leased_peaks(windows: Floats, timeline: JobTimeline, basis: JobBasis) -> Floats:
    """What the run's GPUs could do in each window, over the GPUs that it leased then."""
    ends = windows + WINDOW_SECONDS
    launch = np.full(windows.size, np.nan)
    steps = timeline.steps
    if steps["ts"].size:
        last = np.searchsorted(steps["begin"], ends, side="left") - 1
        launch = np.where(last >= 0, steps["launch_session"][np.maximum(last, 0)], np.nan)
    held, _ = basis.devices.held.over(windows, ends)
    now = float(basis.devices.leased or basis.devices.gpus or 1)
    return basis.possible(windows, ends, launch) / WINDOW_SECONDS / np.where(held > 0, held, now)


def _add_samples(table: _Sums, samples: Columns, now: float) -> None:
    """Means of samples, each over the windows it stands for."""
    rows = sorted_samples(samples)
    start, end, _ = cover(rows, rows["gpu"].astype(np.int64), now)
    job = np.nan_to_num(rows["job"]).astype(np.int64)
    window = WINDOW_SECONDS * 1000
    chosen = np.flatnonzero((job > 0) & (end > start) & (end > table.span[0]) & (start < table.span[1]))
    first = start[chosen] // window
    row, at = _spread(chosen, first, (end[chosen] - 1) // window - first + 1)
    seconds = (np.minimum(end[row], (at + 1) * window) - np.maximum(start[row], at * window)) / 1000.0
    place, inside = table.places((at * WINDOW_SECONDS).astype(np.float64), job[row])
    row, seconds = row[inside], seconds[inside]
    for name, values in _sampled(rows).items():
        value = values[row]
        table.add(f"{name}_sum", place, value * seconds)
        table.add(f"{name}_seconds", place, np.where(np.isnan(value), np.nan, seconds))


def _sampled(rows: Columns) -> Columns:
    """What means are taken of, by name; a table without clocks has no tensor clock."""
    means = {name: rows[name] for name in MEANS}
    if "sm_clock_hertz" in rows:
        means[TENSOR_CLOCK] = rows["tensor_active_ratio"] * rows["sm_clock_hertz"]
    return means


def _spread(row: Integers, first: Integers, count: Integers) -> tuple[Integers, Integers]:
    """Each row as often as it has windows, and the number of each of these windows."""
    spread = np.repeat(row, count)
    offset = np.arange(spread.size) - np.repeat(np.cumsum(count) - count, count)
    return spread, np.repeat(first, count) + offset


def _jobs_of(jobs: Integers, samples: Columns, timelines: Mapping[int, JobTimeline]) -> Integers:
    """All jobs that may have a row, in order."""
    seen = np.unique(np.nan_to_num(samples["job"])).astype(np.int64)
    known = np.fromiter(timelines, dtype=np.int64)
    every = np.unique(np.concatenate((jobs, seen, known)))
    return every[every > 0]


def _add_steps(table: _Sums, timeline: JobTimeline, basis: JobBasis | None) -> None:
    steps = timeline.kept()
    length = steps["ts"] - steps["begin"]
    steps = {name: values[length > 0] for name, values in steps.items()}
    length = length[length > 0]
    if not length.size:
        return
    values: dict[str, Floats] = {"steps": steps["steps_covered"], "step_seconds": length}
    if basis is not None:
        values["tokens"] = mfu.tokens_of(steps, basis.run)
        if basis.full_peak is not None and basis.reason is None:
            causal, palm = mfu.flops_of(steps, basis)
            possible = mfu.possible_of(steps, basis)
            values |= {"kept_flops": causal, "kept_palm_flops": palm, STEPPED_PEAK: possible}
            counted = steps["is_steady"] & np.isfinite(causal)
            values["steady_flops"] = np.where(counted, causal, np.nan)
            values["steady_peak_flop_seconds"] = np.where(counted, possible, np.nan)
    for name, value in values.items():
        _add_spread(table, name, timeline.job, (steps["begin"], steps["ts"], value))


def _add_spread(table: _Sums, name: str, job: int, parts: tuple[Floats, Floats, Floats]) -> None:
    """Add values of intervals to the windows they overlap, in proportion."""
    begin, end, value = parts
    first = np.floor(begin / WINDOW_SECONDS).astype(np.int64)
    last = np.maximum(first, np.ceil(end / WINDOW_SECONDS).astype(np.int64) - 1)
    row, at = _spread(np.arange(begin.size), first, last - first + 1)
    start = (at * WINDOW_SECONDS).astype(np.float64)
    overlap = np.minimum(end[row], start + WINDOW_SECONDS) - np.maximum(begin[row], start)
    share = np.maximum(overlap, 0.0) / (end - begin)[row]
    place, inside = table.places(start, np.full(row.size, job, dtype=np.int64))
    table.add(name, place, (value[row] * share)[inside])
