"""Rollups of jobs: sums over five minutes from raw data and the ledger, and over hours from those.

Every column but ``gpus`` adds up, so a rollup of rollups equals one made at once. NaN is not known.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute import mfu
from flopwatch_collector.compute.buckets import WINDOW_SECONDS
from flopwatch_collector.compute.classes import is_leased
from flopwatch_collector.compute.gpu_state import cover, sorted_samples
from flopwatch_collector.compute.mfu import JobBasis
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import Columns

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
MEANS: Final = ("kernel_active_ratio", "tensor_active_ratio", "sm_active_ratio", "power_watts")
"""For each: ``<name>_sum`` (value x GPU-seconds) and ``<name>_seconds`` (GPU-seconds it is known for)."""
STEP_SUMS: Final = (
    "steps", "step_seconds", "tokens", "steady_flops", "steady_peak_flop_seconds", "kept_flops", "kept_palm_flops",
)  # fmt: skip
SUMS: Final = (
    "gpu_seconds", "leased_peak_flop_seconds",
    *(f"{name}_{part}" for name in MEANS for part in ("sum", "seconds")), *STEP_SUMS,
)  # fmt: skip
ROLLUP_COLUMNS: Final = ("ts", "job", "gpus", *SUMS)
"""``gpus`` is the mean number leased over the window; ``leased_peak_flop_seconds`` what these could have done at
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
    table = _Sums(starts)
    time = ledger["gpu_milliseconds"][leased] / 1000.0
    jobs = ledger["job"][leased]
    table.add("gpu_seconds", ledger["ts"][leased], jobs, time)
    table.add("leased_peak_flop_seconds", ledger["ts"][leased], jobs, time * _peaks(jobs, timelines, bases))
    _add_samples(table, samples, now)
    for number, timeline in timelines.items():
        _add_steps(table, timeline, bases.get(number))
    return _with_gpus(table.columns(), WINDOW_SECONDS)


def empty_rollup() -> Columns:
    """Rollup rows of nothing."""
    return {name: np.empty(0, dtype=np.int64 if name == "job" else np.float64) for name in ROLLUP_COLUMNS}


def hourly(rows: Columns, seconds: int = 3600) -> Columns:
    """Rollup rows added up over longer windows; a sum of only unknown values is unknown."""
    table = _Sums(np.unique(rows["ts"] // seconds * seconds))
    for name in SUMS:
        table.add(name, rows["ts"] // seconds * seconds, rows["job"].astype(np.int64), rows[name])
    return _with_gpus(table.columns(), seconds)


def mean(rows: Columns, name: str) -> float | None:
    """Time-weighted mean of one of ``MEANS`` over rollup rows; None where it was never known."""
    seconds = float(np.nansum(rows[f"{name}_seconds"]))
    return float(np.nansum(rows[f"{name}_sum"])) / seconds if seconds > 0 else None


def fleet_ratio(rows: Columns) -> float | None:
    """Fleet training MFU: kept FLOPs over what the leased GPUs of jobs with an MFU could have done."""
    return mfu.wall_ratio(rows)


def coverage(rows: Columns) -> float | None:
    """Share of leased GPU time whose job has an MFU; None when nothing is leased."""
    leased = float(np.nansum(rows["gpu_seconds"]))
    known = float(np.nansum(rows["gpu_seconds"][np.isfinite(rows["leased_peak_flop_seconds"])]))
    return known / leased if leased > 0 else None


class _Sums:
    """Sums by (window, job), unknown until something known is added."""

    def __init__(self, starts: Floats) -> None:
        self._starts = starts
        self._parts: dict[str, list[tuple[Integers, Floats]]] = {}

    def add(self, name: str, ts: Floats, job: Integers, value: Floats) -> None:
        index = np.searchsorted(self._starts, ts)
        inside = index < self._starts.size
        inside &= self._starts[np.minimum(index, self._starts.size - 1)] == ts
        key = index[inside] * 2**32 + job[inside]
        self._parts.setdefault(name, []).append((key, value[inside]))

    def columns(self) -> Columns:
        keys = np.unique(np.concatenate([key for parts in self._parts.values() for key, _ in parts]))
        result: Columns = {"ts": self._starts[keys >> 32], "job": keys & 0xFFFFFFFF}
        for name in SUMS:
            total, known = np.zeros(keys.size), np.zeros(keys.size, dtype=np.bool_)
            for key, value in self._parts.get(name, ()):
                finite = np.isfinite(value)
                row = np.searchsorted(keys, key[finite])
                np.add.at(total, row, value[finite])
                known[row] = True
            result[name] = np.where(known, total, np.nan)
        return result


def _with_gpus(rows: Columns, seconds: int) -> Columns:
    columns = {**rows, "gpus": np.nan_to_num(rows["gpu_seconds"]) / seconds}
    return {name: columns[name] for name in ROLLUP_COLUMNS}


def _peaks(jobs: Integers, timelines: Mapping[int, JobTimeline], bases: Mapping[int, JobBasis]) -> Floats:
    """Peak FLOP/s of one leased GPU of each row's job; NaN where its MFU is not known."""
    found, inverse = np.unique(jobs, return_inverse=True)
    peaks = np.full(found.size, np.nan)
    for index, number in enumerate(found):
        basis, timeline = bases.get(int(number)), timelines.get(int(number))
        if basis is not None and timeline is not None and timeline.instrumented and basis.reason is None:
            peak = basis.full_peak
            peaks[index] = (
                np.nan if peak is None else peak / max(1, basis.devices.leased or basis.devices.gpus or 1)
            )
    return peaks[inverse] if found.size else np.empty(0)


def _add_samples(table: _Sums, samples: Columns, now: float) -> None:
    """Means of samples, each over the windows it stands for."""
    rows = sorted_samples(samples)
    start, end, _ = cover(rows, rows["gpu"].astype(np.int64), now)
    job = np.nan_to_num(rows["job"]).astype(np.int64)
    chosen = np.flatnonzero((job > 0) & (end > start))
    window = WINDOW_SECONDS * 1000
    first = start[chosen] // window
    count = (end[chosen] - 1) // window - first + 1
    row = np.repeat(chosen, count)
    at = np.repeat(first, count) + np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
    seconds = (np.minimum(end[row], (at + 1) * window) - np.maximum(start[row], at * window)) / 1000.0
    for name in MEANS:
        value = rows[name][row]
        table.add(f"{name}_sum", at * float(WINDOW_SECONDS), job[row], value * seconds)
        table.add(
            f"{name}_seconds",
            at * float(WINDOW_SECONDS),
            job[row],
            np.where(np.isnan(value), np.nan, seconds),
        )


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
        peak = basis.full_peak
        if peak is not None and basis.reason is None:
            causal, palm = mfu.flops_of(steps, basis)
            values |= {"kept_flops": causal, "kept_palm_flops": palm}
            counted = steps["is_steady"] & np.isfinite(causal)
            values["steady_flops"] = np.where(counted, causal, np.nan)
            values["steady_peak_flop_seconds"] = np.where(counted, length * peak, np.nan)
    for name, value in values.items():
        _add_spread(table, name, timeline.job, (steps["begin"], steps["ts"], value))


def _add_spread(table: _Sums, name: str, job: int, parts: tuple[Floats, Floats, Floats]) -> None:
    """Add values of intervals to the windows they overlap, in proportion."""
    begin, end, value = parts
    first = np.floor(begin / WINDOW_SECONDS).astype(np.int64)
    last = np.maximum(first, np.ceil(end / WINDOW_SECONDS).astype(np.int64) - 1)
    count = last - first + 1
    row = np.repeat(np.arange(begin.size), count)
    at = np.repeat(first, count) + np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
    start = (at * WINDOW_SECONDS).astype(np.float64)
    overlap = np.minimum(end[row], start + WINDOW_SECONDS) - np.maximum(begin[row], start)
    share = np.maximum(overlap, 0.0) / (end - begin)[row]
    table.add(name, start, np.full(row.size, job, dtype=np.int64), value[row] * share)
