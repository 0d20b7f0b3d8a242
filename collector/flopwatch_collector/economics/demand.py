"""The demand's duration curve: how many GPUs are worth owning, and what is a burst.

GPU number k is worth owning when k GPUs or more are asked for during more than U* of the time. An average hides
it: 96 GPUs always busy and 32 more for a fifth of the time are 80 % of 128, and the last 32 do not pay.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class DurationCurve:
    """Levels of demand, highest first, and the share of the time for which at least so many GPUs were asked for."""

    gpus: tuple[float, ...]
    time_ratio: tuple[float, ...]

    def share_at(self, gpus: float) -> float:
        """Share of the time for which at least so many GPUs were asked for."""
        return max(
            (share for level, share in zip(self.gpus, self.time_ratio, strict=True) if level >= gpus),
            default=0.0,
        )

    def ownable(self, u_star: float | None) -> int | None:
        """How many GPUs are worth owning; None where nothing is known of the demand."""
        if not self.gpus:
            return None
        if u_star is None:
            return 0
        worth = (level for level, share in zip(self.gpus, self.time_ratio, strict=True) if share > u_star)
        return int(max(worth, default=0.0))

    @property
    def most(self) -> float | None:
        """The highest demand."""
        return self.gpus[0] if self.gpus else None

    @property
    def mean(self) -> float | None:
        """Mean of the demand over time."""
        if not self.gpus:
            return None
        before, total = 0.0, 0.0
        for level, share in zip(self.gpus, self.time_ratio, strict=True):
            total += level * (share - before)
            before = share
        return total

    @property
    def steadiness(self) -> float | None:
        """The demand of nine tenths of the time over its mean: 1 is perfectly steady."""
        mean = self.mean
        if not mean:
            return None
        base = max(
            (level for level, share in zip(self.gpus, self.time_ratio, strict=True) if share >= 0.9),
            default=0.0,
        )
        return base / mean


def duration_curve(levels: Iterable[tuple[float, float]]) -> DurationCurve:
    """The curve of (GPUs asked for, seconds or share of the time) in any order."""
    sums: dict[float, float] = {}
    for gpus, weight in levels:
        if weight > 0.0:
            sums[gpus] = sums.get(gpus, 0.0) + weight
    total = sum(sums.values())
    ordered = sorted(sums, reverse=True)
    shares, passed = [], 0.0
    for gpus in ordered:
        passed += sums[gpus]
        shares.append(min(1.0, passed / total))
    return DurationCurve(gpus=tuple(ordered), time_ratio=tuple(shares))
