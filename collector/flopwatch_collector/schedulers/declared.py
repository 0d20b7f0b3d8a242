"""Nodes and GPUs out of service or held back: what is wanted now, against what has been told. Pure."""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, TypeAlias

from flopwatch.wire import Event
from flopwatch_collector.config_schedulers import WindowSettings, parse_every, parsed_time

Declaration: TypeAlias = Literal["maintenance", "spare", "drain", "faulty"]
Track: TypeAlias = Literal["maintenance", "spare", "faulty"]
"""Drained and out of order are one track of the ledger: either makes a GPU without a lease FAULT."""
TRACKS: Final[Mapping[Declaration, Track]] = {
    "maintenance": "maintenance", "spare": "spare", "drain": "faulty", "faulty": "faulty",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """A declaration of an operator, durable. Times are epoch seconds."""

    window_id: str
    declaration: Declaration
    cluster: str
    node: str
    gpu: str | None = None
    """UUID; None: the whole node."""
    from_seconds: float
    until_seconds: float | None = None
    reason: str = ""
    declared_by: str | None = None
    declared_seconds: float = 0.0
    ended_by: str | None = None
    ended_seconds: float | None = None
    told: bool = False
    """It was over when it was declared, and is in the ledger."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """What a declaration is of."""

    cluster: str
    node: str
    gpu: str | None
    track: Track

    @property
    def key(self) -> str:
        """A key for documents."""
        return "/".join((self.cluster, self.node, self.gpu or "", self.track))


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """A declaration that holds."""

    cluster: str
    node: str
    gpu: str | None = None
    declaration: Declaration
    since_seconds: float
    until_seconds: float | None = None
    source: str
    """``operator``, ``settings``, or the scheduler's name."""
    text: str = ""
    drained: bool = False
    """A node out of order that its scheduler holds drained too: it was taken out of service."""

    @property
    def place(self) -> Place:
        """What it is of."""
        return Place(cluster=self.cluster, node=self.node, gpu=self.gpu, track=TRACKS[self.declaration])


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """An event for a node."""

    cluster: str
    node: str
    event: Event


def standing_of(windows: Iterable[Window], now: float) -> list[Standing]:
    """The windows that are open."""
    return [
        Standing(
            cluster=each.cluster,
            node=each.node,
            gpu=each.gpu,
            declaration=each.declaration,
            since_seconds=each.from_seconds,
            until_seconds=each.until_seconds,
            source="operator",
            text=_said(each),
        )
        for each in windows
        if each.from_seconds <= now and (each.until_seconds is None or now < each.until_seconds)
    ]


def _said(window: Window) -> str:
    by = f" (by {window.declared_by})" if window.declared_by else ""
    return f"{window.reason}{by}".strip()


def open_at(window: WindowSettings, now: float, zone: datetime.tzinfo) -> tuple[float, float | None] | None:
    """(since when, until when) a window of the settings is open; None while it is not.

    One without a beginning is open since it is first looked at.
    """
    begin = None if window.begin is None else parsed_time("begin", window.begin, zone)
    end = None if window.end is None else parsed_time("end", window.end, zone)
    if (begin is not None and now < begin) or (end is not None and now >= end):
        return None
    if window.every is None:
        return (begin if begin is not None else now), end
    weekday, minute = parse_every(window.every)
    today = datetime.datetime.fromtimestamp(now, zone).date()
    for day in (today, today - datetime.timedelta(days=1)):
        opened = datetime.datetime.combine(day, datetime.time(minute // 60, minute % 60), zone).timestamp()
        closed = opened + (window.hours or 0.0) * 3600.0
        if (weekday is None or day.weekday() == weekday) and opened <= now < closed:
            return opened, closed
    return None


def matches(window: WindowSettings, cluster: str, node: str) -> bool:
    """Whether a window of the settings is of this node."""
    return fnmatchcase(cluster, window.cluster) and any(fnmatchcase(node, each) for each in window.nodes)


def changes(
    wanted: Iterable[Standing], before: Mapping[str, Standing], now: float
) -> tuple[list[Told], dict[str, Standing], set[str]]:
    """(events, what holds from now on by key, keys that no longer do).

    Of several declarations of one track the oldest counts; what nobody says any more ends now.
    """
    chosen: dict[str, Standing] = {}
    for each in sorted(wanted, key=lambda each: (each.since_seconds, each.source)):
        chosen.setdefault(each.place.key, each)
    events = [
        Told(cluster=each.cluster, node=each.node, event=begin(each, min(each.since_seconds, now)))
        for key, each in chosen.items()
        if key not in before or each.since_seconds < before[key].since_seconds
    ]
    ended = before.keys() - chosen.keys()
    events += [
        Told(cluster=each.cluster, node=each.node, event=end(each, min(now, each.until_seconds or now)))
        for key, each in before.items()
        if key in ended
    ]
    holds = {
        key: replace(each, since_seconds=min(each.since_seconds, before[key].since_seconds))
        if key in before
        else each
        for key, each in chosen.items()
    }
    return events, holds, set(ended)


def begin(standing: Standing, at: float) -> Event:
    """The event by which it begins."""
    return _event(standing, at, "faulty", "begin")


def end(standing: Standing, at: float) -> Event:
    """The event by which it ends."""
    return _event(standing, at, "ok", "end")


def _event(standing: Standing, at: float, health: str, word: str) -> Event:
    kind: Any = "health" if standing.declaration == "faulty" else standing.declaration
    return Event(
        time_seconds=at,
        kind=kind,
        gpu=standing.gpu,
        value=health if kind == "health" else word,
        text=standing.text,
    )
