"""Budgets: their calendar periods, what will have been used at the end, and whether that is too much. Pure.

Forecast: what was used + pace x remaining days; the pace is what the last seven days took (a whole week, so that
quiet weekends count), over less where less is known, at least six hours.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final

from flopwatch.answers.budget import BudgetReason, BudgetStanding, BudgetState, Overrun
from flopwatch_collector.config_budgets import BudgetPeriod, BudgetSettings

DAY_SECONDS: Final = 86_400.0
PACE_SECONDS: Final = 7 * DAY_SECONDS
LEAST_PACE_SECONDS: Final = 6 * 3_600.0
DECLARED_FACTOR: Final = 1.2
"""So far beyond its declared GPU-hours a job may go."""
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True, kw_only=True, slots=True)
class Spending:
    """What the ledger says of a budget: money or GPU-hours, ``None`` where it is not known."""

    used: float | None
    """Since the period's start."""
    recent: float | None
    """Of the last ``recent_seconds``, also before the period's start."""
    recent_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredJob:
    """A job with the GPU-hours that were declared for it, and those it used."""

    job_id: str
    name: str
    user: str | None
    account: str | None
    declared_gpu_hours: float | None
    used_gpu_hours: float


def period_of(period: BudgetPeriod, now: float, zone: tzinfo) -> tuple[float, float]:
    """(start, end) in epoch seconds of the calendar period that ``now`` lies in; weeks begin on Monday."""
    today = datetime.fromtimestamp(now, tz=zone).date()
    if period == "day":
        first, last = today, today + timedelta(days=1)
    elif period == "week":
        first = today - timedelta(days=today.weekday())
        last = first + timedelta(days=7)
    else:
        months = _MONTHS[period]
        first = date(today.year, (today.month - 1) // months * months + 1, 1)
        last = _months_later(first, months)
    return _midnight(first, zone), _midnight(last, zone)


def _months_later(day: date, months: int) -> date:
    count = day.year * 12 + day.month - 1 + months
    return date(count // 12, count % 12 + 1, 1)


def _midnight(day: date, zone: tzinfo) -> float:
    return datetime.combine(day, time(), tzinfo=zone).timestamp()


def pace_per_day(spending: Spending) -> float | None:
    """What a day takes at the pace of the last week; None where too little is known."""
    if spending.recent is None or spending.recent_seconds < LEAST_PACE_SECONDS:
        return None
    return spending.recent / spending.recent_seconds * DAY_SECONDS


def assess(budget: BudgetSettings, spending: Spending, now: float, zone: tzinfo) -> BudgetStanding:
    """Where a budget stands in its current period."""
    start, end = period_of(budget.period, now, zone)
    limit = budget.amount if budget.amount is not None else budget.gpu_hours or 0.0
    pace, used = pace_per_day(spending), spending.used
    forecast = None if used is None or pace is None else used + pace * max(0.0, end - now) / DAY_SECONDS
    used_ratio = None if used is None else used / limit
    forecast_ratio = None if forecast is None else forecast / limit
    state, reason = judged(used_ratio, forecast_ratio, budget.warn_ratio)
    if state == "unknown" and budget.amount is not None:
        reason = "no_price"
    return BudgetStanding(
        name=budget.name,
        scope=budget.scope,
        who=budget.who,
        period=budget.period,
        start_seconds=start,
        end_seconds=end,
        unit="money" if budget.amount is not None else "gpu_hours",
        limit=limit,
        used=used,
        used_ratio=used_ratio,
        pace_per_day=pace,
        forecast=forecast,
        forecast_ratio=forecast_ratio,
        warn_ratio=budget.warn_ratio,
        state=state,
        reason=reason,
    )


def judged(
    used_ratio: float | None, forecast_ratio: float | None, warn_ratio: float
) -> tuple[BudgetState, BudgetReason | None]:
    """(state, why): ``critical`` when used up, or foreseen to be exceeded; ``warning`` from ``warn_ratio`` on."""
    if used_ratio is None:
        return "unknown", "no_data"
    foreseen = forecast_ratio if forecast_ratio is not None else used_ratio
    if used_ratio >= 1.0:
        return "critical", "used"
    if foreseen > 1.0:
        return "critical", "forecast"
    if used_ratio >= warn_ratio:
        return "warning", "used"
    return ("warning", "forecast") if foreseen >= warn_ratio else ("ok", None)


def overruns(jobs: Iterable[DeclaredJob]) -> tuple[Overrun, ...]:
    """Jobs that used more than 1.2 times their declared GPU-hours, the farthest beyond first."""
    found = [
        Overrun(
            job_id=job.job_id,
            name=job.name,
            user=job.user,
            account=job.account,
            declared_gpu_hours=job.declared_gpu_hours,
            used_gpu_hours=job.used_gpu_hours,
            ratio=job.used_gpu_hours / job.declared_gpu_hours,
        )
        for job in jobs
        if job.declared_gpu_hours and job.used_gpu_hours > DECLARED_FACTOR * job.declared_gpu_hours
    ]
    return tuple(sorted(found, key=lambda each: (-each.ratio, each.job_id)))
