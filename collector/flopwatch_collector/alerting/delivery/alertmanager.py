"""Alertmanager's API v2: told again and again of what fires, until it has ended."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from flopwatch_collector.alerting.delivery import posting
from flopwatch_collector.alerting.delivery.outbox import (
    FIRST_RETRY_SECONDS,
    ChannelStats,
    Counts,
)
from flopwatch_collector.alerting.delivery.posting import DeliveryFailed
from flopwatch_collector.alerting.notices import NoticeAlert, timestamp
from flopwatch_collector.config import NotifySettings

AGAIN_SECONDS = 60.0
LIVES_SECONDS = 240.0
"""A firing alert that is not told again ends by itself after this long."""
MOST_ALERTS = 500
"""In one request."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Alertmanager:
    """The API of one Alertmanager."""

    name: str
    url: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    timeout_seconds: float = 10.0

    @property
    def privacy_form(self) -> str:
        """The address without what may be a secret."""
        return posting.privacy_form(self.url)

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine."""
        return posting.is_loopback(urlsplit(self.url).hostname or "")

    def tell(self, alerts: list[dict[str, Any]]) -> None:
        """Post alerts; returns when they were taken.

        Raises:
            DeliveryFailed: they were not.
        """
        bearer = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        for start in range(0, len(alerts), MOST_ALERTS):
            part = alerts[start : start + MOST_ALERTS]
            posting.post(self.url.rstrip("/") + "/api/v2/alerts", part, bearer, self.timeout_seconds)


def posted(alert: NoticeAlert, now: float) -> dict[str, Any]:
    """An alert as the API takes it; one that fires ends unless it is told again."""
    document: dict[str, Any] = {
        "labels": alert.labels,
        "annotations": alert.annotations,
        "startsAt": alert.starts_at,
        "endsAt": timestamp(now + LIVES_SECONDS) if alert.status == "firing" else alert.ends_at,
    }
    if alert.generator_url:
        document["generatorURL"] = alert.generator_url
    return document


@dataclass(kw_only=True)
class Republisher:
    """Tells one Alertmanager of everything that fires, at once when it changes and every minute.

    Nothing is kept: the alerts themselves are, and the next process tells them again.
    """

    receiver: Alertmanager
    clock: Callable[[], float] = time.time
    again_seconds: float = AGAIN_SECONDS
    retry_seconds: float = FIRST_RETRY_SECONDS
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        self._alerts: tuple[NoticeAlert, ...] | None = None
        self._told: dict[str, NoticeAlert] = {}
        self._fresh = False
        self._changed = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to tell; may be called again after ``stop``."""
        if self._thread is not None:
            self._thread.join()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"notify-{self.receiver.name}", daemon=True)
        self._thread.start()

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """End after the request in progress."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def publish(self, alerts: Iterable[NoticeAlert]) -> None:
        """What fires and what ended lately, from now on."""
        given = tuple(alerts)
        with self._changed:
            if self._alerts is None or _outline(self._alerts) != _outline(given):
                self._fresh = True
                self._changed.notify_all()
            self._alerts = given

    def stats(self) -> ChannelStats:
        """Counts since the start; what waits is what has changed and was not told yet."""
        with self._changed:
            waiting = len(self._alerts or ()) if self._fresh else 0
        return ChannelStats(
            channel=self.receiver.name,
            waiting=waiting,
            delivered=self.counts.delivered,
            failed_attempts=self.counts.failed_attempts,
            given_up=0,
        )

    def _run(self) -> None:
        retry = self.retry_seconds
        while (alerts := self._next()) is not None:
            if self._attempt(alerts):
                retry = self.retry_seconds
                continue
            with self._changed:
                self._fresh = True
                self._changed.wait_for(lambda: self._stopping, retry)
            retry = min(self.again_seconds, 2.0 * retry)

    def _next(self) -> tuple[NoticeAlert, ...] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or self._fresh, self.again_seconds)
            while not self._stopping and not self._alerts and not self._told:
                self._changed.wait()
            self._fresh = False
            return None if self._stopping else self._alerts or ()

    def _attempt(self, alerts: tuple[NoticeAlert, ...]) -> bool:
        now = self.clock()
        current = {alert.fingerprint: alert for alert in alerts}
        try:
            self.receiver.tell([*self._ended(current, now), *(posted(alert, now) for alert in alerts)])
        except DeliveryFailed as error:
            self.counts.failed_attempts += 1
            log.warning("alerts to %s (%s) wait: %s", self.receiver.name, self.receiver.privacy_form, error)
            return False
        self.counts.delivered += len(alerts)
        self._told = {key: alert for key, alert in current.items() if alert.status == "firing"}
        return True

    def _ended(self, current: dict[str, NoticeAlert], now: float) -> list[dict[str, Any]]:
        """What was told under labels that are not true any more: a changed severity is another alert there."""
        return [
            {**posted(alert, now), "endsAt": timestamp(now)}
            for key, alert in self._told.items()
            if key not in current or current[key].labels != alert.labels
        ]


def _outline(alerts: Iterable[NoticeAlert]) -> frozenset[tuple[str, str, str, str]]:
    """What makes telling urgent: which alerts there are, how severe, and which ended."""
    return frozenset(
        (alert.fingerprint, alert.status, alert.labels.get("severity", ""), alert.starts_at)
        for alert in alerts
    )


def from_settings(settings: NotifySettings) -> Alertmanager:
    """The receiver of one ``[[notify]]`` of kind ``alertmanager``.

    Raises:
        SettingError: no address or two, a file that cannot be read, an address that is not HTTP.
    """
    name = f"notify.{settings.name}"
    url = posting.one_of(settings.url, settings.url_file, f"{name}.url")
    return Alertmanager(
        name=settings.name,
        url=posting.http_address(url or "", f"{name}.url"),
        token=posting.read_secret(settings.token_file, f"{name}.token_file"),
        timeout_seconds=settings.timeout_seconds,
    )
