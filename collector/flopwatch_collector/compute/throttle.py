"""What throttling takes of a run's steps: the share of time with a thermal or power-brake bit, times the lost clock.

A synchronous run goes at the pace of its slowest GPU, so the GPU that loses most decides.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.buckets import WINDOW_MILLISECONDS
from flopwatch_collector.compute.gpu_state import cover, sorted_samples
from flopwatch_collector.model import Columns

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
THROTTLE_BITS = 0x08 | 0x20 | 0x40 | 0x80
"""NVML's clock event reasons: hardware slowdown, software thermal, hardware thermal, hardware power brake."""
THROTTLE_SAMPLES = ("clock_event_reasons", "sm_clock_hertz")


@dataclass(frozen=True, kw_only=True, slots=True)
class Throttling:
    """By five-minute window (its number since the epoch): the share of a run's step time that throttling takes."""

    window: Integers
    share: Floats


def throttling(samples: Columns, now: float) -> dict[int, Throttling]:
    """By job, where any GPU of it was throttled. The usual clock is that of its GPUs that are not.

    Of a job whose GPUs are all throttled at once, or whose clocks are not known, nothing is said.
    """
    if not all(name in samples for name in THROTTLE_SAMPLES):
        return {}
    rows = sorted_samples(samples)
    job = np.nan_to_num(rows["job"]).astype(np.int64)
    bits = np.nan_to_num(rows["clock_event_reasons"]).astype(np.int64) & THROTTLE_BITS
    slowed = (bits != 0) & (job > 0) & np.isfinite(rows["sm_clock_hertz"])
    jobs = np.unique(job[slowed])
    if not jobs.size:
        return {}
    gpu = rows["gpu"].astype(np.int64)
    start, end, _ = cover(rows, gpu, now)
    found = {}
    for number in jobs.tolist():
        own = np.flatnonzero(job == number)
        part = (gpu[own], start[own], end[own], rows["sm_clock_hertz"][own], slowed[own])
        if (taken := _taken(*part)) is not None:
            found[number] = taken
    return found


def _taken(
    gpu: Integers, start: Integers, end: Integers, clock: Floats, slowed: npt.NDArray[np.bool_]
) -> Throttling | None:
    row, window = _windows(start, end)
    span = np.minimum(end[row], (window + 1) * WINDOW_MILLISECONDS) - np.maximum(
        start[row], window * WINDOW_MILLISECONDS
    )
    numbers, place = np.unique(window, return_inverse=True)
    usual = np.array([_median(clock[row], (place == index) & ~slowed[row]) for index in range(numbers.size)])
    with_clock = slowed[row] & np.isfinite(usual[place])
    lost = np.zeros(row.size)
    lost[with_clock] = np.maximum(0.0, 1.0 - clock[row][with_clock] / usual[place][with_clock])
    gpus, column = np.unique(gpu[row], return_inverse=True)
    total, known = np.zeros((2, numbers.size, gpus.size))
    np.add.at(total, (place, column), lost * span)
    np.add.at(known, (place, column), span)
    share = np.divide(total, known, out=np.zeros_like(total), where=known > 0).max(axis=1)
    return Throttling(window=numbers[share > 0], share=share[share > 0]) if (share > 0).any() else None


def _windows(start: Integers, end: Integers) -> tuple[Integers, Integers]:
    """Each row as often as it touches windows, and the numbers of these."""
    first, last = start // WINDOW_MILLISECONDS, np.maximum(start, end - 1) // WINDOW_MILLISECONDS
    count = last - first + 1
    row = np.repeat(np.arange(start.size), count)
    return row, np.repeat(first, count) + np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)


def _median(values: Floats, chosen: npt.NDArray[np.bool_]) -> float:
    known = values[chosen & np.isfinite(values)]
    return float(np.median(known)) if known.size else np.nan
