"""Rules on what is kept of the past: what would have fired, when and of what. Pure.

Of jobs the past has MFU, activity, ledger buckets, launches and checkpoints; of nodes when they were faulty or silent,
and XIDs; of the fleet its days and budgets; for as long as raw samples were read, throttled GPUs, memory errors and who
held jobs up. Rules that look at anything else are not rehearsed, and it is said why.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from flopwatch.query import Job, Query, Range, Severity
from flopwatch_collector.alerting import terms
from flopwatch_collector.alerting.rehearsal_fleet import (
    GPU_SECONDS,
    NODE_SECONDS,
    past_of_fleet,
    past_of_gpus,
    past_of_nodes,
)
from flopwatch_collector.alerting.rehearsal_jobs import past_of_jobs
from flopwatch_collector.alerting.state import AlertRecord, Reading, advance, fingerprint
from flopwatch_collector.config_alerts import ALERT_RULES, AlertSettings, RuleSettings
from flopwatch_collector.facts import Facts
from flopwatch_collector.past import Past

LONGEST_EVALUATION_SECONDS = 300.0
POINT_SECONDS, MOST_POINTS, MOST_JOBS = 60.0, 2_500, 50
"""Of a rehearsal that somebody waits for."""
_STEPS = "single steps are kept thinned out"
_SAMPLES = "it looks at raw samples of the hardware, and none were read"
FROM_SAMPLES = frozenset(("Straggler", "HwThrottle", "ThermalThrottle", "GpuErrors"))
"""Rules that are rehearsed for as long as raw samples were read."""
NOT_KEPT: Mapping[str, str] = {
    "MfuDrop": _STEPS, "StepSpikes": _STEPS,
    "HangSuspect": "it looks at what the hardware shows while a run is silent",
    "Straggler": _SAMPLES, "HwThrottle": _SAMPLES, "ThermalThrottle": _SAMPLES, "GpuErrors": _SAMPLES,
    "LinkDegraded": "it holds ports against their own last day",
    "LemonNode": "it counts alerts that were sent",
    "AgentUnhealthy": "what an agent lacked is known of now only",
}  # fmt: skip
"""Why the past cannot say what these rules would have."""
NOTHING_THERE = "nothing was kept that it could judge"


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
    seconds: dict[str, float] = field(default_factory=dict)
    """Of rules that were judged over the newest part of the time only: how long that is."""


def largest(query: Query, asked: Range, most: int) -> Iterator[Job]:
    """The jobs within the range, at most so many, those with the most GPUs first."""
    rows = sorted(query.jobs(asked).rows, key=lambda row: -(row.gpus or row.gpus_observed or 0))
    for row in rows[:most]:
        job = query.job(row.job_id, asked)
        if job is not None:
            yield job


Rehearse = Callable[[float, Mapping[str, RuleSettings]], Rehearsal]
"""What the rules would have said of the last so many seconds, with changes to them."""


def rehearsing(
    query: Query, settings: AlertSettings, past: Callable[[float], Past] = lambda _: Past()
) -> Rehearse:
    """Rehearses the last so many seconds of the largest jobs, at the pace of a graph's points, of nodes and fleet."""

    def rehearsed(seconds: float, changes: Mapping[str, RuleSettings]) -> Rehearsal:
        points = max(1, min(MOST_POINTS, int(seconds / POINT_SECONDS)))
        jobs = list(largest(query, Range(seconds=seconds, points=points), MOST_JOBS))
        return rehearse(jobs, settings.changed_by(changes), past(seconds))

    return rehearsed


def rehearse(jobs: Sequence[Job], settings: AlertSettings, past: Past | None = None) -> Rehearsal:
    """Every rule over the series of jobs, each point one evaluation, and over the windows of nodes and fleet."""
    kept = past or Past()
    step = max((job.series.step_seconds for job in jobs), default=settings.evaluate_seconds)
    sampled = FROM_SAMPLES if kept.raw_start_seconds is not None else frozenset[str]()
    told = _Told(unknown=frozenset(NOT_KEPT) - sampled)
    told.play(
        past_of_jobs(jobs, step, kept), _paced(settings, step), lambda reading: "job_id" in reading.labels
    )
    told.play(past_of_nodes(kept), _paced(settings, NODE_SECONDS), _of_nodes)
    told.play(past_of_gpus(kept), _paced(settings, GPU_SECONDS), _of_samples)
    told.play(
        past_of_fleet(kept), _paced(settings, NODE_SECONDS),
        lambda reading: not {"job_id", "node"} & set(reading.labels),
    )  # fmt: skip
    judged = told.judged | ({"NodeDown", "NoData", "GpuLost"} if kept.known else set()) | sampled
    names = {job.row.job_id: job.row.name for job in jobs}
    episodes = sorted((_episode(one, names) for one in told.fired()), key=lambda one: one.start_seconds)
    missing = tuple(rule for rule in ALERT_RULES if rule not in judged)
    return Rehearsal(
        episodes=tuple(episodes),
        judged=tuple(rule for rule in ALERT_RULES if rule in judged),
        not_judged=missing,
        reasons={rule: NOT_KEPT.get(rule, NOTHING_THERE) for rule in missing},
        seconds=_shorter(kept, sampled),
    )


def _of_nodes(reading: Reading) -> bool:
    return "node" in reading.labels and reading.rule not in FROM_SAMPLES


def _of_samples(reading: Reading) -> bool:
    return "node" in reading.labels and reading.rule in FROM_SAMPLES


def _shorter(kept: Past, sampled: frozenset[str]) -> dict[str, float]:
    """How long raw samples were read, where that is not the whole time."""
    start = kept.raw_start_seconds
    if start is None or start <= kept.start_seconds:
        return {}
    return dict.fromkeys(sorted(sampled), kept.end_seconds - start)


def _paced(settings: AlertSettings, step: float) -> AlertSettings:
    """The settings of evaluations that are so far apart; nothing is only watched."""
    paced = min(LONGEST_EVALUATION_SECONDS, max(settings.evaluate_seconds, step))
    return replace(settings, evaluate_seconds=paced, observe_days=0.0)


@dataclass(kw_only=True, slots=True)
class _Told:
    """The alerts as they stand in the rehearsal, those that are over, and which rules found something to judge."""

    records: dict[str, AlertRecord] = field(default_factory=dict)
    ended: list[AlertRecord] = field(default_factory=list)
    judged: set[str] = field(default_factory=set)
    unknown: frozenset[str]

    def play(self, past: Iterable[Facts], settings: AlertSettings, wanted: Callable[[Reading], bool]) -> None:
        """All rules over these facts; of their readings those that are wanted."""
        for facts in past:
            for reading in terms.read(facts, settings):
                if not wanted(reading) or reading.rule in self.unknown:
                    continue
                if reading.condition not in ("missing", "gone"):
                    self.judged.add(reading.rule)
                _follow(self.records, self.ended, reading, facts.now)

    def fired(self) -> list[AlertRecord]:
        """The alerts that would have fired."""
        return [one for one in (*self.ended, *self.records.values()) if one.fired_seconds is not None]


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
