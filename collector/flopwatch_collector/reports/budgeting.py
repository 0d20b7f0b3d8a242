"""Budgets against the ledger: what was used of each, from the same rows as the pages."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from flopwatch.answers.budget import Budgets, BudgetStanding, Overrun
from flopwatch_collector.compute import money
from flopwatch_collector.compute.chargeback import is_platform_loss
from flopwatch_collector.compute.classes import is_leased
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.money import HOUR_MILLISECONDS
from flopwatch_collector.config_budgets import BudgetSettings
from flopwatch_collector.economics import budgets
from flopwatch_collector.economics.budgets import DeclaredJob, Spending
from flopwatch_collector.model import Columns, JobRecord
from flopwatch_collector.reports.making import MOMENT_SECONDS, Question, ReportMaker
from flopwatch_collector.watched import BudgetHealth

FRESH_SECONDS = 300.0
"""Alerts look at budgets that were read this lately."""


@dataclass(kw_only=True)
class BudgetBook:
    """Reads what was used."""

    maker: ReportMaker
    _newest: tuple[float, tuple[BudgetStanding, ...]] = (-math.inf, ())

    def health(self, now: float) -> tuple[BudgetHealth, ...]:
        """Budgets as alert rules look at them, read every few minutes."""
        read, standings = self._newest
        if not 0.0 <= now - read < FRESH_SECONDS:
            standings = self.standings(now)
            self._newest = (now, standings)
        return _health(standings)

    def at(self, now: float) -> tuple[BudgetHealth, ...]:
        """The same of a time that is past."""
        return _health(self.standings(now))

    def answer(self) -> Budgets:
        """All budgets and overruns, now."""
        status = self.maker.status()
        return Budgets(
            status=status,
            budgets=self.standings(status.now_seconds),
            overruns=self.overruns(status.now_seconds),
        )

    def of_report(self, asked: Question) -> tuple[BudgetStanding, ...]:
        """Budgets as they stood at a report's end, which may be the end of their period."""
        end = min(asked.end_seconds, self.maker.status().now_seconds)
        found = self.standings(end - MOMENT_SECONDS)
        if asked.cluster is None:
            return found
        return tuple(each for each in found if each.scope == "cluster" and each.who == asked.cluster)

    def standings(self, now: float) -> tuple[BudgetStanding, ...]:
        """Every budget in its current period; budgets of the same period share one reading of the ledger."""
        sources, zone = self.maker.sources, self.maker.zone
        read: dict[tuple[float, float], Columns] = {}
        result = []
        for budget in sources.settings.budgets:
            start, _ = budgets.period_of(budget.period, now, zone)
            recent = now - budgets.PACE_SECONDS
            for span in ((start, now), (recent, now)):
                if span not in read:
                    rows = sources.accounting.ledger_rows(*span)
                    read[span] = take(rows, is_leased(rows))
            spending = self._spending(budget, read[start, now], read[recent, now], now)
            result.append(budgets.assess(budget, spending, now, zone))
        return tuple(result)

    def _spending(self, budget: BudgetSettings, since: Columns, recent: Columns, now: float) -> Spending:
        known = min((gpu.from_seconds for gpu in self.maker.sources.fleet.state().gpus.values()), default=now)
        return Spending(
            used=self._amount(budget, since),
            recent=self._amount(budget, recent),
            recent_seconds=min(budgets.PACE_SECONDS, max(0.0, now - known)),
        )

    def _amount(self, budget: BudgetSettings, rows: Columns) -> float | None:
        """Money or GPU-hours of a budget's own rows; platform losses are not charged."""
        own = take(rows, self._is_of(budget, rows) & ~is_platform_loss(rows))
        if budget.amount is None:
            return int(own["gpu_milliseconds"].sum()) / HOUR_MILLISECONDS
        return money.total(own, self.maker.sources.rates())

    def _is_of(self, budget: BudgetSettings, rows: Columns) -> np.typing.NDArray[np.bool_]:
        state, who = self.maker.sources.fleet.state(), budget.who
        if who is None:
            return np.ones(rows["ts"].size, dtype=np.bool_)
        if budget.scope in ("cluster", "group"):
            nodes = [
                number
                for number, node in state.nodes.items()
                if who == (node.cluster if budget.scope == "cluster" else self.maker.group_of(node.name))
            ]
            return np.asarray(np.isin(rows["node"], np.array(nodes, dtype=np.int64)))
        jobs = [number for number, job in state.jobs.items() if _fits(budget, job, who)]
        return np.asarray(np.isin(rows["job"], np.array(jobs, dtype=np.int64)))

    def overruns(self, now: float) -> tuple[Overrun, ...]:
        """Jobs that used more than they were declared to."""
        sources = self.maker.sources
        declared = [job for job in sources.fleet.state().jobs.values() if job.declared_gpu_hours is not None]
        first = min((job.start_seconds or now for job in declared), default=math.inf)
        if first >= now:
            return ()
        rows = sources.accounting.ledger_rows(first, now)
        return budgets.overruns(_declared(declared, take(rows, is_leased(rows))))


def _health(standings: Iterable[BudgetStanding]) -> tuple[BudgetHealth, ...]:
    return tuple(
        BudgetHealth(
            name=each.name,
            state=each.state,
            used_ratio=each.used_ratio,
            forecast_ratio=each.forecast_ratio,
        )
        for each in standings
    )


def _fits(budget: BudgetSettings, job: JobRecord, who: str) -> bool:
    if budget.scope == "job":
        return fnmatchcase(job.name, who)
    return who == (job.user if budget.scope == "user" else job.account)


def _declared(jobs: Iterable[JobRecord], rows: Columns) -> Iterable[DeclaredJob]:
    for job in jobs:
        used = int(rows["gpu_milliseconds"][rows["job"] == job.number].sum()) / HOUR_MILLISECONDS
        yield DeclaredJob(
            job_id=job.job_id,
            name=job.name,
            user=job.user,
            account=job.account,
            declared_gpu_hours=job.declared_gpu_hours,
            used_gpu_hours=used,
        )
