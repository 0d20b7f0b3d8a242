"""What the newest evaluation of the rules saw of runs and budgets, as readings: what is on no page of all jobs."""

from collections.abc import Iterator
from statistics import median

import numpy as np

from flopwatch import fleet_metrics as table
from flopwatch.metrics import Metric
from flopwatch_collector.compute.detection.spikes import spike_share
from flopwatch_collector.facts import Facts, JobFacts
from flopwatch_collector.prometheus.samples import Reading
from flopwatch_collector.watched import BudgetHealth

RECENT_LAUNCH_SECONDS = 1_800.0
SAVES = 3
SPIKE_STEPS = 200
BUDGET_STATES = ("ok", "warning", "critical", "unknown")
HOUR_SECONDS = 3_600.0
Known = tuple[Metric, tuple[str, ...], float | None]


def watched_readings(facts: Facts | None) -> Iterator[Reading]:
    """Every series that has a value; none before the first evaluation, and of a collector that evaluates none."""
    if facts is None:
        return
    for metric, labels, value in _all(facts):
        if value is not None:
            yield Reading(metric=metric, values=labels, value=float(value))


def _all(facts: Facts) -> Iterator[Known]:
    for job in facts.jobs:
        if job.row.state != "ended":
            yield from _job(job, facts.now)
    for budget in facts.budgets:
        yield from _budget(budget)


def _job(job: JobFacts, now: float) -> Iterator[Known]:
    name, run = (job.row.cluster, job.row.job_id), job.run
    saves = run.saves_seconds
    yield table.JOB_NORM, name, run.norm_ratio
    if run.launches:
        yield (
            table.JOB_LAUNCHES,
            name,
            sum(1 for begin in run.launches if now - begin <= RECENT_LAUNCH_SECONDS),
        )
    yield table.JOB_STUCK_LAUNCHES, name, run.launches_without_progress
    yield table.JOB_SAVE, name, min(saves[-SAVES:]) if len(saves) >= SAVES else None
    yield table.JOB_USUAL_SAVE, name, median(saves[:-SAVES]) if len(saves) > SAVES else None
    yield table.JOB_SAVE_SHARE, name, run.checkpoint_share
    if run.steps is not None:
        yield table.JOB_SPIKES, name, spike_share(np.array(run.steps.seconds[-SPIKE_STEPS:]))
    if run.spending is not None:
        declared = run.spending.declared_gpu_hours
        yield table.JOB_USED, name, run.spending.used_gpu_hours * HOUR_SECONDS
        yield table.JOB_IDLE, name, run.spending.idle_gpu_hours * HOUR_SECONDS
        yield table.JOB_DECLARED, name, None if declared is None else declared * HOUR_SECONDS


def _budget(budget: BudgetHealth) -> Iterator[Known]:
    yield table.BUDGET_USED, (budget.name,), budget.used_ratio
    yield table.BUDGET_FORECAST, (budget.name,), budget.forecast_ratio
    for state in BUDGET_STATES:
        yield table.BUDGET_STATE, (budget.name, state), float(state == budget.state)
