"""Stragglers that the hardware confirms: GPUs of one node clearly slower than all others of the run, and slower steps.

A window of five minutes is confirmed when the GPUs below 0.92 of the run's median SM clock are all of one node, and
all others are at 0.97 of it at least. What its steps take beyond the run's usual step time is the straggler's.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.buckets import WINDOW_SECONDS
from flopwatch_collector.compute.cause import PEER_RATIO, SLOW_CLOCK_RATIO
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import Columns

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
LEAST_GPUS: Final = 3
BASELINE_SECONDS: Final = 7200.0
"""The usual step time is that of so long before; a quarter of it undisturbed is enough."""
BASELINE_PERCENTILE: Final = 25.0
LEAST_STEPS: Final = 5
NOTABLE_RATIO: Final = 1.02
"""Steps that take less than two percent longer than usual are usual."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Straggling:
    """Of every step: the part of it, in seconds, that a confirmed straggler took; 0 where none did."""

    seconds: Floats


def confirmed_windows(samples: Columns) -> dict[int, Integers]:
    """By job: numbers (since the epoch) of the windows in which one node's GPUs are clearly slower than all others."""
    job, window, gpu, node, clock = _means(samples)
    if not job.size:
        return {}
    order = np.lexsort((gpu, window, job))
    job, window, node, clock = job[order], window[order], node[order], clock[order]
    first = np.flatnonzero(np.concatenate(([True], (np.diff(job) != 0) | (np.diff(window) != 0))))
    last = np.append(first[1:], job.size)
    spread = np.minimum.reduceat(clock, first) <= SLOW_CLOCK_RATIO * np.maximum.reduceat(clock, first)
    found: dict[int, list[int]] = {}
    for start, end in zip(first[spread].tolist(), last[spread].tolist(), strict=True):
        if _confirmed(node[start:end], clock[start:end]):
            found.setdefault(int(job[start]), []).append(int(window[start]))
    return {number: np.array(windows, dtype=np.int64) for number, windows in found.items()}


def _means(samples: Columns) -> tuple[Integers, Integers, Integers, Integers, Floats]:
    """(job, window, GPU, node, mean SM clock) of every stretch of samples, which are sorted by GPU and time."""
    known = np.flatnonzero(np.isfinite(samples["sm_clock_hertz"]) & (samples["job"] > 0))
    job, gpu, node = (samples[name][known].astype(np.int64) for name in ("job", "gpu", "node"))
    window = ((samples["ts"][known] - 1e-6) // WINDOW_SECONDS).astype(np.int64)
    if not known.size:
        return job, window, gpu, node, np.empty(0)
    new = (np.diff(job) != 0) | (np.diff(gpu) != 0) | (np.diff(window) != 0)
    first = np.flatnonzero(np.concatenate(([True], new)))
    count = np.diff(np.append(first, known.size))
    mean = np.add.reduceat(samples["sm_clock_hertz"][known], first) / count
    return job[first], window[first], gpu[first], node[first], mean


def _confirmed(node: Integers, clock: Floats) -> bool:
    if clock.size < LEAST_GPUS:
        return False
    usual = float(np.median(clock))
    slow = clock <= SLOW_CLOCK_RATIO * usual
    if not slow.any() or 2 * int(slow.sum()) >= clock.size:
        return False
    return bool(np.unique(node[slow]).size == 1 and (clock[~slow] >= PEER_RATIO * usual).all())


def straggling(timeline: JobTimeline, windows: Integers) -> Straggling | None:
    """What stragglers took of the steps that began in confirmed windows; None where nothing was taken.

    Reports over more than a window say nothing of single windows, and are left alone.
    """
    steps = timeline.steps
    taken = np.zeros(steps["ts"].size)
    length = steps["ts"] - steps["begin"]
    each = np.divide(
        length, steps["steps_covered"], out=np.zeros(length.size), where=steps["steps_covered"] > 0
    )
    plain = ~steps["lost"] & steps["is_steady"] & (length > 0)
    began = np.floor(steps["begin"] / WINDOW_SECONDS).astype(np.int64)
    short = (length > 0) & (length <= WINDOW_SECONDS)
    for number in windows.tolist():
        start = number * float(WINDOW_SECONDS)
        before = plain & (steps["ts"] <= start) & (steps["ts"] > start - BASELINE_SECONDS)
        if before.sum() < LEAST_STEPS:
            continue
        usual = float(np.percentile(each[before], BASELINE_PERCENTILE))
        slower = short & (began == number) & (each > NOTABLE_RATIO * usual)
        taken[slower] = (length - usual * steps["steps_covered"])[slower]
    return Straggling(seconds=taken) if (taken > 0).any() else None
