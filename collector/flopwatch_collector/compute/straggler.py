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
Flags = npt.NDArray[np.bool_]
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


def confirmed_windows(samples: Columns, job: int) -> npt.NDArray[np.int64]:
    """Numbers (since the epoch) of the windows in which one node's GPUs of a job are clearly slower than the rest."""
    own = (samples["job"] == job) & np.isfinite(samples["sm_clock_hertz"])
    if not own.any():
        return np.empty(0, dtype=np.int64)
    window = ((samples["ts"][own] - 1e-6) // WINDOW_SECONDS).astype(np.int64)
    gpu, node = samples["gpu"][own].astype(np.int64), samples["node"][own].astype(np.int64)
    clock = samples["sm_clock_hertz"][own]
    return np.array(
        [
            number
            for number in np.unique(window).tolist()
            if _confirmed(gpu[window == number], node[window == number], clock[window == number])
        ],
        dtype=np.int64,
    )


def _confirmed(gpu: npt.NDArray[np.int64], node: npt.NDArray[np.int64], clock: Floats) -> bool:
    numbers, first, place = np.unique(gpu, return_index=True, return_inverse=True)
    if numbers.size < LEAST_GPUS:
        return False
    mean = np.bincount(place, weights=clock) / np.bincount(place)
    usual = float(np.median(mean))
    slow = mean <= SLOW_CLOCK_RATIO * usual
    if not slow.any() or 2 * int(slow.sum()) >= numbers.size:
        return False
    return bool(np.unique(node[first][slow]).size == 1 and (mean[~slow] >= PEER_RATIO * usual).all())


def straggling(timeline: JobTimeline, windows: npt.NDArray[np.int64]) -> Straggling | None:
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
