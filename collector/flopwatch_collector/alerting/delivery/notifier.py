"""All channels together: makes outbox entries of notices, and hands them to the channels' workers."""

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from flopwatch_collector.alerting.delivery.outbox import OUTBOX_KIND, Channel, ChannelStats, Entry, Worker
from flopwatch_collector.alerting.notices import Notice
from flopwatch_collector.store.port import Control

log = logging.getLogger(__name__)


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
    ) -> None:
        self._workers = {
            channel.name: Worker(channel=channel, control=control, clock=clock) for channel in channels
        }
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

    def prepare(self, notices: Iterable[Notice], now: float, *, simulated: bool) -> Pending:
        """Entries for every channel that may have these notices.

        A simulated cluster reaches only receivers on this machine.
        """
        channels = [worker.channel for worker in self._workers.values()]
        allowed = [channel for channel in channels if not simulated or channel.loopback]
        for channel in channels:
            if channel not in allowed and channel.name not in self._refused:
                self._refused.add(channel.name)
                log.warning(
                    "channel %s (%s) gets nothing: the cluster is simulated, and only receivers on this machine "
                    "are used then",
                    channel.name,
                    channel.privacy_form,
                )
        entries = [self._entry(channel, notice, now) for notice in notices for channel in allowed]
        return Pending(entries=tuple(entries))

    def hand_over(self, pending: Pending) -> None:
        """Give the workers what is durable now."""
        for name, worker in self._workers.items():
            mine = [entry for entry in pending.entries if entry.channel == name]
            if mine:
                worker.put(mine)

    def stats(self) -> tuple[ChannelStats, ...]:
        """How each channel fares."""
        return tuple(worker.stats() for worker in self._workers.values())

    def stop(self) -> None:
        """End the workers; what waits is sent by the next process."""
        for worker in self._workers.values():
            worker.stop()

    def _entry(self, channel: Channel, notice: Notice, now: float) -> Entry:
        self._order += 1
        return Entry(
            delivery_id=_delivery_id(channel.name, notice, now),
            channel=channel.name,
            order=self._order,
            created_seconds=now,
            external_url=self._external_url,
            notice=notice,
        )


def _delivery_id(channel: str, notice: Notice, now: float) -> str:
    """The same for the same message, whoever makes it."""
    parts = [
        channel,
        notice.status,
        repr(now),
        *(alert.fingerprint + alert.starts_at for alert in notice.alerts),
    ]
    return hashlib.sha256("\x1e".join(parts).encode()).hexdigest()[:32]
