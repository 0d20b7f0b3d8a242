"""The dead man's switch: an address that is asked as long as rules are evaluated."""

import logging
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from flopwatch_collector.alerting.delivery import posting
from flopwatch_collector.alerting.delivery.posting import DeliveryFailed
from flopwatch_collector.config_alerts import AlertSettings

TIMEOUT_SECONDS = 10.0

log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class Heartbeat:
    """Asks the address after an evaluation, at most so often; a failure is logged once until it works again."""

    url: str = field(repr=False)
    every_seconds: float = 60.0
    timeout_seconds: float = TIMEOUT_SECONDS

    def __post_init__(self) -> None:
        self._last = float("-inf")
        self._failing = False
        self._thread: threading.Thread | None = None

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine."""
        return posting.is_loopback(urlsplit(self.url).hostname or "")

    @property
    def privacy_form(self) -> str:
        """The address as it may be printed."""
        return posting.privacy_form(self.url)

    def beat(self) -> None:
        """Rules were evaluated just now. Returns at once; one request at a time is under way."""
        now = time.monotonic()
        busy = self._thread is not None and self._thread.is_alive()
        if busy or now - self._last < self.every_seconds:
            return
        self._last = now
        self._thread = threading.Thread(target=self._ask, name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait for the request in progress."""
        if self._thread is not None:
            self._thread.join(self.timeout_seconds)

    def ask(self) -> None:
        """Ask once.

        Raises:
            DeliveryFailed: the answer is not 2xx.
        """
        posting.ask(self.url, None, {}, self.timeout_seconds)

    def _ask(self) -> None:
        try:
            self.ask()
        except DeliveryFailed as error:
            if not self._failing:
                log.warning("the heartbeat to %s fails: %s", self.privacy_form, error)
            self._failing = True
            return
        self._failing = False


def from_settings(settings: AlertSettings) -> Heartbeat | None:
    """The heartbeat, where an address is set.

    Raises:
        SettingError: a file that cannot be read, an address that is not HTTP.
    """
    url = posting.one_of(
        settings.heartbeat_url, settings.heartbeat_url_file, "alerts.heartbeat_url", needed=False
    )
    if url is None:
        return None
    return Heartbeat(
        url=posting.http_address(url, "alerts.heartbeat_url"), every_seconds=settings.heartbeat_seconds
    )
