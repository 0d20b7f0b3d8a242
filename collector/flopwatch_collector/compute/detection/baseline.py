"""What a run's MFU is held against: its own usual, its own best, and what runs like it reach."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from flopwatch.query import MfuFigure
from flopwatch_collector.compute.detection.middle import middle

K = TypeVar("K")
Floats = npt.NDArray[np.float64]
BASELINE_STEPS: Final = 200
LEAST_BASELINE_STEPS: Final = 50
NEWEST_STEPS: Final = 20
LEAST_TREND_POINTS: Final = 8
LEAST_PEERS: Final = 3
"""A norm of fewer other runs is an anecdote."""


def newest_median(ratios: Floats) -> float | None:
    """Median MFU of the newest 20 steps; None with fewer."""
    return middle(ratios[-NEWEST_STEPS:]) if ratios.size >= NEWEST_STEPS else None


def usual(ratios: Floats) -> float | None:
    """Median MFU of up to 200 steps before the newest 20; None with fewer than 50."""
    before = ratios[-(BASELINE_STEPS + NEWEST_STEPS) : -NEWEST_STEPS]
    return middle(before) if before.size >= LEAST_BASELINE_STEPS else None


def fixed_reference(trend: Sequence[float | None]) -> float | None:
    """Median of the first quarter of a long course, which a slow slide does not pull down; None of a short one."""
    known = [value for value in trend if value is not None]
    if len(known) < LEAST_TREND_POINTS:
        return None
    return median(known[: max(2, len(known) // 4)])


def norms(figures: Mapping[K, MfuFigure]) -> dict[K, float]:
    """Of each run: the median MFU of other runs with as many FLOPs a token, on the same GPU, in the same format.

    Runs with fewer than three others have none; figures that a trainer printed are not compared.
    """
    groups: dict[tuple[object, ...], list[tuple[float, K]]] = {}
    for key, figure in figures.items():
        value = figure.measured_ratio
        if value is not None and figure.flops_per_token and figure.basis != "steps+reported":
            kind = (f"{figure.flops_per_token:.1e}", figure.gpu_model, figure.dtype)
            groups.setdefault(kind, []).append((value, key))
    found = {}
    for group in groups.values():
        if len(group) <= LEAST_PEERS:
            continue
        group.sort(key=lambda one: one[0])
        values = [value for value, _ in group]
        for place, (_, key) in enumerate(group):
            found[key] = _median_without(values, place)
    return found


def _median_without(values: Sequence[float], place: int) -> float:
    """The median of sorted values without one of them."""
    count = len(values) - 1
    low, high = ((count - 1) // 2, count // 2)
    first, last = (values[at + 1] if at >= place else values[at] for at in (low, high))
    return (first + last) / 2.0
