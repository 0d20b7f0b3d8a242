"""Scripts and style sheets as browsers want them: compressed once, and not sent again while they are the same.

Dash reads each file anew and sends it as it is. Here the first answer of a path is kept, with its compressed form
and an entity tag; later requests cost no more than a look into a table.
"""

import asyncio
import gzip
import hashlib
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

STATIC = ("_dash-component-suites/", "assets/")
"""Below the prefix of the pages: what belongs to the installed version and does not change while it runs."""
LARGEST_KEPT_BYTES = 8 * 1024 * 1024
MOST_KEPT_BYTES = 32 * 1024 * 1024
SMALLEST_COMPRESSED_BYTES = 1024
_COMPRESSED = ("text/", "application/javascript", "application/json", "image/svg")


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """One static answer."""

    body: bytes
    compressed: bytes | None
    """``None`` where compression gains nothing."""
    content_type: str
    cache_control: str
    tag: str


class StaticFiles:
    """Keeps the static answers of the application below ``prefix``; all else passes through."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app = app
        self._roots = tuple(prefix + root for root in STATIC)
        self._kept: dict[str, Kept] = {}
        self._kept_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if (
            scope["type"] != "http"
            or scope["method"] not in ("GET", "HEAD")
            or not scope["path"].startswith(self._roots)
        ):
            await self._app(scope, receive, send)
            return
        key = f"{scope['path']}?{scope.get('query_string', b'').decode('latin-1')}"
        kept = self._kept.get(key)
        if kept is None:
            answer = await _collect(self._app, {**scope, "method": "GET"}, receive)
            if answer.status != 200 or len(answer.body) > LARGEST_KEPT_BYTES:
                await _pass_on(answer, send)
                return
            kept = await asyncio.to_thread(_keep, answer)
            size = len(kept.body) + len(kept.compressed or b"")
            if key not in self._kept and self._kept_bytes + size <= MOST_KEPT_BYTES:
                self._kept[key] = kept
                self._kept_bytes += size
        await _answer(kept, Headers(scope=scope), send, with_body=scope["method"] == "GET")


@dataclass(kw_only=True, slots=True)
class _Answer:
    status: int = 500
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""


async def _collect(app: ASGIApp, scope: MutableMapping[str, Any], receive: Receive) -> _Answer:
    """The application's answer to a request without conditions, whole."""
    unconditional = {b"if-none-match", b"if-modified-since", b"range", b"accept-encoding"}
    scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] not in unconditional]}
    answer = _Answer(headers=[])
    parts: list[bytes] = []

    async def gather(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer.status, answer.headers = message["status"], list(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            parts.append(message.get("body", b""))

    await app(scope, receive, gather)
    answer.body = b"".join(parts)
    return answer


def _keep(answer: _Answer) -> Kept:
    headers = Headers(raw=answer.headers)
    content_type = headers.get("content-type", "application/octet-stream")
    compressed = None
    if len(answer.body) >= SMALLEST_COMPRESSED_BYTES and content_type.startswith(_COMPRESSED):
        smaller = gzip.compress(answer.body, compresslevel=9, mtime=0)
        compressed = smaller if len(smaller) < len(answer.body) else None
    return Kept(
        body=answer.body,
        compressed=compressed,
        content_type=content_type,
        cache_control=headers.get("cache-control", "no-cache"),
        tag=f'"{hashlib.sha256(answer.body).hexdigest()[:32]}"',
    )


async def _pass_on(answer: _Answer, send: Send) -> None:
    await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _answer(kept: Kept, asked: Headers, send: Send, *, with_body: bool) -> None:
    small = kept.compressed if kept.compressed is not None and _takes_gzip(asked) else None
    body = kept.body if small is None else small
    headers = [
        (b"content-type", kept.content_type.encode("latin-1")),
        (b"cache-control", kept.cache_control.encode("latin-1")),
        (b"etag", kept.tag.encode("latin-1")),
        (b"vary", b"accept-encoding"),
    ]
    if kept.tag in [tag.strip().removeprefix("W/") for tag in asked.get("if-none-match", "").split(",")]:
        await send({"type": "http.response.start", "status": 304, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return
    headers.append((b"content-length", str(len(body)).encode()))
    if small is not None:
        headers.append((b"content-encoding", b"gzip"))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body if with_body else b""})


def _takes_gzip(asked: Headers) -> bool:
    """Whether the client takes gzip, ``q=0`` excepted."""
    for part in asked.get("accept-encoding", "").split(","):
        name, _, quality = part.partition(";")
        if name.strip().lower() in ("gzip", "*"):
            return quality.replace(" ", "").lower() not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
