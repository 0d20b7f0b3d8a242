"""Posting a message to a webhook: one attempt, with a timeout. The address is a secret and is never printed."""

import base64
import http.client
import ipaddress
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from flopwatch.settings import SettingError
from flopwatch_collector.config import NotifySettings

DELIVERY_HEADER = "Flopwatch-Delivery"
"""Names the message: the same on every attempt, so that a receiver can drop a repetition."""
REFUSED_STATUSES = frozenset((400, 405, 413, 415, 422))
"""Answers that say that this very message will never be taken."""
ALLOWED_URL = "an address that begins with http:// or https:// and names a host"


class DeliveryFailed(Exception):
    """A message was not taken; ``permanent`` when trying again cannot help."""

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.permanent = permanent


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
        return _privacy_form(urlsplit(self.url))

    @property
    def loopback(self) -> bool:
        """Whether the receiver is on this machine."""
        return _is_loopback(urlsplit(self.url).hostname or "")

    def send(self, body: Mapping[str, Any], delivery_id: str) -> None:
        """Post the body; returns when the receiver has answered 2xx.

        Raises:
            DeliveryFailed: anything else.
        """
        request = self._request(body, delivery_id)
        try:
            with self._opener().open(request, timeout=self.timeout_seconds) as answer:
                answer.read(65_536)
        except urllib.error.HTTPError as error:
            error.close()
            raise DeliveryFailed(f"answered {error.code}", permanent=error.code in REFUSED_STATUSES) from None
        except urllib.error.URLError as error:
            raise DeliveryFailed(_reason(error.reason)) from None
        except (OSError, http.client.HTTPException) as error:
            raise DeliveryFailed(_reason(error)) from None

    def _request(self, body: Mapping[str, Any], delivery_id: str) -> urllib.request.Request:
        parts = urlsplit(self.url)
        return urllib.request.Request(  # noqa: S310 - the scheme was checked when the channel was made
            parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(),
            data=json.dumps(body, ensure_ascii=False).encode(),
            headers={
                "Content-Type": "application/json",
                "User-Agent": "flopwatch",
                DELIVERY_HEADER: delivery_id,
                **self._authorization(parts),
            },
            method="POST",
        )

    def _authorization(self, parts: SplitResult) -> dict[str, str]:
        """The token, else the user of the address, which urllib would take for a part of the host."""
        if self.token is not None:
            return {"Authorization": f"Bearer {self.token}"}
        if parts.username is None:
            return {}
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}

    def _opener(self) -> urllib.request.OpenerDirector:
        """Without redirects, which would turn the POST into a GET; without a proxy to this machine."""
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        if self.loopback:
            handlers.append(urllib.request.ProxyHandler({}))
        return urllib.request.build_opener(*handlers)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: object) -> None:
        """No other address is ever tried."""


def from_settings(settings: NotifySettings) -> Webhook:
    """The channel of one ``[[notify]]``.

    Raises:
        SettingError: no address or two, a file that cannot be read, an address that is not HTTP.
    """
    if (settings.url is None) == (settings.url_file is None):
        raise SettingError(f"notify.{settings.name}.url", None, "either url or url_file")
    url = settings.url if settings.url is not None else _read(settings.url_file, settings.name, "url_file")
    parts = _split(url or "", settings.name)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingError(f"notify.{settings.name}.url", _privacy_form(parts), ALLOWED_URL)
    if settings.timeout_seconds <= 0:
        raise SettingError(f"notify.{settings.name}.timeout_seconds", settings.timeout_seconds, "above 0")
    token = _read(settings.token_file, settings.name, "token_file")
    return Webhook(name=settings.name, url=url or "", token=token, timeout_seconds=settings.timeout_seconds)


def channels(settings: tuple[NotifySettings, ...]) -> tuple[Webhook, ...]:
    """The channels of all ``[[notify]]`` tables.

    Raises:
        SettingError: one is wrong, or two have the same name.
    """
    made = tuple(from_settings(one) for one in settings)
    names = [channel.name for channel in made]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SettingError("notify.name", twice[0], "a name for each [[notify]] of its own")
    return made


def _read(path: Path | None, name: str, setting: str) -> str | None:
    if path is None:
        return None
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise SettingError(f"notify.{name}.{setting}", str(path), f"a readable file ({reason})") from error
    if not text or any(ord(character) < 32 for character in text):
        raise SettingError(f"notify.{name}.{setting}", str(path), "a file of one line of text")
    return text


def _split(url: str, name: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise SettingError(f"notify.{name}.url", "(not shown)", ALLOWED_URL) from None
    if not url.isascii() or any(character.isspace() for character in url):
        raise SettingError(
            f"notify.{name}.url", _privacy_form(parts), "an address without spaces, percent-encoded"
        )
    return parts


def _privacy_form(parts: SplitResult) -> str:
    port = f":{parts.port}" if parts.port is not None else ""
    rest = "/…" if parts.path not in ("", "/") or parts.query else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{rest}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _reason(error: object) -> str:
    """What went wrong, in words that hold no address."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__ if isinstance(error, Exception) else "no connection"
