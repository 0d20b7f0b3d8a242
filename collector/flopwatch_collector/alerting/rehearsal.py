"""Rules on what is kept of the past: what would have fired, when and of which job. Pure.

The past has MFU, activity and ledger buckets of jobs. Rules that look at anything else are not rehearsed, and said
so.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from flopwatch.query import Job, Query, Range, Severity, Stretch
from flopwatch_collector.alerting import terms
from flopwatch_collector.alerting.state import AlertRecord, Reading, advance, fingerprint
from flopwatch_collector.config_alerts import ALERT_RULES, AlertSettings, RuleSettings
from flopwatch_collector.facts import Facts, JobFacts

LONGEST_EVALUATION_SECONDS = 300.0
POINT_SECONDS, MOST_POINTS, MOST_JOBS = 60.0, 2_500, 50
"""Of a rehearsal that somebody waits for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Episode:
    """One time an alert would have fired; ``end_seconds`` is None where it still would."""

    rule: str
    severity: Severity
    labels: dict[str, str]
    job: str
    start_seconds: float
    end_seconds: float | None
    summary: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rehearsal:
    """What would have fired, oldest first, and which rules had nothing to judge."""

    episodes: tuple[Episode, ...]
    judged: tuple[str, ...]
    not_judged: tuple[str, ...]
    reasons: dict[str, str] = field(default_factory=dict)
    """Why a rule was not judged, by its name."""


@dataclass(slots=True)
class _Course:
    """One job's past, by the times of its series."""

    job: Job
    place: dict[float, int]
    stretch: int = 0

    def bucket(self, at: float) -> Stretch | None:
        """The stretch that holds the time; times only rise."""
        strip = self.job.strip
        while self.stretch < len(strip) and strip[self.stretch].end_seconds <= at:
            self.stretch += 1
        if self.stretch < len(strip) and strip[self.stretch].start_seconds <= at:
            return strip[self.stretch]
        return None


def largest(query: Query, asked: Range, most: int) -> Iterator[Job]:
    """The jobs within the range, at most so many, those with the most GPUs first."""
    rows = sorted(query.jobs(asked).rows, key=lambda row: -(row.gpus or row.gpus_observed or 0))
    for row in rows[:most]:
        job = query.job(row.job_id, asked)
        if job is not None:
            yield job


Rehearse = Callable[[float, Mapping[str, RuleSettings]], Rehearsal]
"""What the rules would have said of the last so many seconds, with changes to them."""


def rehearsing(query: Query, settings: AlertSettings) -> Rehearse:
    """Rehearses the last so many seconds of the largest jobs, at the pace of a graph's points."""

    def rehearsed(seconds: float, changes: Mapping[str, RuleSettings]) -> Rehearsal:
        points = max(1, min(MOST_POINTS, int(seconds / POINT_SECONDS)))
        jobs = list(largest(query, Range(seconds=seconds, points=points), MOST_JOBS))
        return rehearse(jobs, settings.changed_by(changes))

    return rehearsed


def rehearse(jobs: Sequence[Job], settings: AlertSettings) -> Rehearsal:
    """Every rule over the jobs' series, each point one evaluation."""
    step = max((job.series.step_seconds for job in jobs), default=settings.evaluate_seconds)
    paced = replace(
        settings,
        evaluate_seconds=min(LONGEST_EVALUATION_SECONDS, max(settings.evaluate_seconds, step)),
        observe_days=0.0,
    )
    records: dict[str, AlertRecord] = {}
    ended: list[AlertRecord] = []
    judged: set[str] = set()
    for facts in _past(jobs, step):
        for reading in terms.read(facts, paced):
            if "job_id" not in reading.labels:
                continue
            if reading.condition not in ("missing", "gone"):
                judged.add(reading.rule)
            _follow(records, ended, reading, facts.now)
    names = {job.row.job_id: job.row.name for job in jobs}
    fired = [record for record in (*ended, *records.values()) if record.fired_seconds is not None]
    episodes = sorted((_episode(one, names) for one in fired), key=lambda one: one.start_seconds)
    return Rehearsal(
        episodes=tuple(episodes),
        judged=tuple(rule for rule in ALERT_RULES if rule in judged),
        not_judged=tuple(rule for rule in ALERT_RULES if rule not in judged),
    )


def _follow(records: dict[str, AlertRecord], ended: list[AlertRecord], reading: Reading, now: float) -> None:
    """The alert after this reading, in the words of when it fired; an episode that is over is kept apart."""
    key = fingerprint(reading.rule, reading.labels)
    before = records.get(key)
    after = advance(before, reading, now)
    if before is not None and before.state == "resolved" and after is not before:
        ended.append(before)
    if after is None:
        records.pop(key, None)
    elif (
        before is not None
        and before.fired_seconds is not None
        and after.fired_seconds == before.fired_seconds
    ):
        records[key] = replace(after, summary=before.summary)
    else:
        records[key] = after


def _past(jobs: Sequence[Job], step: float) -> Iterator[Facts]:
    courses = [
        _Course(job=job, place={at: place for place, at in enumerate(job.series.time_seconds)})
        for job in jobs
    ]
    for now in sorted({at for course in courses for at in course.place}):
        found = tuple(fact for course in courses if (fact := _facts(course, now, step)) is not None)
        clusters = ",".join(sorted({fact.row.cluster for fact in found}))
        yield Facts(now=now, jobs=found, nodes=(), verdict=None, cluster=clusters)


def _facts(course: _Course, now: float, step: float) -> JobFacts | None:
    """The job as it was; None outside its series."""
    place = course.place.get(now)
    if place is None:
        return None
    job = course.job
    columns = job.series.columns
    mfu, kernel, tensor = (
        _value(columns.get(name), place) for name in ("mfu", "kernel_active", "tensor_active")
    )
    stretch = course.bucket(now)
    row = job.row
    over = row.end_seconds is not None and now >= row.end_seconds
    figure = replace(
        row.mfu,
        value_ratio=mfu,
        basis=row.mfu.basis or "steps+shape",
        window_start_seconds=now - step,
        window_end_seconds=now,
    )
    return JobFacts(
        row=replace(
            row,
            mfu=figure if mfu is not None else replace(figure, window_end_seconds=None),
            kernel_active_ratio=kernel,
            tensor_active_ratio=tensor,
            state="ended" if over else "running",
            cause=None,
        ),
        bucket=None if stretch is None else stretch.bucket,
        bucket_since_seconds=None if stretch is None else stretch.start_seconds,
        steps_since_start=None,
        report_gap_seconds=step,
        data_seconds=now,
    )


def _value(column: Sequence[float | None] | None, place: int) -> float | None:
    return None if column is None else column[place]


def _episode(record: AlertRecord, names: dict[str, str]) -> Episode:
    job_id = record.labels.get("job_id", "")
    return Episode(
        rule=record.rule,
        severity=record.severity,
        labels=record.labels,
        job=names.get(job_id, job_id),
        start_seconds=record.fired_seconds or record.event_seconds,
        end_seconds=record.resolved_seconds if record.state == "resolved" else None,
        summary=record.summary,
    )
