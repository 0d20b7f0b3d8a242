"""``Reports``: what the API, the command and the schedule ask for: a report as a file of some format."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from flopwatch.answers.goodput import FleetGoodput
from flopwatch.answers.report import JobReport, Report
from flopwatch_collector.facts import Facts
from flopwatch_collector.past import Past
from flopwatch_collector.reports import focus, tables
from flopwatch_collector.reports.budgeting import BudgetBook
from flopwatch_collector.reports.charges import charges
from flopwatch_collector.reports.job_page import job_html_of
from flopwatch_collector.reports.jobs import JobReports
from flopwatch_collector.reports.making import Question, ReportMaker
from flopwatch_collector.reports.page import html_of
from flopwatch_collector.reports.wording import Language
from flopwatch_collector.store.parquet import parquet_bytes
from flopwatch_collector.store.port import Control
from flopwatch_collector.views.query import CollectorQuery

Format = Literal["html", "csv", "json", "parquet", "focus"]
FORMATS: tuple[Format, ...] = ("html", "csv", "json", "parquet", "focus")
MEDIA = {
    "html": "text/html; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "focus": "text/csv; charset=utf-8",
}
FACTS_SECONDS = 300.0
ENDINGS = {"html": "html", "csv": "csv", "json": "json", "parquet": "parquet", "focus": "focus.csv"}


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A report as a file."""

    name: str
    media: str
    content: bytes


class Reports:
    """Reports, job reports and budgets of a collector. Safe from any thread."""

    def __init__(
        self, query: CollectorQuery, control: Control, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.maker = ReportMaker(sources=query.sources, present=query.present, status=query.status)
        self.jobs = JobReports(maker=self.maker, control=control, clock=clock)
        self.budgets = BudgetBook(maker=self.maker)
        self.clock = clock
        self._facts = query.facts
        self._past = query.past
        self._newest: Facts | None = None

    def report(self, asked: Question) -> Report:
        """The report as a value."""
        return replace(self.maker.report(asked), budgets=self.budgets.of_report(asked))

    def goodput(self, asked: Question) -> FleetGoodput:
        """The goodput of the period's runs together."""
        status = self.maker.status()
        found, covered = self.maker.goodput(asked, self.maker.rows(asked), status.now_seconds)
        return FleetGoodput(
            status=status,
            cluster=asked.cluster,
            start_seconds=asked.start_seconds,
            end_seconds=asked.end_seconds,
            goodput=found,
            coverage_ratio=covered,
        )

    def file(self, asked: Question, format_: Format, language: Language) -> File:
        """The report as a file.

        Raises:
            NoPrice: FOCUS is asked for, and GPU time has no price.
        """
        if format_ == "focus":
            content = focus.csv_bytes(self.focus_rows(asked))
        else:
            content = _content(self.report(asked), format_, language)
        return File(name=self._name(asked, format_), media=MEDIA[format_], content=content)

    def focus_rows(self, asked: Question) -> list[tables.Row]:
        """The period's FOCUS rows.

        Raises:
            NoPrice: GPU time has no price.
        """
        status = self.maker.status()
        found = charges(self.maker, asked)
        return focus.rows_of(found, status.currency, self.maker.zone, simulated=status.simulated)

    def job(self, job_id: str) -> JobReport | None:
        """The report of a job; None where there is no such job."""
        return self.jobs.get(job_id)

    def job_html(self, report: JobReport, language: Language) -> bytes:
        """The report of a job as HTML."""
        return job_html_of(report, language, self.maker.sources.settings.collector.time_zone)

    def facts(self, now: float) -> Facts:
        """What the alert rules look at, with budgets."""
        self._newest = replace(self._facts(now), budgets=self.budgets.health(now))
        return self._newest

    def past(self, seconds: float) -> Past:
        """What rehearsals of the rules need of nodes, fleet and budgets."""
        return self._past(seconds, self.budgets.at)

    def newest_facts(self) -> Facts | None:
        """What the rules were last evaluated on; None where that is long ago, or never was."""
        newest = self._newest
        return newest if newest is not None and self.clock() - newest.now <= FACTS_SECONDS else None

    def _name(self, asked: Question, format_: Format) -> str:
        day = tables.utc(asked.start_seconds)[:10]
        last = tables.utc(asked.end_seconds - 1.0)[:10]
        mark = "simulated-" if self.maker.status().simulated else ""
        return f"flopwatch-{mark}{day}-to-{last}.{ENDINGS[format_]}"


def _content(report: Report, format_: Format, language: Language) -> bytes:
    if format_ == "html":
        return html_of(report, language)
    if format_ == "csv":
        return tables.csv_of(report)
    if format_ == "parquet":
        return parquet_bytes(tables.LINE_COLUMNS, list(tables.line_rows(report)))
    return msgspec.json.format(msgspec.json.encode(report), indent=1)
