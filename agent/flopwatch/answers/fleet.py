"""The Fleet page."""

from dataclasses import dataclass

from flopwatch.answers.alert import AlertRow
from flopwatch.answers.frame import Series, Status, Tile
from flopwatch.answers.job import JobRow
from flopwatch.answers.ledger import Day, Ledger, Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class TeamLedger:
    """What one team was given over the range, and where it went: the team's line of a report of the same period."""

    team: str
    ledger: Ledger
    """Of the time that the team's leases held, which is its capacity here; what nobody held is not in it."""
    billed: float | None
    """Cost of that time."""
    credit: float | None
    """Losses of the platform in it; 0 or less."""
    mfu_ratio: float | None
    """Fleet training MFU of the team's instrumented jobs over the range."""
    mfu_coverage_ratio: float | None
    """Share of the team's leased GPU time whose job has an MFU."""
    days: tuple[Day, ...]
    """The last 30 days, oldest first, today last: billable time over what the team held on the day."""
    mean_30d_ratio: float | None
    """Billable time of these days over what was held in them; ``None`` where nothing was."""
    nobody_gpu_milliseconds: int
    """Capacity of the range that nobody held: it belongs to no team."""


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
    team: TeamLedger | None = None
    """Of ``Range.team``; ``None`` where none is asked for, may be seen, or can be answered from this source."""
