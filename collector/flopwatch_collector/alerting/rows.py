"""Alerts, silences and rules as the pages show them. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from flopwatch.answers.alert import AlertComment, RuleInfo, SilenceInfo
from flopwatch.query import AlertRow
from flopwatch_collector.alerting import notices
from flopwatch_collector.alerting.desk import Words
from flopwatch_collector.alerting.hushing import MAINTENANCE, Hushed, asked_for
from flopwatch_collector.alerting.rulebook import terms_of
from flopwatch_collector.alerting.state import AlertRecord
from flopwatch_collector.config_alerts import ALERT_RULES, AlertSettings, RuleSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What a page asks rules about."""

    now: float
    start: float
    """Count what fired since then."""
    sends: Callable[[str], bool]


def row(record: AlertRecord, words: Words, hushed: Hushed, *, simulated: bool, observed: bool) -> AlertRow:
    """One alert."""
    mark = "SIMULATED: " if simulated else ""
    active = record.state != "resolved"
    return AlertRow(
        fingerprint=record.fingerprint,
        rule=record.rule,
        severity=record.severity,
        state=record.state,
        labels={**record.labels, "simulated": "true"} if simulated else record.labels,
        values={**record.values, **notices.more_of(record)},
        active_since_seconds=record.active_since_seconds,
        fired_seconds=record.fired_seconds,
        resolved_seconds=record.resolved_seconds,
        resolved_reason=record.resolved_reason,
        stale=record.stale,
        summary=f"{mark}{record.summary}",
        silenced_by=hushed.silenced.get(record.fingerprint) if active else None,
        inhibited_by=hushed.inhibited.get(record.fingerprint) if active else None,
        observed=observed and active,
        acknowledged_by=hushed.taken.get(record.fingerprint) if active else None,
        comments=_comments(record, words),
        context=asked_for(record),
    )


def _comments(record: AlertRecord, words: Words) -> tuple[AlertComment, ...]:
    found = [
        word
        for word in words.comments.values()
        if word.fingerprint == record.fingerprint and word.seconds >= record.active_since_seconds
    ]
    found.sort(key=lambda word: word.seconds)
    return tuple(AlertComment(by=word.by, text=word.text, time_seconds=word.seconds) for word in found)


def worst_first(each: AlertRow) -> tuple[int, int, float]:
    """Firing before pending, critical before info, newest first."""
    rank = {"firing": 0, "clearing": 1, "pending": 2, "no_data": 3, "resolved": 4}[each.state]
    return (
        rank,
        notices.SEVERITY_ORDER[each.severity],
        -(each.fired_seconds or each.active_since_seconds or 0.0),
    )


def silences(words: Words, hushed: Hushed, now: float) -> tuple[SilenceInfo, ...]:
    """Silences that have not ended, the first to end first, and the nodes in maintenance."""
    said = [
        SilenceInfo(
            silence_id=one.silence_id,
            matchers=tuple(str(matcher) for matcher in one.matchers),
            start_seconds=one.start_seconds,
            end_seconds=one.end_seconds,
            created_by=one.created_by,
            comment=one.comment,
        )
        for one in sorted(words.silences.values(), key=lambda one: one.end_seconds)
        if one.end_seconds > now
    ]
    maintained = [
        SilenceInfo(
            silence_id=f"{MAINTENANCE}:{cluster}/{node}",
            matchers=(f"cluster={cluster}", f"node={node}"),
            start_seconds=now,
            end_seconds=None,
            created_by=MAINTENANCE,
            comment="",
        )
        for cluster, node in sorted(hushed.maintained)
    ]
    return (*said, *maintained)


def rules(records: Iterable[AlertRecord], settings: AlertSettings, asked: Asked) -> tuple[RuleInfo, ...]:
    """Every rule as it is set, and how often it fired."""
    known = [record for record in records if record.fired_seconds is not None]
    firing = Counter(record.rule for record in known if record.state in ("firing", "clearing"))
    episodes = {
        (record.fingerprint, record.fired_seconds, record.rule)
        for record in known
        if (record.fired_seconds or 0.0) >= asked.start or record.state in ("firing", "clearing")
    }
    fired = Counter(rule for _, _, rule in episodes)
    return tuple(
        _rule(name, settings, (firing[name], fired[name]), asked.sends(name)) for name in ALERT_RULES
    )


def _rule(name: str, settings: AlertSettings, counts: tuple[int, int], sends: bool) -> RuleInfo:  # noqa: FBT001
    own = settings.rules.get(name, RuleSettings())
    return RuleInfo(
        rule=name,
        enabled=own.enabled is not False,
        sends=sends and own.enabled is not False,
        for_seconds=own.for_seconds,
        keep_seconds=own.keep_seconds,
        level=own.level,
        clear_level=own.clear_level,
        severity=own.severity,
        firing=counts[0],
        fired=counts[1],
        terms=terms_of(name, settings),
    )
