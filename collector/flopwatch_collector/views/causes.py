"""The likely cause of every running job: its diagnosis, kept and made anew every five minutes, a bounded number a turn.

All pages and alerts take it from here, so that they say the same of a job. Where the diagnosis finds nothing, the
cause is where the job's time went over the last day.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np

from flopwatch.answers.diagnosis import Diagnosis
from flopwatch.query import Cause, Severity
from flopwatch_collector.compute.layout import take
from flopwatch_collector.model import Columns, FleetState
from flopwatch_collector.views import jobs, rollups, watching
from flopwatch_collector.views.diagnosis import Others, diagnosis_of
from flopwatch_collector.views.diagnosis_window import Window, windows_of
from flopwatch_collector.views.nodes import signals_by_job
from flopwatch_collector.views.present import JobNow
from flopwatch_collector.views.sources import Moment, Sources

FRESH_SECONDS: Final = 300.0
DAY_SECONDS: Final = 86_400.0
HOUR_SECONDS: Final = 3_600.0
"""Shares of time that decide a diagnosis are of the last hour."""
MOST_A_TURN: Final = 100
"""At a turn with each evaluation of the rules, every 15 seconds, 2,000 jobs take five minutes."""
MOST_A_PAGE: Final = 25
UNTURNED_SECONDS: Final = 30.0
"""A collector that evaluates no rules makes causes when its pages are looked at."""
SAYS_NOTHING: Final = frozenset(("insufficient_data", "unexplained", "healthy", "power_capped"))
"""Diagnoses that name no cause of a loss."""

Standing: TypeAlias = "dict[int, Cause | None]"
"""The likely cause by number of job; None where none is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What was found of a job, and when."""

    made_seconds: float
    bucket: str | None
    diagnosis: tuple[Diagnosis, ...]
    cause: Cause | None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Material:
    """What the diagnoses of one turn are made from."""

    moment: Moment
    day: jobs.JobTables
    hour: Mapping[int, Columns]
    samples: Mapping[int, Columns]
    alike: Mapping[int, Mapping[int, JobNow]]
    headrooms: Mapping[int, float]
    windows: Mapping[int, Window]


@dataclass(slots=True)
class Causes:
    """The diagnoses of one collector. Safe for threads."""

    known: dict[int, Known] = field(default_factory=dict)
    turned_seconds: float = float("-inf")
    lock: threading.Lock = field(default_factory=threading.Lock)

    def advance(self, sources: Sources, moment: Moment, found: Mapping[int, JobNow], most: int) -> Standing:
        """Diagnose at most so many jobs anew; the causes of all that were ever diagnosed.

        Due are jobs whose diagnosis is older than ``FRESH_SECONDS``, or whose state has changed since.
        """
        with self.lock:
            self.turned_seconds = moment.now
            for number in [one for one in self.known if one not in moment.state.jobs]:
                del self.known[number]
            due = self._due(found, moment.now)[:most]
            if due:
                self._diagnose(sources, moment, found, due)
            return self._standing()

    def on_page(self, sources: Sources, moment: Moment, found: Mapping[int, JobNow]) -> Standing:
        """The causes as they are known; where nobody has advanced them lately, a few more."""
        if 0.0 <= moment.now - self.turned_seconds < UNTURNED_SECONDS:
            with self.lock:
                return self._standing()
        return self.advance(sources, moment, found, MOST_A_PAGE)

    def _standing(self) -> Standing:
        return {number: one.cause for number, one in self.known.items()}

    def of(self, sources: Sources, moment: Moment, job: JobNow, found: Mapping[int, JobNow]) -> Known | None:
        """What is known of one job, made now where it is due; None of one that has ended."""
        number = job.record.number
        if job.ended:
            return None
        with self.lock:
            if self._is_due(job, moment.now):
                self._diagnose(sources, moment, {**found, number: job}, [number])
            return self.known[number]

    def _is_due(self, job: JobNow, now: float) -> bool:
        one = self.known.get(job.record.number)
        return one is None or one.bucket != job.bucket or not 0.0 <= now - one.made_seconds < FRESH_SECONDS

    def _due(self, found: Mapping[int, JobNow], now: float) -> list[int]:
        """Jobs to diagnose: those whose state has changed first, then those that were never, then the oldest."""
        due = [number for number, job in found.items() if not job.ended and self._is_due(job, now)]

        def rank(number: int) -> tuple[bool, float]:
            one = self.known.get(number)
            return one is None or one.bucket == found[number].bucket, float(
                "-inf"
            ) if one is None else one.made_seconds

        return sorted(due, key=rank)

    def _diagnose(
        self, sources: Sources, moment: Moment, found: Mapping[int, JobNow], due: Iterable[int]
    ) -> None:
        numbers = list(due)
        material = _material(sources, moment, found, numbers)
        for number in numbers:
            job = found[number]
            diagnosis, ledger = _diagnosed(sources, material, job)
            self.known[number] = Known(
                made_seconds=moment.now,
                bucket=job.bucket,
                diagnosis=diagnosis,
                cause=told(diagnosis) or ledger,
            )


def told(found: tuple[Diagnosis, ...]) -> Cause | None:
    """The first diagnosis as a cause; None where it names none."""
    if not found or found[0].code in SAYS_NOTHING:
        return None
    first = found[0]
    values = {"subject": first.subject, "ratio": first.lost_ratio, "confidence": first.confidence}
    severity: Severity = "critical" if first.code == "hang" else "warning"
    if first.confidence == "info":
        severity = "info"
    return Cause(code=first.code, severity=severity, values=values, source="diagnosis")


def _diagnosed(
    sources: Sources, material: _Material, job: JobNow
) -> tuple[tuple[Diagnosis, ...], Cause | None]:
    """The diagnosis, and the cause by where the last day's time went."""
    number, moment = job.record.number, material.moment
    row = jobs.job_row(sources, moment, job, material.day)
    samples = material.samples.get(number)
    if samples is None:
        samples = {name: values[:0] for name, values in moment.state.latest.items()}
    own = replace(moment, state=replace(moment.state, latest=samples))
    ledger = material.hour.get(number)
    found = diagnosis_of(
        own,
        job,
        (row, material.day.rollups.get(number), ledger),
        Others(jobs=material.alike.get(number, {}), headrooms=material.headrooms),
        material.windows[number],
    )
    return found, row.cause


def _material(sources: Sources, moment: Moment, found: Mapping[int, JobNow], numbers: list[int]) -> _Material:
    day = replace(moment, asked=replace(moment.asked, seconds=DAY_SECONDS))
    only = numbers[0] if len(numbers) == 1 else None
    rows = sources.accounting.ledger_rows(day.start, moment.now, job=only)
    rows = take(rows, np.isin(rows["job"], np.array(numbers, dtype=np.int64)))
    rolled = sources.accounting.job_rollups(day.start, moment.now, numbers)
    samples = watching.by_job(moment.state.latest)
    signals = signals_by_job(moment.state)
    tables = jobs.JobTables(
        rollups=rollups.by_job(rollups.told_only(rolled, {number: found[number] for number in numbers})),
        ledger=jobs.ledger_by_job(rows),
        nodes={number: signals[number] for number in numbers if number in signals},
        waste_money=jobs.WasteMoney(),
    )
    return _Material(
        moment=day,
        day=tables,
        hour=jobs.ledger_by_job(take(rows, rows["ts"] >= moment.now - HOUR_SECONDS - 300.0)),
        samples={number: samples[number] for number in numbers if number in samples},
        alike=_alike(found, numbers),
        headrooms=_headrooms(moment.state),
        windows=windows_of(sources.store, {number: found[number] for number in numbers}, moment.now),
    )


def _headrooms(state: FleetState) -> dict[int, float]:
    """By job: the share of its memory that its fullest GPU has free now; jobs with an unknown GPU are left out."""
    latest = take(state.latest, np.nan_to_num(state.latest["job"]) > 0)
    owned = (state.gpus.get(int(number)) for number in latest["gpu"].tolist())
    totals = np.array(
        [gpu.memory_total_bytes if gpu is not None else None for gpu in owned], dtype=np.float64
    )
    jobs, inverse = np.unique(latest["job"].astype(np.int64), return_inverse=True)
    shares = latest["memory_used_bytes"] / totals
    unknown = np.bincount(inverse, weights=~np.isfinite(shares), minlength=jobs.size)
    fullest = np.zeros(jobs.size)
    np.maximum.at(fullest, inverse, np.nan_to_num(shares))
    known = unknown == 0
    return dict(zip(jobs[known].tolist(), (1.0 - fullest[known]).tolist(), strict=True))


def _alike(found: Mapping[int, JobNow], numbers: list[int]) -> dict[int, dict[int, JobNow]]:
    """By job: the runs of one model size, batch, sequence length and format; diagnosis looks closer at these."""
    groups: dict[tuple[object, ...], dict[int, JobNow]] = {}
    for number, job in found.items():
        groups.setdefault(_kind(job), {})[number] = job
    return {number: groups[_kind(found[number])] for number in numbers}


def _kind(job: JobNow) -> tuple[object, ...]:
    run, figure = job.basis.run, job.figure
    shape = () if run.shape is None else tuple(sorted((key, repr(value)) for key, value in run.shape.items()))
    return shape, run.global_batch_size, run.sequence_length, figure.gpu_model, figure.dtype
