"""Reports of jobs: made when a job has ended and its time is final, and kept when its raw data are gone."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flopwatch.answers.goodput import Goodput
from flopwatch.answers.report import JobReport
from flopwatch.query import Range
from flopwatch_collector.compute.chargeback import charged
from flopwatch_collector.compute.classes import to_answer
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import JobRecord
from flopwatch_collector.reports.advice import advice_of
from flopwatch_collector.reports.making import ReportMaker
from flopwatch_collector.store.port import Control
from flopwatch_collector.views import jobs as jobs_view
from flopwatch_collector.views import rollups
from flopwatch_collector.views.nodes import signals_by_job
from flopwatch_collector.views.sources import Moment

KIND = "job_report"
"""Each job's report is of a kind of its own, so that one is read without the others; this one lists them."""
KEPT_SECONDS = 730 * 86_400.0
BEFORE_SECONDS = 3_600.0
AT_ONCE = 20
"""Reports that are made in one go at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """A report that is kept."""

    end_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class JobReports:
    """Makes and keeps them."""

    maker: ReportMaker
    control: Control
    clock: Callable[[], float] = time.time

    def get(self, job_id: str) -> JobReport | None:
        """The report of a job: the kept one, else as it stands; None where there is no such job."""
        kept = self.control.load(_kind(job_id), JobReport)
        if job_id in kept:
            return kept[job_id]
        numbers = {job.job_id: job for job in self.maker.sources.fleet.state().jobs.values()}
        record = numbers.get(job_id)
        return None if record is None else self._made(record)

    def keep_finished(self) -> int:
        """Make and keep the reports of jobs whose time is final; how many."""
        accounting = self.maker.sources.accounting
        edge = accounting.provisional_from_seconds
        if edge is None:
            return 0
        kept = self.control.load(KIND, Kept)
        self._forget(kept)
        jobs = self.maker.sources.fleet.state().jobs.values()
        due = [
            job
            for job in jobs
            if job.end_seconds is not None and job.end_seconds < edge and job.job_id not in kept
        ]
        newest = sorted(due, key=lambda job: -(job.end_seconds or 0.0))[:AT_ONCE]
        made = [self._made(job) for job in newest]
        whole = [report for report in made if report.final]
        for report in whole:
            listed = {report.job_id: Kept(end_seconds=report.end_seconds or report.made_seconds)}
            self.control.save_all({_kind(report.job_id): {report.job_id: report}, KIND: listed})
        return len(whole)

    def _forget(self, kept: Mapping[str, Kept]) -> None:
        """Drop reports of jobs that ended long ago."""
        for job_id, known in kept.items():
            if known.end_seconds < self.clock() - KEPT_SECONDS:
                self.control.delete(_kind(job_id), [job_id])
                self.control.delete(KIND, [job_id])

    def _made(self, record: JobRecord) -> JobReport:
        sources, now = self.maker.sources, self.clock()
        start = (record.start_seconds or record.last_seen_seconds) - BEFORE_SECONDS
        end = min(now, (record.end_seconds + BEFORE_SECONDS) if record.end_seconds is not None else now)
        moment = Moment(state=sources.fleet.state(), now=end, asked=Range(seconds=max(300.0, end - start)))
        rows = sources.accounting.ledger_rows(moment.start, end, job=record.number)
        edge = sources.accounting.provisional_from_seconds
        final = record.end_seconds is not None and edge is not None and record.end_seconds < edge
        job = self.maker.present.jobs(moment, [record.number])[record.number]
        rolled = sources.accounting.job_rollups(moment.start, end, [record.number], hourly=moment.hourly)
        tables = jobs_view.JobTables(
            rollups=rollups.by_job(rollups.told_only(rolled, {record.number: job})),
            ledger=jobs_view.ledger_by_job(rows),
            nodes=signals_by_job(moment.state),
            waste_money=jobs_view.waste_money_by_job(sources, rows),
        )
        row = jobs_view.job_row(sources, moment, job, tables)
        ledger = to_answer(rows, sources.rates(), moment.start, end, None if final else edge)
        timeline = sources.accounting.timeline(record.number, moment.start, end, now)
        goodput = self._goodput(timeline, record, (moment.start, end), now)
        bill = charged(rows, "job", moment.state, sources.rates(), self.maker.group_of)
        own = next((line for line in bill if line.key == record.job_id), None)
        sessions = 0 if timeline is None else len(timeline.sessions)
        return JobReport(
            job_id=record.job_id, name=record.name, cluster=record.cluster, user=record.user,
            account=record.account, kind=row.kind, gpus=row.gpus, gpu_model=row.gpu_model,
            start_seconds=record.start_seconds, end_seconds=record.end_seconds, exit_reason=record.exit_reason,
            made_seconds=now, final=final, simulated=moment.state.simulated,
            currency=sources.settings.costs.currency,
            mfu=row.mfu, wall_mfu_ratio=row.wall_mfu_ratio, target=row.target, ledger=ledger,
            cost=None if own is None else own.billed, credit=None if own is None else own.credit,
            sessions=sessions, restarts=max(0, sessions - 1), goodput=goodput, cause=row.cause,
            advice=advice_of(ledger, goodput, row),
        )  # fmt: skip

    def _goodput(
        self, timeline: JobTimeline | None, record: JobRecord, span: tuple[float, float], now: float
    ) -> Goodput | None:
        if timeline is None or not timeline.instrumented:
            return None
        rows = self.maker.sources.accounting.ledger_rows(*span, job=record.number)
        return self.maker.sources.accounting.goodput_of(timeline, rows, span, now)


def _kind(job_id: str) -> str:
    return f"{KIND}/{job_id}"
