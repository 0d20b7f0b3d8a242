"""What a run's MFU is held against: its own usual, its own best, and what runs like it reach."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
BASELINE_STEPS: Final = 200
LEAST_BASELINE_STEPS: Final = 50
NEWEST_STEPS: Final = 20
LEAST_TREND_POINTS: Final = 8
LEAST_PEERS: Final = 3
"""A norm of fewer other runs is an anecdote."""


def newest_median(ratios: Floats) -> float | None:
    """Median MFU of the newest 20 steps; None with fewer."""
    return float(np.median(ratios[-NEWEST_STEPS:])) if ratios.size >= NEWEST_STEPS else None


def usual(ratios: Floats) -> float | None:
    """Median MFU of up to 200 steps before the newest 20; None with fewer than 50."""
    before = ratios[-(BASELINE_STEPS + NEWEST_STEPS) : -NEWEST_STEPS]
    return float(np.median(before)) if before.size >= LEAST_BASELINE_STEPS else None


def fixed_reference(trend: Sequence[float | None]) -> float | None:
    """Median of the first quarter of a long course, which a slow slide does not pull down; None of a short one."""
    known = [value for value in trend if value is not None]
    if len(known) < LEAST_TREND_POINTS:
        return None
    return median(known[: max(2, len(known) // 4)])


def norm(others: Iterable[float]) -> float | None:
    """Median MFU of other runs of the same class on the same GPUs; None of fewer than three."""
    known = list(others)
    return median(known) if len(known) >= LEAST_PEERS else None
