"""Rules about the fleet and its money."""

from collections.abc import Iterator
from typing import Any

from flopwatch.query import Severity
from flopwatch_collector.alerting.levels import levels
from flopwatch_collector.alerting.rules_reading import (
    evaluation_gap,
    gone,
    identity,
    percent,
)
from flopwatch_collector.alerting.state import Condition, Reading
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import Facts

IDLE_GPU_HOURS = 24.0
"""So many GPU-hours at nothing are told whatever the budget."""


def below_breakeven(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """The fleet's utilisation has gone below the line and stayed there; information, never a page."""
    verdict = facts.verdict
    if verdict is None:
        return
    condition: Condition = "bad" if verdict.code == "below_sustained" else "between"
    if verdict.code == "insufficient_data":
        condition = "missing"
    elif verdict.code == "above_sustained":
        condition = "good"
    mean, line = verdict.mean_30d_ratio, verdict.line_ratio
    yield Reading(
        rule="BelowBreakeven",
        severity="info",
        labels={"cluster": facts.cluster},
        condition=condition,
        time_seconds=facts.now,
        for_seconds=0.0,
        keep_seconds=0.0,
        values={"mean": mean, "line": None if verdict.never else line},
        summary=f"30-day utilisation {percent(mean)}: owning pays at no utilisation at these costs"
        if verdict.never
        else f"30-day utilisation {percent(mean)} below the {percent(line)} breakeven line",
        gap_seconds=evaluation_gap(settings),
    )


def budget_burn(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """A budget that is or will be used up, and a job beyond its declared GPU-hours or a day's worth of idle ones."""
    own = levels("BudgetBurn", settings)
    for budget in facts.budgets:
        bad = budget.state in ("warning", "critical")
        severity: Severity = "critical" if budget.state == "critical" else "warning"
        yield _burn(
            facts, settings, {"cluster": facts.cluster, "budget": budget.name},
            severity=severity,
            condition="missing" if budget.state == "unknown" else "bad" if bad else "good",
            values={"budget": budget.name, "used": budget.used_ratio, "forecast": budget.forecast_ratio},
            summary=f"Budget {budget.name}: {percent(budget.used_ratio)} used, {percent(budget.forecast_ratio)} ahead",
        )  # fmt: skip
    for job in facts.jobs:
        spending = job.run.spending
        if job.row.state == "ended":
            yield gone("BudgetBurn", job, "ended")
            continue
        if spending is None:
            continue
        over = spending.declared_gpu_hours is not None and (
            spending.used_gpu_hours > own.level * spending.declared_gpu_hours
        )
        idle = spending.idle_gpu_hours > IDLE_GPU_HOURS
        condition: Condition = "bad" if over or idle else "good"
        yield _burn(
            facts, settings, identity(job.row),
            severity="warning",
            condition=condition,
            values={"budget": job.row.name, "used": spending.used_gpu_hours, "forecast": spending.declared_gpu_hours},
            summary=f"{job.row.name}: {spending.used_gpu_hours:.0f} GPU-hours used, {spending.idle_gpu_hours:.0f} idle",
        )  # fmt: skip


def _burn(facts: Facts, settings: AlertSettings, labels: dict[str, str], **said: Any) -> Reading:
    own = levels("BudgetBurn", settings)
    return Reading(
        rule="BudgetBurn",
        labels=labels,
        time_seconds=facts.now,
        for_seconds=own.for_seconds,
        keep_seconds=own.keep_seconds,
        gap_seconds=evaluation_gap(settings),
        **said,
    )
