"""Scores of ranks by the time they compute, as NVIDIA's resiliency extension defines them: reference over own.

Persistence keeps data-driven rotation from looking like hardware: the same rank must be slow in every report.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final, TypeVar

K = TypeVar("K")
SLOW_SCORE: Final = 0.75
CLEAR_SCORE: Final = 0.85
REPORTS: Final = 3


def relative_scores(seconds: Mapping[K, Sequence[float]]) -> dict[K, float]:
    """Of every rank with times: the best rank's median over its own; 1 is the best."""
    medians = {rank: median(own) for rank, own in seconds.items() if own and min(own) > 0.0}
    best = min(medians.values(), default=0.0)
    return {rank: best / own for rank, own in medians.items()}


def individual_score(history: Sequence[float], newest: Sequence[float]) -> float | None:
    """The rank's own best median over its newest one; None without both."""
    if not history or not newest or median(newest) <= 0.0:
        return None
    return min(1.0, min(history) / median(newest))


def persistently_slow(
    reports: Sequence[Mapping[K, float]], level: float = SLOW_SCORE, count: int = REPORTS
) -> frozenset[K]:
    """Ranks below the level in each of the newest ``count`` reports; none while there are fewer."""
    newest = reports[-count:]
    if len(newest) < count:
        return frozenset()
    slow = [{rank for rank, score in report.items() if score < level} for report in newest]
    return frozenset(set.intersection(*slow))
