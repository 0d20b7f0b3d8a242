"""The digest of a user: their own jobs' GPU-hours lost, sent to who uses much and keeps it busy little."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import numpy as np

from flopwatch_collector.compute import rollup
from flopwatch_collector.compute.classes import is_leased, to_answer
from flopwatch_collector.compute.layout import take
from flopwatch_collector.config_reports import ReportLanguage, ReportSettings
from flopwatch_collector.model import Columns, JobRecord
from flopwatch_collector.reports import sections
from flopwatch_collector.reports.making import Question, ReportMaker
from flopwatch_collector.reports.page import document
from flopwatch_collector.reports.wording import Words

_ADDRESS = re.compile(r"[^@\s<>,;]+@[^@\s<>,;]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """What a user held in the period."""

    user: str
    gpu_hours: float
    share_ratio: float
    """Of all leased GPU-hours."""
    busy_ratio: float | None
    """Mean kernel activity of their jobs' GPUs; None where it is not known."""


def is_told(usage: Usage, settings: ReportSettings) -> bool:
    """Whether the user gets a digest: much held, little busy; nobody is told on what is not known."""
    return (
        usage.gpu_hours >= settings.least_gpu_hours
        and usage.share_ratio >= settings.least_share_ratio
        and usage.busy_ratio is not None
        and usage.busy_ratio < settings.most_utilisation_ratio
    )


def address_of(user: str, jobs: Iterable[JobRecord], settings: ReportSettings) -> str | None:
    """Where a user's digest goes: as set, else the contact of their newest job, else in the domain."""
    if user in settings.recipients:
        return settings.recipients[user]
    own = sorted((job for job in jobs if job.user == user), key=lambda job: -job.last_seen_seconds)
    contact = next((job.owner_contact for job in own if job.owner_contact), None)
    if contact is not None and _ADDRESS.fullmatch(contact):
        return contact
    return None if settings.domain is None else f"{user}@{settings.domain}"


def usages(maker: ReportMaker, asked: Question) -> Iterator[tuple[Usage, Columns, Columns]]:
    """Every user with what they held, their ledger rows and their rollups."""
    state = maker.sources.fleet.state()
    rows = maker.rows(asked)
    rows = take(rows, is_leased(rows))
    rolled = maker.sources.accounting.job_rollups(
        asked.start_seconds, asked.end_seconds, hourly=maker.hourly(asked)
    )
    total = int(rows["gpu_milliseconds"].sum())
    by_user: dict[str, list[int]] = {}
    for job in state.jobs.values():
        if job.user is not None:
            by_user.setdefault(job.user, []).append(job.number)
    for user, numbers in sorted(by_user.items()):
        chosen = np.array(numbers, dtype=np.int64)
        own = take(rows, np.isin(rows["job"], chosen))
        held = int(own["gpu_milliseconds"].sum())
        if held:
            mine = take(rolled, np.isin(rolled["job"], chosen))
            busy = rollup.mean(mine, "kernel_active_ratio")
            usage = Usage(user=user, gpu_hours=held / 3.6e6, share_ratio=held / total, busy_ratio=busy)
            yield usage, own, mine


def digest_html(
    maker: ReportMaker, asked: Question, found: tuple[Usage, Columns, Columns], language: ReportLanguage
) -> str:
    """The digest of one user: nothing in it is about anybody else."""
    usage, rows, rolled = found
    status = maker.status()
    words = Words(language=language, zone=ZoneInfo(status.time_zone), currency=status.currency)
    ledger = to_answer(rows, maker.sources.rates(), asked.start_seconds, asked.end_seconds, None)
    lead = words.html(
        "digest.lead",
        hours=f"{usage.gpu_hours:,.0f}",
        share=words.ratio(usage.share_ratio),
        waste=words.hours(ledger.waste_gpu_milliseconds),
        busy=words.ratio(usage.busy_ratio),
    )
    jobs = maker.wasteful(maker.moment(asked), rows, rolled)
    parts = [
        f'<section class="banner">{lead}</section>',
        sections.card(words("where"), sections.ledger_chart(ledger, words), note=words("where_sub")),
        sections.jobs(jobs, words),
    ]
    return document(words, subject(asked, words), parts, simulated=status.simulated).decode()


def subject(asked: Question, words: Words) -> str:
    """The mail's subject."""
    start, end = words.time(asked.start_seconds)[:10], words.time(asked.end_seconds - 1.0)[:10]
    return words("digest.subject", start=start, end=end)
