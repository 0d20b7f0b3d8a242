"""A report as one self-contained HTML file: no script, nothing fetched, prints well. Pure."""

from collections.abc import Iterable, Sequence
from html import escape
from zoneinfo import ZoneInfo

from flopwatch.answers.report import Report
from flopwatch_collector.reports import sections
from flopwatch_collector.reports.budget_section import budgets
from flopwatch_collector.reports.style import CSS
from flopwatch_collector.reports.wording import Language, Words


def html_of(report: Report, language: Language) -> bytes:
    """The file's bytes."""
    words = Words(language=language, zone=ZoneInfo(report.status.time_zone), currency=report.status.currency)
    parts = [
        _header(report, words),
        sections.verdict(report, words),
        sections.tiles(report, words),
        sections.days(report, words),
        sections.where(report, words),
        sections.jobs(report.jobs, words),
        sections.goodput(report.goodput, report.goodput_coverage_ratio, words),
        sections.gains(report.goodput, words),
        sections.chargeback(report, words),
        budgets(report.budgets, words),
        sections.coverage(report, words),
        sections.prices(report, words),
    ]
    return document(words, words("title"), parts, simulated=report.status.simulated)


def document(words: Words, title: str, parts: Iterable[str], *, simulated: bool) -> bytes:
    """A whole page of these parts."""
    language = "zh-CN" if words.language == "zh" else "en"
    named = f"{words('simulated')} · {title}" if simulated else title
    mark = f'<div class="mark" role="note">{words.html("simulated_note")}</div>' if simulated else ""
    return (
        f'<!DOCTYPE html>\n<html lang="{language}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(named)}</title><style>{CSS}</style></head>"
        f"<body><main>{mark}{''.join(parts)}</main></body></html>\n"
    ).encode()


def _header(report: Report, words: Words) -> str:
    start, end = words.time(report.start_seconds), words.time(report.end_seconds)
    period = words.html("period", start=start, end=end, zone=report.status.time_zone)
    clusters: Sequence[str] = (
        [report.cluster] if report.cluster else [each.name for each in report.status.clusters]
    )
    pills = "".join(f'<span class="pill">{escape(name)}</span>' for name in clusters)
    made = words.html("made", time=words.time(report.status.now_seconds), version=report.status.version)
    return (
        f"<header><h1>{words.html('title')}</h1><span>{period}</span>{pills}"
        f'<span class="right">{made}</span></header>'
    )
