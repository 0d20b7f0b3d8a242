"""All channels together: makes outbox entries of notices, and hands them to the channels' workers."""

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from flopwatch_collector.alerting.delivery.alertmanager import Republisher
from flopwatch_collector.alerting.delivery.channels import Wiring
from flopwatch_collector.alerting.delivery.mail import is_address
from flopwatch_collector.alerting.delivery.outbox import OUTBOX_KIND, Channel, ChannelStats, Entry, Worker
from flopwatch_collector.alerting.delivery.routing import channels_of
from flopwatch_collector.alerting.notices import Notice, NoticeAlert
from flopwatch_collector.store.port import Control

log = logging.getLogger(__name__)


class _Receiver(Protocol):
    @property
    def loopback(self) -> bool: ...

    @property
    def privacy_form(self) -> str: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Pending:
    """Entries that are to be saved with the states that caused them, then handed over."""

    entries: tuple[Entry, ...]

    @property
    def documents(self) -> Mapping[str, Entry]:
        """The entries by their key."""
        return {entry.delivery_id: entry for entry in self.entries}


class Notifier:
    """The configured channels, each with a worker of its own: a slow one delays no other, and no evaluation."""

    def __init__(
        self,
        channels: Sequence[Channel],
        control: Control,
        *,
        external_url: str = "",
        clock: Callable[[], float] = time.time,
        wiring: Wiring | None = None,
    ) -> None:
        self._wiring = wiring or Wiring()
        self._workers = {
            channel.name: Worker(
                channel=channel,
                control=control,
                clock=clock,
                messages_per_minute=self._wiring.limit(channel.name),
            )
            for channel in channels
        }
        self._republishers = tuple(
            Republisher(receiver=receiver, clock=clock) for receiver in self._wiring.alertmanagers
        )
        self._control = control
        self._external_url = external_url
        self._order = 0
        self._refused: set[str] = set()

    @property
    def external_url(self) -> str:
        """Where people find the dashboard."""
        return self._external_url

    def start(self) -> None:
        """Take up what an earlier process left in the outbox, and begin to send."""
        left = sorted(self._control.load(OUTBOX_KIND, Entry).values(), key=lambda entry: entry.order)
        orphans = [entry for entry in left if entry.channel not in self._workers]
        if orphans:
            log.warning("%d alerts waited for channels that are not configured any more", len(orphans))
            self._control.delete(OUTBOX_KIND, [entry.delivery_id for entry in orphans])
        self._order = max((entry.order for entry in left), default=0)
        for name, worker in self._workers.items():
            worker.take_up(entry for entry in left if entry.channel == name)
            worker.start()
        for republisher in self._republishers:
            republisher.start()

    def prepare(self, notices: Iterable[Notice], now: float, *, simulated: bool) -> Pending:
        """Entries for every channel that may have these notices, each with the alerts that are routed to it.

        A simulated cluster reaches only receivers on this machine.
        """
        channels = [worker.channel for worker in self._workers.values()]
        allowed = [channel.name for channel in channels if self._may(channel.name, channel, simulated)]
        entries = [
            entry for notice in notices for entry in self._entries(notice, allowed, now, simulated=simulated)
        ]
        return Pending(entries=tuple(entries))

    def hand_over(self, pending: Pending) -> None:
        """Give the workers what is durable now."""
        for name, worker in self._workers.items():
            mine = [entry for entry in pending.entries if entry.channel == name]
            if mine:
                worker.put(mine)

    def publish(self, alerts: Sequence[NoticeAlert], *, simulated: bool) -> None:
        """Tell receivers that keep states themselves what fires, and what ended lately."""
        for republisher in self._republishers:
            name = republisher.receiver.name
            if self._may(name, republisher.receiver, simulated):
                republisher.publish(alert for alert in alerts if name in self._routed(alert, [name]))

    def beat(self, now: float, *, simulated: bool) -> None:  # noqa: ARG002 - who counts beats may want it
        """Rules were evaluated."""
        heart = self._wiring.heartbeat
        if heart is not None and self._may("heartbeat", heart, simulated):
            heart.beat()

    def stats(self) -> tuple[ChannelStats, ...]:
        """How each channel fares."""
        workers = tuple(worker.stats() for worker in self._workers.values())
        return (*workers, *(republisher.stats() for republisher in self._republishers))

    def stop(self) -> None:
        """End the workers; what waits is sent by the next process."""
        for worker in self._workers.values():
            worker.stop()
        for republisher in self._republishers:
            republisher.stop()
        if self._wiring.heartbeat is not None:
            self._wiring.heartbeat.stop()

    def _may(self, name: str, receiver: _Receiver, simulated: bool) -> bool:  # noqa: FBT001 - private
        if not simulated or receiver.loopback:
            return True
        if name not in self._refused:
            self._refused.add(name)
            log.warning(
                "channel %s (%s) gets nothing: the cluster is simulated, and only receivers on this machine "
                "are used then",
                name,
                receiver.privacy_form,
            )
        return False

    def _routed(self, alert: NoticeAlert, names: Iterable[str]) -> frozenset[str]:
        return channels_of(alert, self._wiring.routes, names)

    def _entries(
        self, notice: Notice, allowed: Sequence[str], now: float, *, simulated: bool
    ) -> Iterator[Entry]:
        routed = [(alert, self._routed(alert, allowed)) for alert in notice.alerts]
        for name in allowed:
            alerts = tuple(alert for alert, names in routed if name in names)
            if alerts and name not in self._wiring.only_to_owners:
                yield self._entry(name, replace(notice, alerts=alerts), now, "")
            if name in self._wiring.to_owners and not simulated:
                for owner in sorted({alert.owner for alert in alerts if is_address(alert.owner)}):
                    own = tuple(alert for alert in alerts if alert.owner == owner)
                    yield self._entry(name, replace(notice, alerts=own), now, owner)

    def _entry(self, channel: str, notice: Notice, now: float, owner: str) -> Entry:
        self._order += 1
        return Entry(
            delivery_id=_delivery_id(channel, notice, now, owner),
            channel=channel,
            order=self._order,
            created_seconds=now,
            external_url=self._external_url,
            notice=notice,
            owner=owner,
        )


def _delivery_id(channel: str, notice: Notice, now: float, owner: str) -> str:
    """The same for the same message, whoever makes it."""
    parts = [
        channel,
        notice.status,
        repr(now),
        *(alert.fingerprint + alert.starts_at for alert in notice.alerts),
        *([owner] if owner else []),
    ]
    return hashlib.sha256("\x1e".join(parts).encode()).hexdigest()[:32]
