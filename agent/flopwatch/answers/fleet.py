"""The Fleet page."""

from dataclasses import dataclass

from flopwatch.answers.alert import AlertRow
from flopwatch.answers.frame import Series, Status, Tile
from flopwatch.answers.job import JobRow
from flopwatch.answers.ledger import Day, Ledger, Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """The Fleet page. All ledger figures derive from the same ledger answer."""

    status: Status
    range_seconds: float
    verdict: Verdict
    utilisation: Tile
    """U_bill of today so far; the reference is the breakeven line."""
    mfu: Tile
    """Fleet training MFU of running instrumented jobs; the reference is their GPU-weighted target."""
    mfu_coverage_ratio: float | None
    """Share of leased GPU time whose job has an MFU."""
    waste: Tile
    """Wasted GPU-hours today."""
    waste_money: Tile
    """Cost of today's waste; the reference is yesterday's at the same time of day."""
    waste_money_per_day: float | None
    alerts_by_severity: dict[str, int]
    ledger_today: Ledger
    days: tuple[Day, ...]
    """The last 30 days, oldest first, today last."""
    series: Series
    """Columns ``kernel_active``, ``tensor_active``, ``mfu`` as ratios over ``range_seconds``."""
    mfu_target_ratio: float | None
    top_jobs: tuple[JobRow, ...]
    """Jobs that wasted most today, most first."""
    alerts: tuple[AlertRow, ...]
    mfu_by_money_ratio: float | None = None
    """The same mean as the tile's, every job weighted by what its GPU time cost; ``None`` without a price."""
