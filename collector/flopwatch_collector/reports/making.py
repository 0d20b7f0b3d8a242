"""``ReportMaker``: a report of any period from the collector's own parts."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from flopwatch.answers.economy import PriceTag
from flopwatch.answers.frame import Status
from flopwatch.answers.goodput import Goodput
from flopwatch.answers.ledger import Day
from flopwatch.answers.report import Coverage, Report, ReportBy, ReportJob, ReportLine
from flopwatch.query import Range
from flopwatch_collector.compute import days as calendar
from flopwatch_collector.compute import rollup
from flopwatch_collector.compute.buckets import CODE, REASON_CODE
from flopwatch_collector.compute.chargeback import charged
from flopwatch_collector.compute.classes import is_leased, to_answer, waste_by_job
from flopwatch_collector.compute.goodput import OF_RUNS, OPAQUE_OF_RUNS, together
from flopwatch_collector.compute.layout import take
from flopwatch_collector.economics.case import cases_of
from flopwatch_collector.economics.notes import prices_of
from flopwatch_collector.model import Columns
from flopwatch_collector.views import jobs as jobs_view
from flopwatch_collector.views.fleet import VERDICT_DAYS, verdict_of
from flopwatch_collector.views.nodes import signals_by_job
from flopwatch_collector.views.present import Present
from flopwatch_collector.views.rollups import by_job
from flopwatch_collector.views.sources import Moment, Sources

TOP_JOBS = 15
MOST_GOODPUT_JOBS = 40
"""Goodput reads the steps of each run: of more the smaller ones are left out, and the share is said."""
HOURLY_SECONDS = 2 * 86_400.0
MOMENT_SECONDS = 0.001
"""So long before its end a period that ends at midnight still is in its last day."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What a report is about: [start, end) in epoch seconds."""

    start_seconds: float
    end_seconds: float
    by: ReportBy = "team"
    cluster: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportMaker:
    """Makes reports. Safe from any thread."""

    sources: Sources
    present: Present
    status: Callable[[], Status]

    def report(self, asked: Question) -> Report:
        """The report."""
        rows = self.rows(asked)
        now = self.status().now_seconds
        moment = self.moment(asked)
        past = self._days(asked, VERDICT_DAYS)
        goodput, covered = self.goodput(asked, rows, now)
        rolled = self.sources.accounting.job_rollups(
            asked.start_seconds, asked.end_seconds, hourly=self.hourly(asked)
        )
        rolled = take(rolled, np.isin(rolled["job"], np.unique(rows["job"])))
        since = self.sources.accounting.provisional_from_seconds
        provisional = (
            max(since, asked.start_seconds) if since is not None and since < asked.end_seconds else None
        )
        return Report(
            status=self.status(),
            by=asked.by,
            cluster=asked.cluster,
            start_seconds=asked.start_seconds,
            end_seconds=asked.end_seconds,
            verdict=verdict_of(self.sources, past),
            ledger=to_answer(rows, self.sources.rates(), asked.start_seconds, asked.end_seconds, provisional),
            days=self._shown_days(asked),
            lines=self.lines(asked, rows),
            jobs=self.wasteful(moment, rows, rolled),
            goodput=goodput,
            goodput_coverage_ratio=covered,
            fleet_mfu_ratio=rollup.fleet_ratio(rolled),
            fleet_mfu_coverage_ratio=rollup.coverage(rolled),
            prices=self._prices(asked.end_seconds),
            coverage=self._coverage(asked, rows, provisional),
        )

    def rows(self, asked: Question) -> Columns:
        """The ledger rows that everything of a report is made from."""
        return self.sources.accounting.ledger_rows(
            asked.start_seconds, asked.end_seconds, cluster=asked.cluster
        )

    def lines(self, asked: Question, rows: Columns) -> tuple[ReportLine, ...]:
        """The chargeback of these rows."""
        return charged(rows, asked.by, self.sources.fleet.state(), self.sources.rates(), self.group_of)

    def group_of(self, node: str) -> str | None:
        """Name of the cost group of a node."""
        group = self.sources.prices.group_of(node)
        return None if group is None else group.name

    @property
    def zone(self) -> ZoneInfo:
        """Where days begin."""
        return ZoneInfo(self.sources.settings.collector.time_zone)

    def moment(self, asked: Question) -> Moment:
        """The fleet as of the period's end."""
        seconds = asked.end_seconds - asked.start_seconds
        return Moment(
            state=self.sources.fleet.state(),
            now=asked.end_seconds,
            asked=Range(seconds=seconds, cluster=asked.cluster),
        )

    def hourly(self, asked: Question) -> bool:
        """Whether the period is long enough to read rollups by the hour."""
        return asked.end_seconds - asked.start_seconds > HOURLY_SECONDS

    def _days(self, asked: Question, count: int) -> tuple[Day, ...]:
        return self.sources.accounting.days(asked.end_seconds - MOMENT_SECONDS, count, asked.cluster)

    def _shown_days(self, asked: Question) -> tuple[Day, ...]:
        """The days that the period touches; the first and the last are whole days too."""
        first = calendar.day_of(asked.start_seconds, self.zone)
        last = calendar.day_of(asked.end_seconds - MOMENT_SECONDS, self.zone)
        return self._days(asked, (last - first).days + 1)

    def wasteful(self, moment: Moment, rows: Columns, rolled: Columns) -> tuple[ReportJob, ...]:
        """The jobs that wasted most, most first."""
        wasted = waste_by_job(rows)
        known = [number for number in wasted if number in moment.state.jobs and wasted[number] > 0]
        numbers = sorted(known, key=lambda number: (-wasted[number], number))[:TOP_JOBS]
        found = self.present.jobs(moment, numbers)
        tables = jobs_view.JobTables(
            rollups=by_job(rolled),
            ledger=jobs_view.ledger_by_job(rows),
            nodes=signals_by_job(moment.state),
            waste_money=jobs_view.waste_money_by_job(self.sources, rows),
        )
        leased = is_leased(rows)
        result = []
        for number in numbers:
            row = jobs_view.job_row(self.sources, moment, found[number], tables)
            result.append(
                ReportJob(
                    job_id=row.job_id, name=row.name, user=row.user, account=row.account, kind=row.kind,
                    gpus=row.gpus, mfu=row.mfu, wall_mfu_ratio=row.wall_mfu_ratio, target=row.target,
                    leased_gpu_milliseconds=int(rows["gpu_milliseconds"][leased & (rows["job"] == number)].sum()),
                    waste_gpu_milliseconds=row.waste_gpu_milliseconds, waste_money=row.waste_money,
                    waste_by_class=row.waste_by_class, cause=row.cause,
                )
            )  # fmt: skip
        return tuple(result)

    def goodput(self, asked: Question, rows: Columns, now: float) -> tuple[Goodput | None, float | None]:
        """(goodput of the largest runs together, their share of all run time)."""
        of_runs = take(rows, _of_runs(rows))
        numbers, inverse = np.unique(of_runs["job"], return_inverse=True)
        sizes = np.bincount(inverse, weights=of_runs["gpu_milliseconds"], minlength=numbers.size)
        order = np.argsort(-sizes, kind="stable")[:MOST_GOODPUT_JOBS]
        accounting, made = self.sources.accounting, []
        for number in numbers[order].tolist():
            timeline = accounting.timeline(number, asked.start_seconds, asked.end_seconds, now)
            if timeline is not None and timeline.instrumented:
                own = take(rows, rows["job"] == number)
                span = (asked.start_seconds, asked.end_seconds)
                made.append(accounting.goodput_of(timeline, own, span, now))
        whole = float(sizes.sum())
        covered = sum(each.run_gpu_milliseconds for each in made) / whole if whole else None
        return together(made), covered

    def _prices(self, end: float) -> tuple[PriceTag, ...]:
        """Every price that money in the report is made with, with its date and source."""
        costs = self.sources.settings.costs
        today = datetime.fromtimestamp(end, tz=self.zone).date()
        tags = [tag for case in cases_of(costs) for tag in prices_of(case, today)]
        if costs.price_per_gpu_hour is not None:
            tags.insert(0, flat_price(costs.price_per_gpu_hour, costs.currency))
        return tuple(dict.fromkeys(tags))

    def _coverage(self, asked: Question, rows: Columns, provisional: float | None) -> Coverage:
        state = self.sources.fleet.state()
        clusters = {node.number: node.cluster for node in state.nodes.values()}
        own = [
            gpu.from_seconds for gpu in state.gpus.values() if asked.cluster in (None, clusters.get(gpu.node))
        ]
        first = min(own, default=None)
        seconds = asked.end_seconds - asked.start_seconds
        begin = None if first is None else max(first, asked.start_seconds)
        capacity = int(rows["gpu_milliseconds"].sum())
        unknown = int(rows["gpu_milliseconds"][rows["bucket"] == CODE["UNKNOWN"]].sum())
        leased = int(rows["gpu_milliseconds"][is_leased(rows)].sum())
        days = self._shown_days(asked)
        return Coverage(
            first_data_seconds=first,
            capacity_ratio=0.0
            if begin is None
            else max(0.0, min(1.0, (asked.end_seconds - begin) / seconds)),
            known_ratio=(capacity - unknown) / capacity if capacity else None,
            measured_ratio=int(rows["gpu_milliseconds"][_of_runs(rows)].sum()) / leased if leased else None,
            valid_days=sum(day.valid for day in days),
            total_days=len(days),
            provisional_from_seconds=provisional,
            history_progress_ratio=self.sources.accounting.progress(),
        )


def _of_runs(rows: Columns) -> Any:
    """Of each row, whether it is the time of a run that reports."""
    codes = np.array([CODE[name] for name in OF_RUNS], dtype=np.int64)
    reasons = np.array([REASON_CODE[name] for name in OPAQUE_OF_RUNS], dtype=np.int64)
    opaque = (rows["bucket"] == CODE["BUSY_OPAQUE"]) & np.isin(rows["reason"], reasons)
    return (np.isin(rows["bucket"], codes) | opaque) & (rows["job"] > 0)


def flat_price(value: float, currency: str) -> PriceTag:
    """``costs.price_per_gpu_hour`` as a price; it has no date."""
    return PriceTag(
        side="own",
        value=value,
        unit="price_per_gpu_hour",
        per_gpu_hour=value,
        currency=currency,
        date=None,
        source=None,
        term=None,
        tax_included=None,
        age_days=None,
        stale=False,
    )
