"""A webhook that takes Alertmanager's messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from flopwatch_collector.alerting.delivery import posting
from flopwatch_collector.alerting.delivery.posting import DeliveryFailed as DeliveryFailed  # noqa: PLC0414 - also here
from flopwatch_collector.config import NotifySettings

DELIVERY_HEADER = "Flopwatch-Delivery"
"""Names the message: the same on every attempt, so that a receiver can drop a repetition."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Webhook:
    """A receiver of Alertmanager's webhook messages."""

    name: str
    url: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    timeout_seconds: float = 10.0

    @property
    def privacy_form(self) -> str:
        """The address without what may be a secret: user, path and query."""
        return posting.privacy_form(self.url)

    @property
    def loopback(self) -> bool:
        """Whether the receiver is on this machine."""
        return posting.is_loopback(urlsplit(self.url).hostname or "")

    def send(self, body: Mapping[str, Any], delivery_id: str) -> None:
        """Post the body; returns when the receiver has answered 2xx.

        Raises:
            DeliveryFailed: anything else.
        """
        bearer = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        posting.post(self.url, body, {DELIVERY_HEADER: delivery_id, **bearer}, self.timeout_seconds)


def from_settings(settings: NotifySettings) -> Webhook:
    """The channel of one ``[[notify]]``.

    Raises:
        SettingError: no address or two, a file that cannot be read, an address that is not HTTP.
    """
    name = f"notify.{settings.name}"
    url = posting.one_of(settings.url, settings.url_file, f"{name}.url")
    return Webhook(
        name=settings.name,
        url=posting.http_address(url or "", f"{name}.url"),
        token=posting.read_secret(settings.token_file, f"{name}.token_file"),
        timeout_seconds=settings.timeout_seconds,
    )
