"""One HTTP server of the Prometheus world: who we are to it, how it is trusted, what is kept out of messages."""

import base64
import functools
import http.client
import ipaddress
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from flopwatch.settings import SettingError

ALLOWED_URL = "an address such as https://metrics.example.com/api/v1/write, without user and spaces"
MOST_BYTES = 64 * 1024 * 1024
"""A longer answer is not read."""


class Unreachable(Exception):
    """The server gave no answer; the message names no secret."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a server said."""

    status: int
    body: bytes
    retry_after_seconds: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """How one proves who one is: a bearer token, or a user with a password; headers such as a tenant's."""

    token_file: Path | None = None
    username: str | None = None
    password_file: Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def fields(self, setting: str) -> dict[str, str]:
        """The headers to send. Files are read each time, so that a rotated secret is taken up.

        Raises:
            SettingError: a file cannot be read or is empty, both ways are given, or a header is no line of text.
        """
        for name, value in self.headers.items():
            if not (
                isinstance(value, str) and (name + value).isascii() and (name + value).isprintable() and name
            ):
                raise SettingError(f"{setting}headers.{name}", "(not shown)", "one line of ASCII text")
        if self.token_file is not None and self.username is not None:
            raise SettingError(f"{setting}username", self.username, "absent when token_file is given")
        if (self.username is None) != (self.password_file is None):
            raise SettingError(f"{setting}password_file", None, "both username and password_file, or neither")
        result = dict(self.headers)
        if self.token_file is not None:
            result["Authorization"] = f"Bearer {line_of(self.token_file, f'{setting}token_file')}"
        if self.username is not None and self.password_file is not None:
            pair = f"{self.username}:{line_of(self.password_file, f'{setting}password_file')}"
            result["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        return result


@dataclass(frozen=True, kw_only=True, slots=True)
class Endpoint:
    """A server's address with the identity to use there.

    ``setting`` is what its settings begin with: ``remote_write.mimir.``, ``dashboard.prometheus_``.
    """

    setting: str
    url: str = field(repr=False)
    identity: Identity = Identity()
    ca_file: Path | None = None
    timeout_seconds: float = 10.0

    def __post_init__(self) -> None:
        require_url(self.url, f"{self.setting}url")
        self.identity.fields(self.setting)
        self._tls()

    @property
    def shown(self) -> str:
        """The address without its query."""
        parts = urlsplit(self.url)
        return parts._replace(query="", fragment="").geturl()

    @property
    def loopback(self) -> bool:
        """Whether the server is on this machine."""
        host = urlsplit(self.url).hostname or ""
        try:
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send a body to the address with ``path`` behind it, and give what is answered, whatever the status.

        Raises:
            Unreachable: there was no answer in time, or none that is HTTP.
            SettingError: a secret's file cannot be read any more.
        """
        own = {"User-Agent": "flopwatch", **self.identity.fields(self.setting), **headers}
        request = urllib.request.Request(self.url + path, data=body, headers=own, method="POST")  # noqa: S310 - the scheme is checked
        try:
            with self._opener().open(request, timeout=self.timeout_seconds) as answer:
                return Answer(status=answer.status, body=answer.read(MOST_BYTES), retry_after_seconds=None)
        except urllib.error.HTTPError as error:
            with error:
                wait = _seconds(error.headers.get("Retry-After"))
                return Answer(status=error.code, body=error.read(65_536), retry_after_seconds=wait)
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"{self.shown}: {_reason(error)}") from None

    def _opener(self) -> urllib.request.OpenerDirector:
        handlers: list[urllib.request.BaseHandler] = [_NoRedirect()]
        context = self._tls()
        if context is not None:
            handlers.append(urllib.request.HTTPSHandler(context=context))
        if self.loopback:
            handlers.append(urllib.request.ProxyHandler({}))
        return urllib.request.build_opener(*handlers)

    def _tls(self) -> ssl.SSLContext | None:
        """What certificates are checked against; None where the address is not HTTPS."""
        if urlsplit(self.url).scheme != "https":
            return None
        try:
            return _context(self.ca_file)
        except (OSError, ssl.SSLError) as error:
            allowed = f"a readable file of certificates in PEM form ({error})"
            raise SettingError(f"{self.setting}ca_file", str(self.ca_file), allowed) from error


@functools.lru_cache(maxsize=8)
def _context(ca_file: Path | None) -> ssl.SSLContext:
    """Trust in the system's authorities, or in those of a file. Reading them takes a while, so it is kept."""
    return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: object) -> None:
        """No other address is ever given the secret."""


def require_url(url: str, setting: str) -> None:
    """Refuse what is no plain HTTP address.

    Raises:
        SettingError: it is none, or holds a user.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError as error:
        raise SettingError(setting, origin(url), ALLOWED_URL) from error
    if not usable or parts.username or not url.isascii() or any(character.isspace() for character in url):
        raise SettingError(setting, origin(url), ALLOWED_URL)


def origin(url: str) -> str:
    """The address without what may be a secret: user, path and query."""
    start, slashes, rest = url.partition("//")
    host, slash, _ = rest.partition("/")
    named = host.rpartition("@")[2].partition("?")[0]
    return f"{start.partition('?')[0]}{slashes}{named}{'/…' if slash else ''}"


def line_of(path: Path, setting: str) -> str:
    """The one line that a file holds.

    Raises:
        SettingError: it cannot be read, or holds no single line.
    """
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise SettingError(setting, str(path), f"a readable file ({reason})") from error
    if not text or not text.isascii() or not text.isprintable():
        raise SettingError(setting, str(path), "a file of one line of ASCII text")
    return text


def _seconds(text: str | None) -> float | None:
    """``Retry-After`` in seconds; a date is not read."""
    return float(text) if text is not None and text.isdigit() else None


def _reason(error: Exception) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, ssl.SSLError):
        return f"TLS: {reason.reason}"
    return reason.strerror if isinstance(reason, OSError) and reason.strerror else type(reason).__name__
