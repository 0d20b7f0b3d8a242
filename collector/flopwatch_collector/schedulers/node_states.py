"""Declarations of nodes and GPUs: kept, joined from all who declare, and told to the ledger as events."""

import datetime
import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from flopwatch_collector.config_schedulers import SiteSettings, WindowSettings
from flopwatch_collector.model import FleetState, Gpu
from flopwatch_collector.schedulers.declared import (
    TRACKS,
    Declaration,
    Standing,
    Told,
    Window,
    begin,
    changes,
    end,
    matches,
    open_at,
    standing_of,
)
from flopwatch_collector.schedulers.placing import Fleet
from flopwatch_collector.schedulers.reading import Reading
from flopwatch_collector.store.port import Control

WINDOWS, STANDING = "node_window", "node_standing"
OLDEST_SECONDS = 7 * 86_400.0
"""What a scheduler says has stood for longer is told from then on: figures are made anew only so far back."""

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class NodeStates:
    """Who declared what of which node. Safe for threads."""

    control: Control
    state: Callable[[], FleetState]
    tell: Callable[[list[Told]], None]
    """Makes events durable."""
    settings: SiteSettings = field(default_factory=SiteSettings)
    zone: datetime.tzinfo = datetime.timezone.utc
    _readings: dict[str, list[Standing]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def windows(self) -> list[Window]:
        """All that operators declared, the newest first."""
        known = self.control.load(WINDOWS, Window).values()
        return sorted(known, key=lambda each: (-each.declared_seconds, each.window_id))

    def standing(self) -> list[Standing]:
        """What holds now, by everybody."""
        return sorted(self.control.load(STANDING, Standing).values(), key=lambda each: each.place.key)

    def declare(self, window: Window) -> Window:
        """Keep a declaration; it counts from the next ``turn`` on."""
        kept = replace(window, window_id=uuid.uuid4().hex[:12])
        self.control.save(WINDOWS, {kept.window_id: kept})
        log.info(
            "%s declares %s of %s/%s%s from %.0f: %s",
            kept.declared_by or "somebody",
            kept.declaration,
            kept.cluster,
            kept.node,
            f" {kept.gpu}" if kept.gpu else "",
            kept.from_seconds,
            kept.reason,
        )
        return kept

    def end(self, of: Window, now: float, by: str | None) -> list[Window]:
        """End the open declarations of the same track of a node or GPU; those that were ended."""
        ended = []
        for window in self.windows():
            same = (window.cluster, window.node, window.gpu) == (of.cluster, of.node, of.gpu)
            over = window.until_seconds is not None and window.until_seconds <= now
            if same and not over and TRACKS[window.declaration] == TRACKS[of.declaration]:
                until = max(of.from_seconds, window.from_seconds)
                ended.append(replace(window, until_seconds=until, ended_by=by, ended_seconds=now))
        self.control.save(WINDOWS, {each.window_id: each for each in ended})
        for each in ended:
            log.info("%s ends %s of %s/%s", by or "somebody", each.declaration, each.cluster, each.node)
        return ended

    def reading(self, source: str, cluster: str, reading: Reading) -> None:
        """Take what a scheduler says of its nodes; a reading without nodes leaves what it said before."""
        if reading.nodes is None:
            return
        fleet = Fleet(state=self.state(), cluster=cluster)
        told: list[Standing] = []
        for node in reading.nodes:
            name = fleet.name_of(node)
            if name not in fleet.nodes:
                continue
            oldest = reading.time_seconds - OLDEST_SECONDS
            states: list[tuple[Declaration, float | None, str]] = []
            if node.trouble is not None:
                word: Declaration = "drain" if node.trouble == "drain" else "faulty"
                states.append((word, node.trouble_since_seconds, node.trouble_text))
            if node.maintenance:
                states.append(("maintenance", node.maintenance_since_seconds, node.maintenance_text))
            told += [
                Standing(
                    cluster=cluster,
                    node=name,
                    declaration=declaration,
                    since_seconds=max(reading.time_seconds if since is None else since, oldest),
                    source=source,
                    text=text,
                    drained=node.drained and declaration == "faulty",
                )
                for declaration, since, text in states
            ]
        with self._lock:
            self._readings[source] = told

    def turn(self, now: float) -> int:
        """Tell what has begun and what has ended since the last turn; how many events that were.

        Raises:
            Unavailable: the control state or the store cannot be reached; the next turn tells it.
        """
        with self._lock:
            before = self.control.load(STANDING, Standing)
            windows = self.windows()
            wanted = [*standing_of(windows, now), *self._of_settings(now), *self._of_schedulers(before)]
            told, holds, ended = changes(wanted, before, now)
            past = [each for each in windows if not each.told and _is_past(each, now, before)]
            told += [event for window in past for event in _both(window)]
            self.tell(told)
            self.control.save(STANDING, {key: each for key, each in holds.items() if before.get(key) != each})
            self.control.delete(STANDING, ended)
            self.control.save(
                WINDOWS,
                {
                    each.window_id: replace(each, told=True)
                    for each in windows
                    if not each.told and each.from_seconds <= now
                },
            )
        return len(told)

    def _of_schedulers(self, before: Mapping[str, Standing]) -> list[Standing]:
        """What schedulers said last; of one that has not been read since the start, what it said before that."""
        names = {each.shown_name for each in self.settings.schedulers}
        waiting = names - self._readings.keys()
        return [
            *(each for told in self._readings.values() for each in told),
            *(each for each in before.values() if each.source in waiting),
        ]

    def _of_settings(self, now: float) -> list[Standing]:
        tables: tuple[tuple[Declaration, tuple[WindowSettings, ...]], ...] = (
            ("maintenance", self.settings.maintenance),
            ("spare", self.settings.spares),
        )
        state = self.state()
        result: list[Standing] = []
        for declaration, entries in tables:
            for entry in entries:
                span = open_at(entry, now, self.zone)
                if span is not None:
                    result += _by_settings(entry, declaration, span, state)
        return result


def _by_settings(
    entry: WindowSettings, declaration: Declaration, span: tuple[float, float | None], state: FleetState
) -> list[Standing]:
    """An open window of the settings for each of its nodes or GPUs."""
    nodes = [node for node in state.nodes.values() if matches(entry, node.cluster, node.name)]
    targets: list[tuple[str, str, str | None]] = [(node.cluster, node.name, None) for node in nodes]
    if entry.gpus:
        targets = [
            (node.cluster, node.name, gpu.uuid)
            for node in nodes
            for gpu in gpus_named(state, node.number, entry.gpus)
        ]
    return [
        Standing(
            cluster=cluster,
            node=name,
            gpu=gpu,
            declaration=declaration,
            since_seconds=span[0],
            until_seconds=span[1],
            source="settings",
            text=entry.reason,
        )
        for cluster, name, gpu in targets
    ]


def gpus_named(state: FleetState, node: int, names: Iterable[str]) -> list[Gpu]:
    """GPUs in the node's slots now that are named by slot, index or UUID."""
    asked = {name.strip().lower() for name in names}
    return [
        gpu
        for gpu in sorted(state.gpus.values(), key=lambda gpu: gpu.number)
        if gpu.node == node
        and gpu.to_seconds is None
        and asked & {gpu.slot.lower(), gpu.uuid.lower(), "" if gpu.index is None else str(gpu.index)}
    ]


def _is_past(window: Window, now: float, before: Mapping[str, Standing]) -> bool:
    """Whether a window was over when it was declared, so that it never stood."""
    over = window.until_seconds is not None and window.until_seconds <= now
    return (
        over and window.from_seconds < (window.until_seconds or now) and _of(window).place.key not in before
    )


def _both(window: Window) -> list[Told]:
    """The events of a window that is over."""
    standing, until = _of(window), window.until_seconds or window.from_seconds
    return [
        Told(cluster=window.cluster, node=window.node, event=begin(standing, window.from_seconds)),
        Told(cluster=window.cluster, node=window.node, event=end(standing, until)),
    ]


def _of(window: Window) -> Standing:
    return Standing(
        cluster=window.cluster,
        node=window.node,
        gpu=window.gpu,
        declaration=window.declaration,
        since_seconds=window.from_seconds,
        source="operator",
        text=window.reason,
    )
