"""Messages that wait to be delivered: durable with the change that caused them, sent by one worker a channel."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from flopwatch_collector.alerting.delivery.message import webhook_body
from flopwatch_collector.alerting.delivery.posting import DeliveryFailed
from flopwatch_collector.alerting.notices import Notice
from flopwatch_collector.store.port import Control

OUTBOX_KIND = "alert_outbox"
MESSAGES_PER_MINUTE = 10
FIRST_RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 300.0
GIVE_UP_SECONDS = 86_400.0
DIGEST_MESSAGES = 200
"""At most this many waiting messages are put into one."""

log = logging.getLogger(__name__)


class Channel(Protocol):
    """Where messages go."""

    @property
    def name(self) -> str:
        """As in the settings; unique."""
        ...

    @property
    def privacy_form(self) -> str:
        """The address as it may be printed."""
        ...

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine."""
        ...

    def send(self, body: Mapping[str, Any], delivery_id: str) -> None:
        """Deliver, or raise ``DeliveryFailed``."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One message to one channel."""

    delivery_id: str
    channel: str
    order: int
    created_seconds: float
    external_url: str
    notice: Notice
    owner: str = ""
    """The one person it is for; empty: whoever the channel reaches."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelStats:
    """How a channel fares, for metrics and the status page."""

    channel: str
    waiting: int
    delivered: int
    failed_attempts: int
    given_up: int


@dataclass(slots=True)
class Counts:
    """Of one channel since the start."""

    delivered: int = 0
    failed_attempts: int = 0
    given_up: int = 0


@dataclass(kw_only=True)
class Worker:
    """Sends one channel's messages in order, one at a time, never faster than the limit."""

    channel: Channel
    control: Control
    clock: Callable[[], float] = time.time
    messages_per_minute: int = MESSAGES_PER_MINUTE
    first_retry_seconds: float = FIRST_RETRY_SECONDS
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        self._waiting: deque[Entry] = deque()
        self._changed = threading.Condition()
        self._unnoted: list[str] = []
        self._stopping = False
        self._sent: deque[float] = deque()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to send; may be called again after ``stop``."""
        if self._thread is not None:
            self._thread.join()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"notify-{self.channel.name}", daemon=True)
        self._thread.start()

    def take_up(self, entries: Iterable[Entry]) -> None:
        """Have exactly these messages, which are in the outbox, wait."""
        with self._changed:
            self._waiting = deque(entries)

    def put(self, entries: Iterable[Entry]) -> None:
        """Add messages that are durable already."""
        with self._changed:
            self._waiting.extend(entries)
            self._changed.notify_all()

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """End after the attempt in progress; what waits stays in the outbox."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def stats(self) -> ChannelStats:
        """Counts since the start."""
        with self._changed:
            waiting = len(self._waiting)
        return ChannelStats(
            channel=self.channel.name,
            waiting=waiting,
            delivered=self.counts.delivered,
            failed_attempts=self.counts.failed_attempts,
            given_up=self.counts.given_up,
        )

    def _run(self) -> None:
        retry_seconds = self.first_retry_seconds
        while (entries := self._next()) is not None:
            if self._attempt_safely(entries):
                retry_seconds = self.first_retry_seconds
                continue
            self._pause(retry_seconds)
            retry_seconds = min(LONGEST_RETRY_SECONDS, 2.0 * retry_seconds)

    def _attempt_safely(self, entries: list[Entry]) -> bool:
        """One attempt; what was not foreseen (a full disk under the outbox) must not end delivery."""
        try:
            return self._attempt(entries)
        except Exception:
            log.exception("delivery to %s (%s) failed", self.channel.name, self.channel.privacy_form)
            self.counts.failed_attempts += 1
            return False

    def _next(self) -> list[Entry] | None:
        """The messages of the next attempt: one, or all that wait once the limit has made them wait."""
        digest = False
        with self._changed:
            while not self._stopping:
                if not self._waiting:
                    self._changed.wait()
                    continue
                held = self._held_seconds()
                if held <= 0.0:
                    return _together(list(self._waiting)[: DIGEST_MESSAGES if digest else 1])
                digest = True
                self._changed.wait(held)
        return None

    def _held_seconds(self) -> float:
        """How long the limit of messages a minute still holds the next one back."""
        now = time.monotonic()
        while self._sent and now - self._sent[0] >= 60.0:
            self._sent.popleft()
        return 60.0 - (now - self._sent[0]) if len(self._sent) >= self.messages_per_minute else 0.0

    def _attempt(self, entries: list[Entry]) -> bool:
        """Send once; True when these messages are done with, delivered or given up."""
        failure = self._failure(entries)
        if failure is None:
            self.counts.delivered += len(entries)
            self._forget(entries)
            return True
        self.counts.failed_attempts += 1
        given_up = failure.permanent or self.clock() - entries[0].created_seconds > GIVE_UP_SECONDS
        log.log(
            logging.ERROR if given_up else logging.WARNING,
            "alert to %s (%s) %s: %s",
            self.channel.name,
            self.channel.privacy_form,
            "given up" if given_up else "waits",
            failure,
        )
        if given_up:
            self.counts.given_up += len(entries)
            self._forget(entries)
        return given_up

    def _failure(self, entries: list[Entry]) -> DeliveryFailed | None:
        """Why the receiver did not take these messages; None when it did."""
        self._sent.append(time.monotonic())
        notices = [entry.notice for entry in entries]
        body = webhook_body(notices, self.channel.name, entries[-1].external_url)
        if entries[0].owner:
            body = {**body, "recipient": entries[0].owner}
        try:
            self.channel.send(body, entries[0].delivery_id)
        except DeliveryFailed as error:
            return error
        return None

    def _forget(self, entries: list[Entry]) -> None:
        """These are done with, in memory first: a note that cannot be written must not send them again."""
        with self._changed:
            for _ in entries:
                self._waiting.popleft()
        self._unnoted.extend(entry.delivery_id for entry in entries)
        self.control.delete(OUTBOX_KIND, self._unnoted)
        self._unnoted.clear()

    def _pause(self, seconds: float) -> None:
        with self._changed:
            if not self._stopping:
                self._changed.wait_for(lambda: self._stopping, seconds)


def _together(entries: list[Entry]) -> list[Entry]:
    """The first ones that are for the same person."""
    count = next((place for place, one in enumerate(entries) if one.owner != entries[0].owner), len(entries))
    return entries[:count]
