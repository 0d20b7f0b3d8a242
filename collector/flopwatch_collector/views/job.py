"""The Job page: its row, its courses, its ledger, its sessions and nodes, and the arithmetic of its MFU."""

from dataclasses import replace

from flopwatch.answers.goodput import Goodput
from flopwatch.query import FindingInfo, Job, SessionInfo, Status
from flopwatch_collector.compute.classes import to_answer
from flopwatch_collector.compute.figure import arithmetic
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.standing import standing_of
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import Columns, JobRecord
from flopwatch_collector.views import alerts, evidence, jobs, rollups
from flopwatch_collector.views.causes import Causes
from flopwatch_collector.views.found import found_facts
from flopwatch_collector.views.job_series import job_series, step_percentiles, steps_series
from flopwatch_collector.views.marks import marks_of
from flopwatch_collector.views.nodes import nodes_of_job, signals_by_job
from flopwatch_collector.views.present import JobNow, Present
from flopwatch_collector.views.sources import Moment, Sources
from flopwatch_collector.views.strip import strip_of


def job_of(
    sources: Sources, present: Present, moment: Moment, status: Status, asked: tuple[int, Causes]
) -> Job:
    """The page of one job, and what is known of its causes."""
    number, causes = asked
    job = present.jobs(moment, [number])[number]
    page = _page(sources, moment.at_end(), status, job)
    page = replace(page, nodes=nodes_of_job(moment.state, job.record, moment.now))
    found = causes.of(sources, moment, job, present.jobs(moment, jobs.within(moment)))
    if found is None:
        return page
    return replace(page, row=replace(page.row, cause=found.cause), diagnosis=found.diagnosis)


def _page(sources: Sources, moment: Moment, status: Status, job: JobNow) -> Job:
    record, number = job.record, job.record.number
    ledger = sources.accounting.ledger_rows(moment.start, moment.now, job=number)
    rolled = sources.accounting.job_rollups(moment.start, moment.now, [number], hourly=moment.hourly)
    told = rollups.told_only(rolled, {number: job})
    made = jobs.JobTables(
        rollups=rollups.by_job(told),
        ledger=jobs.ledger_by_job(ledger),
        nodes=signals_by_job(moment.state),
        waste_money=jobs.waste_money_by_job(sources, ledger),
    )
    timeline = sources.accounting.timeline(number, moment.start, moment.now, moment.now)
    active = alerts.of_job(sources.alerts.active(), record.job_id)
    history = alerts.of_job(sources.alerts.history(moment.start), record.job_id)
    row = jobs.job_row(sources, moment, job, made)
    newest = evidence.newest(job, made.rollups.get(number), moment.now)
    return Job(
        status=status,
        range_seconds=moment.asked.seconds,
        row=row,
        series=job_series(sources, moment, job, timeline, told),
        steps=steps_series(timeline, job.basis, moment),
        step_percentiles=step_percentiles(timeline, moment),
        ledger=to_answer(ledger, sources.rates(), moment.start, moment.now, _provisional(sources, moment)),
        sessions=sessions_of(record, timeline),
        nodes=(),
        marks=marks_of(sources, moment, record, timeline, (*active, *history)),
        strip=strip_of(sources, moment, number, timeline, ledger),
        shape=job.basis.run.shape or {},
        shape_origin=job.basis.run.shape_origin,
        found=found_facts(record.runs),
        arithmetic=arithmetic(row.mfu),
        findings=(*evidence.doubts_of(job, newest), *_told(record)),
        alerts=(*active, *history),
        standing=standing_of(job.basis, job.figure),
        goodput=_goodput(sources, moment, timeline, ledger),
    )


def _goodput(
    sources: Sources, moment: Moment, timeline: JobTimeline | None, ledger: Columns
) -> Goodput | None:
    if timeline is None or not timeline.instrumented:
        return None
    return sources.accounting.goodput_of(timeline, ledger, (moment.start, moment.now), moment.now)


def _told(record: JobRecord) -> tuple[FindingInfo, ...]:
    """What agents said of the job."""
    return tuple(FindingInfo(code=code, text=text, values=values) for code, text, values in record.findings)


def _provisional(sources: Sources, moment: Moment) -> float | None:
    since = sources.accounting.provisional_from_seconds
    return max(since, moment.start) if since is not None and since < moment.now else None


def sessions_of(record: JobRecord, timeline: JobTimeline | None) -> tuple[SessionInfo, ...]:
    """The launches of the job; of one whose steps lie before the range, its steps are unknown."""
    if timeline is None:
        return ()
    result = []
    for session in timeline.sessions:
        own = take(timeline.steps, timeline.steps["session"] == session.number)
        found = bool(own["ts"].size)
        first = own["step"] - own["steps_covered"] + 1
        result.append(
            SessionInfo(
                session_id=f"{record.job_id}-{session.number}",
                start_seconds=session.begin_seconds
                if session.begin_seconds is not None
                else (float(own["begin"].min()) if found else None),
                end_seconds=session.end_seconds,
                exit_reason=session.exit_reason,
                first_step=int(first.min()) if found else None,
                last_step=int(own["step"].max()) if found else None,
                resumed_from_step=session.resumed_from_step,
                steps=int(own["steps_covered"].sum()),
                lost_steps=timeline.lost_steps(session.number),
            )
        )
    return tuple(result)
