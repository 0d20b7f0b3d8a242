"""Who may do what: bearer tokens for programs, a cookie with one for people."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote

from fastapi import Request
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from flopwatch_collector.api.errors import Refused, response
from flopwatch_collector.api.limits import RateLimit
from flopwatch_collector.api.tokens import Right, Token, Tokens

COOKIE = "flopwatch_token"
FAILURES_PER_SECOND = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Who asks: an address, and the token, when one was needed."""

    address: str
    token: Token | None


class Access:
    """Decides on requests.

    Without any valid token everything is open: the start refuses to bind such a collector beyond loopback.
    """

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._failures = RateLimit(FAILURES_PER_SECOND)

    async def caller(self, headers: Headers, address: str, right: Right) -> Caller:
        """The caller of a request that needs a right.

        Raises:
            Refused: 401 without a known token, 403 when its role does not give the right, 429 after many tries.
        """
        if self._tokens.is_stale():
            await asyncio.to_thread(self._tokens.refresh)
        if not self._tokens.any_valid():
            return Caller(address=address, token=None)
        self._check_failures(address)
        secret = secret_of(headers)
        token = None if secret is None else self._tokens.find(secret)
        if token is None:
            if secret is not None:
                self._failures.wait_seconds(address, time.monotonic())
            raise _unknown(secret)
        if not token.may(right):
            raise Refused(
                403, "forbidden", f"a token of role {token.role} does not give the right to {right}"
            )
        return Caller(address=address, token=token)

    def _check_failures(self, address: str) -> None:
        wait = self._failures.wait_seconds(address, time.monotonic(), take=False)
        if wait > 0.0:
            raise Refused(
                429,
                "too_many_requests",
                "too many requests with unknown tokens from this address",
                headers={"Retry-After": retry_after(wait)},
            )


def _unknown(secret: str | None) -> Refused:
    message = (
        "a token is needed: Authorization: Bearer fw_…"
        if secret is None
        else "the token is not known or was revoked"
    )
    return Refused(401, "unauthorized", message, headers={"WWW-Authenticate": "Bearer"})


def secret_of(headers: Headers) -> str | None:
    """The secret in the Authorization header or in the cookie."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and credentials.strip():
        return credentials.strip()
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return cookie.value if cookie is not None and cookie.value else None


def retry_after(seconds: float) -> str:
    """A Retry-After header's value: whole seconds, at least one."""
    return str(max(1, round(seconds + 0.499)))


def needs(access: Access, right: Right) -> Callable[[Request], Awaitable[Caller]]:
    """A route's dependency: the caller, who has the right."""

    async def caller(request: Request) -> Caller:
        return await access.caller(request.headers, address_of(request.scope), right)

    return caller


def address_of(scope: Scope) -> str:
    """The caller's network address."""
    client = scope.get("client")
    return client[0] if client else "local"


class UiGate:
    """In front of the pages: people without a token are led to the login form."""

    def __init__(self, app: ASGIApp, access: Access, prefix: str, login: str) -> None:
        self._app = app
        self._access = access
        self._prefix = prefix
        self._login = login

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what may pass."""
        guarded = scope["type"] in ("http", "websocket") and scope["path"].startswith(
            self._prefix.rstrip("/")
        )
        if guarded:
            try:
                await self._access.caller(Headers(scope=scope), address_of(scope), "read")
            except Refused as refused:
                await self._turn_away(refused, scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _turn_away(self, refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        page = "text/html" in Headers(scope=scope).get("accept", "")
        if scope["method"] == "GET" and page and refused.status in (401, 403):
            to = RedirectResponse(f"{self._login}?next={quote(scope['path'])}", status_code=303)
            await to(scope, receive, send)
            return
        await response(refused)(scope, receive, send)
