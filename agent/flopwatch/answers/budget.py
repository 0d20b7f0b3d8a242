"""Budgets and quotas: what was used of them, and where the period will end at the present pace."""

from dataclasses import dataclass
from typing import Literal

from flopwatch.answers.frame import Status

BudgetUnit = Literal["money", "gpu_hours"]
BudgetState = Literal["ok", "warning", "critical", "unknown"]
BudgetReason = Literal["used", "forecast", "no_price", "no_data"]


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetStanding:
    """One budget in its current period."""

    name: str
    scope: str
    """``site``, ``user``, ``account``, ``cluster``, ``group`` or ``job``."""
    who: str | None
    period: str
    start_seconds: float
    end_seconds: float
    unit: BudgetUnit
    limit: float
    used: float | None
    """Since the period's start, platform losses credited; ``None`` where it is not known."""
    used_ratio: float | None
    pace_per_day: float | None
    """What the last seven days took, a day; over less where less is known."""
    forecast: float | None
    """At the period's end, at that pace."""
    forecast_ratio: float | None
    warn_ratio: float
    state: BudgetState
    """``critical``: used up, or will be; ``warning``: beyond ``warn_ratio``, or will be."""
    reason: BudgetReason | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Overrun:
    """A job that used more GPU-hours than were declared for it."""

    job_id: str
    name: str
    user: str | None
    account: str | None
    declared_gpu_hours: float
    used_gpu_hours: float
    ratio: float
    """Used / declared; above 1.2."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Budgets:
    """All budgets, and jobs beyond what was declared for them."""

    status: Status
    budgets: tuple[BudgetStanding, ...]
    overruns: tuple[Overrun, ...]
