"""The report of one job as a self-contained HTML file. Pure."""

from html import escape
from zoneinfo import ZoneInfo

from flopwatch.answers.report import Advice, JobReport
from flopwatch_collector.reports import sections
from flopwatch_collector.reports.page import document
from flopwatch_collector.reports.wording import Language, Words


def job_html_of(report: JobReport, language: Language, time_zone: str) -> bytes:
    """The file's bytes."""
    words = Words(language=language, zone=ZoneInfo(time_zone), currency=report.currency)
    parts = [
        _header(report, words, time_zone),
        _facts(report, words),
        sections.card(words("where"), sections.ledger_chart(report.ledger, words), note=words("where_sub")),
        sections.goodput(report.goodput, None, words),
        sections.gains(report.goodput, words),
        _advice(report.advice, words),
    ]
    return document(words, words("job.title", name=report.name), parts, simulated=report.simulated)


def _header(report: JobReport, words: Words, time_zone: str) -> str:
    end = words("job.running") if report.end_seconds is None else words.time(report.end_seconds)
    period = words.html("period", start=words.time(report.start_seconds), end=end, zone=time_zone)
    note = "" if report.final else f'<span class="pill">{words.html("job.provisional")}</span>'
    return (
        f"<header><h1>{words.html('job.title', name=report.name)}</h1><span>{period}</span>"
        f'<span class="pill">{escape(report.job_id)}</span>{note}</header>'
    )


def _facts(report: JobReport, words: Words) -> str:
    mfu = words.ratio(report.mfu.measured_ratio)
    if report.mfu.measured_ratio is not None:
        mfu += f" ({report.mfu.basis}, {report.mfu.convention})"
    rows = [
        (words("col.user"), report.user or words("unknown")),
        (words("col.team"), report.account or words("unknown")),
        (words("col.gpus"), f"{words.count(report.gpus)} · {report.gpu_model or words('unknown')}"),
        (words("col.mfu"), mfu),
        (words("col.wall"), words.ratio(report.wall_mfu_ratio)),
        (words("job.restarts"), words.count(report.restarts)),
        (words("col.leased"), words.hours(report.ledger.capacity_gpu_milliseconds)),
        (words("col.waste"), words.hours(report.ledger.waste_gpu_milliseconds)),
        (words("job.cost"), words.money(report.cost)),
        (words("job.credit"), words.money(report.credit)),
        (words("col.cause"), words.cause(report.cause)),
    ]
    note = words("job.exit", reason=report.exit_reason) if report.exit_reason else ""
    return sections.card(report.name, sections.pairs(rows), note=note)


def _advice(advice: tuple[Advice, ...], words: Words) -> str:
    if not advice:
        return sections.card(words("advice"), f"<p>{words.html('advice_none')}</p>", place="all")
    rows = []
    for each in advice:
        amount = words.ratio(each.ratio)
        if each.gpu_milliseconds is not None:
            amount += " · " + words("gpu_hours", hours=words.hours(each.gpu_milliseconds))
        rows.append((words(f"advice.{each.code}"), words("none") if each.ratio is None else amount))
    return sections.card(words("advice"), sections.pairs(rows), place="all")
