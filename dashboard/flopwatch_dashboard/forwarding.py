"""Requests handed on to the collector as they came: its sign-in, and the part of its API that people use."""

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from typing import IO

from starlette.datastructures import Headers

from flopwatch_dashboard import reader
from flopwatch_dashboard.client import CollectorUnavailable

SIGN_IN = ("/login", "/login/oidc", "/login/oidc/callback", "/logout")
API = tuple(
    f"/api/v1/{part}"
    for part in (
        "whoami", "query", "alerts", "costs", "audit", "export", "report", "reports", "jobs", "nodes", "budgets",
        "goodput",
    )
)  # fmt: skip
ASKED = (
    "accept", "accept-language", "content-type", "origin", "sec-fetch-site", "x-flopwatch-guard",
)  # fmt: skip
"""Headers that are handed on beside the credentials. Those in which a proxy names people never are."""
ANSWERED = (
    "content-type", "content-disposition", "content-security-policy", "cache-control", "location", "referrer-policy",
    "refresh", "retry-after", "set-cookie", "www-authenticate", "x-content-type-options",
)  # fmt: skip
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
LARGEST_BODY_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the collector said."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def is_handed_on(path: str) -> bool:
    """Whether the collector answers this path."""
    return path in SIGN_IN or any(path == part or path.startswith(part + "/") for part in API)


def headers_of(came: Headers, peer: str) -> dict[str, str]:
    """The headers for the collector: who asks, from where, and for which host."""
    kept = {name: came[name] for name in ASKED if name in came}
    before = came.get("x-forwarded-for")
    return {
        **kept,
        **reader.credentials(came),
        "host": came.get("host", ""),
        "x-forwarded-for": f"{before}, {peer}" if before else peer,
    }


class Collector:
    """Hands requests on. Safe for threads; its method waits for the network.

    Where browsers come ``over_tls``, the cookies that it hands back are Secure, whatever the collector speaks.
    """

    def __init__(self, url: str, timeout_seconds: float, *, over_tls: bool = False) -> None:
        self._url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._over_tls = over_tls
        self._opener = urllib.request.build_opener(_Stay())

    @property
    def url(self) -> str:
        """Where it is."""
        return self._url

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        """Its answer, refusals and redirections included.

        Raises:
            CollectorUnavailable: there is none.
        """
        address = self._url + path
        request = urllib.request.Request(address, data=body or None, headers=dict(headers), method=method)  # noqa: S310  the scheme is checked in the settings
        try:
            with self._opener.open(request, timeout=self._timeout_seconds) as answer:
                return self._answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return self._answer(error.code, error.headers, error.read())
        except (OSError, http.client.HTTPException) as error:
            raise CollectorUnavailable(f"{address}: {error}") from error

    def _answer(self, status: int, headers: Message, body: bytes) -> Answer:
        kept = ((name.lower(), value) for name, value in headers.items() if name.lower() in ANSWERED)
        back = tuple((name, _secure(value) if self._guards(name) else value) for name, value in kept)
        return Answer(status=status, headers=back, body=body)

    def _guards(self, name: str) -> bool:
        return self._over_tls and name == "set-cookie"


def _secure(cookie: str) -> str:
    """The cookie, for HTTPS only."""
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    return cookie if "secure" in attributes else f"{cookie}; Secure"


class _Stay(urllib.request.HTTPRedirectHandler):
    """Redirections are the browser's to follow."""

    def redirect_request(
        self,
        _req: urllib.request.Request,
        _fp: IO[bytes],
        _code: int,
        _msg: str,
        _headers: Message,
        _newurl: str,
    ) -> None:
        """None: the answer is given as it is."""
