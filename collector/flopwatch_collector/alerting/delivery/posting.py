"""One HTTP request to a receiver, with a timeout. Its address is a secret and is never printed."""

import base64
import http.client
import ipaddress
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from flopwatch.settings import SettingError

REFUSED_STATUSES = frozenset((400, 405, 413, 415, 422))
"""Answers that say that this very message will never be taken."""
ALLOWED_URL = "an address that begins with http:// or https:// and names a host"
MOST_ANSWER_BYTES = 65_536


class DeliveryFailed(Exception):
    """A message was not taken; ``permanent`` when trying again cannot help."""

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.permanent = permanent


def post(url: str, document: Any, headers: Mapping[str, str], timeout_seconds: float) -> bytes:
    """Post JSON; the answer's first 64 KiB once the receiver has answered 2xx.

    Raises:
        DeliveryFailed: anything else.
    """
    return ask(url, json.dumps(document, ensure_ascii=False).encode(), headers, timeout_seconds)


def ask(url: str, data: bytes | None, headers: Mapping[str, str], timeout_seconds: float) -> bytes:
    """GET without data, POST with it; the answer's first 64 KiB.

    Raises:
        DeliveryFailed: no answer, or one that is not 2xx. Redirects are not followed.
    """
    request = _request(url, data, headers)
    try:
        with _opener(url).open(request, timeout=timeout_seconds) as answer:
            return bytes(answer.read(MOST_ANSWER_BYTES))
    except urllib.error.HTTPError as error:
        error.close()
        raise DeliveryFailed(f"answered {error.code}", permanent=error.code in REFUSED_STATUSES) from None
    except urllib.error.URLError as error:
        raise DeliveryFailed(reason(error.reason)) from None
    except (OSError, http.client.HTTPException) as error:
        raise DeliveryFailed(reason(error)) from None


def _request(url: str, data: bytes | None, headers: Mapping[str, str]) -> urllib.request.Request:
    """The user of the address goes into a header: urllib would take it for a part of the host."""
    parts = urlsplit(url)
    own = {"User-Agent": "flopwatch"}
    if data is not None:
        own["Content-Type"] = "application/json"
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        own["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
    return urllib.request.Request(  # noqa: S310 - the scheme was checked when the channel was made
        parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(),
        data=data,
        headers={**own, **headers},
        method="GET" if data is None else "POST",
    )


def _opener(url: str) -> urllib.request.OpenerDirector:
    """Without redirects, which would turn the POST into a GET; without a proxy to this machine."""
    handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
    if is_loopback(urlsplit(url).hostname or ""):
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: object) -> None:
        """No other address is ever tried."""


def reason(error: object) -> str:
    """What went wrong, in words that hold no address."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__ if isinstance(error, Exception) else "no connection"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def privacy_form(url: str) -> str:
    """An address without what may be a secret: user, path and query."""
    return privacy_of(urlsplit(url))


def privacy_of(parts: SplitResult) -> str:
    """The same of an address in parts."""
    port = f":{parts.port}" if parts.port is not None else ""
    rest = "/…" if parts.path not in ("", "/") or parts.query else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{rest}"


def read_secret(path: Path | None, setting: str) -> str | None:
    """The one line of a file; None without a file.

    Raises:
        SettingError: it cannot be read, or is not one line of text.
    """
    if path is None:
        return None
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise SettingError(setting, str(path), f"a readable file ({words})") from error
    if not text or any(ord(character) < 32 for character in text):
        raise SettingError(setting, str(path), "a file of one line of text")
    return text


def one_of(value: str | None, path: Path | None, setting: str, *, needed: bool = True) -> str | None:
    """A secret that is in the settings or in a file.

    Raises:
        SettingError: both, or neither where it is needed, or the file cannot be read.
    """
    short = setting.rpartition(".")[2]
    if value is not None and path is not None:
        raise SettingError(setting, None, f"either {short} or {short}_file")
    if needed and value is None and path is None:
        raise SettingError(setting, None, f"either {short} or {short}_file")
    return value if value is not None else read_secret(path, f"{setting}_file")


def http_address(url: str, setting: str) -> str:
    """The address, when HTTP can be spoken with it.

    Raises:
        SettingError: it is none; the message does not show it.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise SettingError(setting, "(not shown)", ALLOWED_URL) from None
    if not url.isascii() or any(character.isspace() for character in url):
        raise SettingError(setting, privacy_of(parts), "an address without spaces, percent-encoded")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingError(setting, privacy_of(parts), ALLOWED_URL)
    return url
