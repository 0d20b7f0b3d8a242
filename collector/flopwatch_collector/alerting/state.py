"""The alert state machine: inactive, pending, firing, clearing, resolved; pure, on event time.

A rule says of each thing it watches what it sees (`Reading`); `advance` says where that thing's alert stands
then. *Inactive* is the absence of a record. Time counts only where there was evidence: a gap pauses the clocks of
``pending`` and ``clearing``, and missing data never resolves an alert.
"""

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from flopwatch.query import AlertState, Severity

Condition = Literal["bad", "between", "good", "paused", "missing", "gone"]
"""``between``: no longer bad, not yet past the clear level; ``paused``: not judged now (start-up, checkpoint);
``missing``: no evidence; ``gone``: the thing itself has ended, or is not watched any more."""

STALE_AFTER_SECONDS = 300.0
FLAPPING_WINDOW_SECONDS = 3_600.0
FLAPPING_COUNT = 4
FLAPPING_QUIET_SECONDS = 1_800.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a rule sees of one thing at one moment."""

    rule: str
    severity: Severity
    labels: dict[str, str]
    """The identity: cluster, job_id, node. Never a value, a time or a severity."""
    condition: Condition
    time_seconds: float
    """Event time of the evidence, not of the evaluation."""
    for_seconds: float
    """Valid time the condition must hold before the alert fires."""
    keep_seconds: float
    """Valid time the clear level must hold before the alert resolves."""
    values: dict[str, Any] = field(default_factory=dict)
    summary: str = ""
    gap_seconds: float = 60.0
    """The longest stretch between two pieces of evidence that counts as covered by them."""
    stale_after_seconds: float = STALE_AFTER_SECONDS
    """How long evidence may be missing before the alert has no data, or is stale when it fires."""
    since_seconds: float | None = None
    """Where the condition is known, from continuous evidence, to have begun earlier than the last reading."""
    gone_reason: str = "ended"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertRecord:
    """Where one alert stands; kept across restarts."""

    fingerprint: str
    rule: str
    severity: Severity
    labels: dict[str, str]
    state: AlertState
    event_seconds: float
    """Event time of the newest evidence seen."""
    active_since_seconds: float
    valid_seconds: float = 0.0
    """Valid time spent in ``pending`` or ``clearing``."""
    clock_stopped: bool = False
    """The last reading was paused or missing: the time up to the next one does not count."""
    fired_seconds: float | None = None
    resolved_seconds: float | None = None
    resolved_reason: str | None = None
    stale: bool = False
    missing_since_seconds: float | None = None
    """When, by the collector's clock, evidence stopped."""
    values: dict[str, Any] = field(default_factory=dict)
    summary: str = ""
    fired_times: tuple[float, ...] = ()
    """When it fired within the last hour."""
    flapping: bool = False
    sent_severity: Severity | None = None
    """The severity of the notice that is in the outbox or delivered; None before the first."""
    sent_seconds: float | None = None
    """When the last notice was put into the outbox."""
    resolved_sent: bool = False
    context: dict[str, str] = field(default_factory=dict)
    """What routes and silences may ask for besides the labels: ``team``, ``job``, ``owner``; and what messages add to
    the summary: ``cause`` (why the job loses time), ``explains`` (the slow job that a throttled GPU explains)."""
    announced: bool = False
    """It was to be said at least once: receivers that keep states themselves are told of it until it ends."""
    closed_seconds: float | None = None
    """When, by the collector's clock, it was resolved."""


def fingerprint(rule: str, labels: Mapping[str, str]) -> str:
    """The identity of an alert: sha256 of the rule and its sorted identity labels, in hexadecimal."""
    return _fingerprint(rule, tuple(sorted(labels.items())))


@functools.lru_cache(maxsize=1 << 17)
def _fingerprint(rule: str, labels: tuple[tuple[str, str], ...]) -> str:
    """Asked for with every reading, about nine of each node and job every 15 s."""
    parts = [rule, *(f"{key}\x1f{value}" for key, value in labels)]
    return hashlib.sha256("\x1e".join(parts).encode()).hexdigest()


def advance(record: AlertRecord | None, reading: Reading, now: float) -> AlertRecord | None:
    """The alert after this reading; None is inactive.

    ``now`` is the collector's clock and only measures how long evidence has been missing.
    """
    if record is None or record.state == "resolved":
        return _from_inactive(record, reading)
    if reading.condition == "gone":
        return _gone(record, reading)
    if reading.condition == "missing":
        return without_evidence(record, now, reading.stale_after_seconds)
    step = _counted(record, reading)
    seen = replace(
        record,
        event_seconds=max(record.event_seconds, reading.time_seconds),
        severity=reading.severity if reading.condition == "bad" else record.severity,
        values=reading.values or record.values,
        summary=reading.summary or record.summary,
        stale=False,
        missing_since_seconds=None,
        clock_stopped=reading.condition == "paused",
    )
    if reading.condition == "paused":
        return replace(seen, state="pending" if record.state == "no_data" else record.state)
    if record.state in ("pending", "no_data"):
        return _from_pending(seen, reading, step)
    return _from_firing(seen, reading, step)


def without_evidence(record: AlertRecord, now: float, stale_after_seconds: float) -> AlertRecord:
    """The alert when nothing was seen of its subject: clocks stand still; later it is stale or without data."""
    since = now if record.missing_since_seconds is None else record.missing_since_seconds
    waiting = replace(record, missing_since_seconds=since, clock_stopped=True)
    if now - since <= stale_after_seconds:
        return waiting
    if record.state in ("pending", "no_data"):
        return replace(waiting, state="no_data", valid_seconds=0.0, stale=True)
    return replace(waiting, stale=True)


def _from_inactive(old: AlertRecord | None, reading: Reading) -> AlertRecord | None:
    """A new episode begins when the condition holds; otherwise what there was stays."""
    if reading.condition != "bad":
        return old
    since = reading.time_seconds if reading.since_seconds is None else reading.since_seconds
    fresh = AlertRecord(
        fingerprint=fingerprint(reading.rule, reading.labels),
        rule=reading.rule,
        severity=reading.severity,
        labels=reading.labels,
        state="pending",
        event_seconds=reading.time_seconds,
        active_since_seconds=min(since, reading.time_seconds),
        values=reading.values,
        summary=reading.summary,
        fired_times=old.fired_times if old else (),
    )
    return _from_pending(fresh, reading, 0.0)


def _from_pending(record: AlertRecord, reading: Reading, step: float) -> AlertRecord | None:
    if reading.condition != "bad":
        return None
    fresh = record.state == "no_data"
    valid = 0.0 if fresh else record.valid_seconds + step
    if reading.since_seconds is not None:
        valid = max(valid, reading.time_seconds - reading.since_seconds)
    begun = reading.time_seconds if fresh else record.active_since_seconds
    pending = replace(record, state="pending", valid_seconds=valid, active_since_seconds=begun)
    if valid < reading.for_seconds:
        return pending
    recent = (*_recent(record.fired_times, reading.time_seconds), reading.time_seconds)
    return replace(
        pending,
        state="firing",
        valid_seconds=0.0,
        fired_seconds=reading.time_seconds,
        fired_times=recent,
        flapping=len(recent) >= FLAPPING_COUNT,
    )


def _from_firing(record: AlertRecord, reading: Reading, step: float) -> AlertRecord:
    if reading.condition != "good":
        return replace(record, state="firing", valid_seconds=0.0)
    valid = record.valid_seconds + step if record.state == "clearing" else 0.0
    keep = max(reading.keep_seconds, FLAPPING_QUIET_SECONDS) if record.flapping else reading.keep_seconds
    if valid < keep:
        return replace(record, state="clearing", valid_seconds=valid)
    return replace(
        record,
        state="resolved",
        valid_seconds=0.0,
        resolved_seconds=reading.time_seconds,
        resolved_reason="recovered",
        flapping=False,
    )


def _gone(record: AlertRecord, reading: Reading) -> AlertRecord | None:
    if record.state in ("pending", "no_data"):
        return None
    return replace(
        record,
        state="resolved",
        resolved_seconds=max(reading.time_seconds, record.fired_seconds or record.event_seconds),
        resolved_reason=reading.gone_reason,
        stale=False,
        missing_since_seconds=None,
        flapping=False,
    )


def _counted(record: AlertRecord, reading: Reading) -> float:
    """The event time between the last evidence and this one, if evidence covers it; else 0."""
    passed = reading.time_seconds - record.event_seconds
    return 0.0 if record.clock_stopped or not 0.0 < passed <= reading.gap_seconds else passed


def _recent(times: tuple[float, ...], now: float) -> tuple[float, ...]:
    return tuple(moment for moment in times if now - moment < FLAPPING_WINDOW_SECONDS)
