"""Signing in to a dashboard of its own process: with the collector's users, tokens and sessions, by asking it."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from flopwatch import viewer
from flopwatch_dashboard import reader
from flopwatch_dashboard.client import CollectorUnavailable
from flopwatch_dashboard.forwarding import (
    LARGEST_BODY_BYTES,
    METHODS,
    SIGN_IN,
    Answer,
    Collector,
    headers_of,
    is_handed_on,
)
from flopwatch_dashboard.memo import Memo

KNOWN_SECONDS = 2.0
"""What the collector said of a reader holds for so long."""
MOST_READERS = 2_000
OPEN_PATHS = ("/healthz",)
NOBODY_SIGNS_IN = (
    "The collector at {url} asks nobody to sign in, and this dashboard can be reached from other machines. Make a "
    "token at the collector (flopwatch token create --role viewer --name NAME), or start the dashboard with "
    "--insecure to show it to everybody.\n"
)


class _Told(msgspec.Struct):
    """The collector's answer to ``whoami``."""

    name: str | None
    role: str | None
    teams: tuple[str, ...]
    way: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """A reader as the collector knows them, or its refusal."""

    until: float
    viewer: viewer.Viewer | None
    refusal: Answer | None = None


class Readers:
    """Who readers are, by their credentials. Safe for threads; ``find`` waits for the collector."""

    def __init__(self, collector: Collector, clock: Callable[[], float] = time.monotonic) -> None:
        self._collector = collector
        self._clock = clock
        self._known: Memo[Known] = Memo(MOST_READERS)

    def find(self, headers: Mapping[str, str]) -> Known:
        """The reader with these headers of a request to the collector.

        Raises:
            CollectorUnavailable: the collector does not answer, or not with what was asked.
        """
        key = _key(headers)
        found = self._known.peek(key)
        if found is None or self._clock() >= found.until:
            answer = self._collector.send("GET", "/api/v1/whoami", headers)
            found = self._as_known(answer)
            self._known.put(key, found)
        return found

    def forget(self, headers: Mapping[str, str]) -> None:
        """Ask anew who this is the next time."""
        self._known.put(_key(headers), Known(until=0.0, viewer=None))

    def _as_known(self, answer: Answer) -> Known:
        until = self._clock() + KNOWN_SECONDS
        if answer.status in (401, 403, 429):
            return Known(until=until, viewer=None, refusal=answer)
        try:
            told = msgspec.json.decode(answer.body, type=_Told) if answer.status == 200 else None
        except msgspec.DecodeError:
            told = None
        if told is None:
            raise CollectorUnavailable(f"{self._collector.url} does not say who asks: HTTP {answer.status}")
        if told.way == "open":
            words = NOBODY_SIGNS_IN.format(url=self._collector.url)
            plain = (("content-type", "text/plain; charset=utf-8"),)
            return Known(
                until=until, viewer=None, refusal=Answer(status=503, headers=plain, body=words.encode())
            )
        return Known(until=until, viewer=_viewer(told))


def _key(headers: Mapping[str, str]) -> bytes:
    return hashlib.sha256(repr(sorted(reader.credentials(headers).items())).encode()).digest()


def _viewer(told: _Told) -> viewer.Viewer:
    role: Any = told.role if told.role in ("operator", "admin") else "viewer"
    return viewer.Viewer(name=told.name, role=role, teams=told.teams, can_leave=told.way == "session")


class SignIn:
    """In front of a dashboard: hands the sign-in and the API on, and lets those in whom the collector knows."""

    def __init__(self, app: ASGIApp, collector: Collector) -> None:
        self._app = app
        self._collector = collector
        self._readers = Readers(collector)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._http(Request(scope, receive), send)

    async def _http(self, request: Request, send: Send) -> None:
        peer = request.client.host if request.client else "local"
        headers = headers_of(request.headers, peer)
        try:
            known = await asyncio.to_thread(self._readers.find, headers)
            if known.refusal is not None and known.refusal.status == 503:
                answer: Response | None = _response(known.refusal)
            elif is_handed_on(request.url.path):
                answer = await self._handed_on(request, headers)
            else:
                answer = None if known.refusal is None else _turned_away(request, known.refusal)
        except CollectorUnavailable as error:
            answer = PlainTextResponse(f"the collector does not answer: {error}\n", status_code=503)
        if answer is not None:
            await answer(request.scope, request.receive, send)
            return
        with viewer.entered(known.viewer or viewer.EVERYBODY), reader.entered(reader.credentials(headers)):
            await self._app(request.scope, request.receive, send)

    async def _handed_on(self, request: Request, headers: Mapping[str, str]) -> Response:
        if request.method not in METHODS:
            return PlainTextResponse(f"{request.method} is none of {', '.join(METHODS)}\n", status_code=405)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_BODY_BYTES:
                return PlainTextResponse(
                    f"the body is larger than {LARGEST_BODY_BYTES} bytes\n", status_code=413
                )
        path = request.scope.get("raw_path", request.url.path.encode()).decode("ascii", "replace")
        asked = request.url.query
        whole = path.partition("?")[0] + (f"?{asked}" if asked else "")
        answer = await asyncio.to_thread(self._collector.send, request.method, whole, headers, body)
        if request.method != "GET" and request.url.path in SIGN_IN:
            self._readers.forget(headers)
        return _response(answer)


def _response(answer: Answer) -> Response:
    made = Response(answer.body, status_code=answer.status)
    for name, value in answer.headers:
        made.headers.append(name, value)
    return made


def _turned_away(request: Request, refusal: Answer) -> Response:
    """People are led to where they sign in; programs are told."""
    page = request.method == "GET" and "text/html" in Headers(scope=request.scope).get("accept", "")
    if not page or refusal.status not in (401, 403):
        return _response(refusal)
    asked = request.url.query
    target = quote(request.url.path + (f"?{asked}" if asked else ""))
    return RedirectResponse(f"/login?next={target}", status_code=303)
