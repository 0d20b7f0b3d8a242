"""When a group of alerts speaks: it waits for its first companions, then keeps an interval, then repeats. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from flopwatch_collector.alerting.notices import GROUP_LABELS, NoticeStatus
from flopwatch_collector.alerting.state import AlertRecord
from flopwatch_collector.config_alerts import AlertSettings

Change = tuple[NoticeStatus, AlertRecord]


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupRecord:
    """When a group has something to say, and when it last spoke; kept across restarts."""

    waiting_since_seconds: float | None = None
    sent_seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Spoken:
    """What is said now, and the groups after that."""

    changes: tuple[Change, ...]
    groups: Mapping[str, GroupRecord]


def key_of(record: AlertRecord) -> str:
    """The group of an alert: rule, cluster and job."""
    return "\x1f".join((record.rule, *(record.labels.get(name, "") for name in GROUP_LABELS)))


def speak(
    changes: Iterable[Change],
    firing: Iterable[AlertRecord],
    groups: Mapping[str, GroupRecord],
    settings: AlertSettings,
    now: float,
) -> Spoken:
    """The changes whose groups may speak now, and what is repeated.

    ``firing`` are alerts that were said and may be repeated. A group without any alert is forgotten.
    """
    waiting: dict[str, list[Change]] = {}
    for change in changes:
        waiting.setdefault(key_of(change[1]), []).append(change)
    members: dict[str, list[AlertRecord]] = {}
    for record in firing:
        members.setdefault(key_of(record), []).append(record)
    said: list[Change] = []
    after: dict[str, GroupRecord] = {}
    for key in {**waiting, **members}:
        group, words = _turn(
            groups.get(key, GroupRecord()), waiting.get(key, []), members.get(key, []), (settings, now)
        )
        said.extend(words)
        if key in members or group.waiting_since_seconds is not None or _fires(words):
            after[key] = group
    return Spoken(changes=tuple(said), groups=after)


def _turn(
    group: GroupRecord,
    changes: list[Change],
    members: list[AlertRecord],
    clock: tuple[AlertSettings, float],
) -> tuple[GroupRecord, list[Change]]:
    settings, now = clock
    if changes:
        since = now if group.waiting_since_seconds is None else group.waiting_since_seconds
        if not _may_speak(group, since, changes, clock):
            return replace(group, waiting_since_seconds=since), []
        return GroupRecord(sent_seconds=now), changes
    quiet = replace(group, waiting_since_seconds=None)
    repeat = settings.repeat_interval_seconds
    if group.sent_seconds is None or not repeat or now - group.sent_seconds < repeat:
        return quiet, []
    return GroupRecord(sent_seconds=now), [("firing", record) for record in members]


def _may_speak(
    group: GroupRecord, since: float, changes: list[Change], clock: tuple[AlertSettings, float]
) -> bool:
    """What is critical now and was not said to be waits for its companions only."""
    settings, now = clock
    urgent = any(status == "firing" and record.severity == "critical" for status, record in changes)
    if group.sent_seconds is None or urgent:
        return now - since >= settings.group_wait_seconds
    return now - group.sent_seconds >= settings.group_interval_seconds


def _fires(changes: list[Change]) -> bool:
    return any(status == "firing" for status, _ in changes)
