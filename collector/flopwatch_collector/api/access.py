"""Who may do what: bearer tokens for programs, sessions for people, a proxy's word where it is trusted."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Literal
from urllib.parse import quote

from fastapi import Request
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from flopwatch import viewer
from flopwatch_collector.api.errors import Refused, response
from flopwatch_collector.api.limits import RateLimit
from flopwatch_collector.api.people import Person, groups_of, person_of
from flopwatch_collector.api.sessions import Sessions, is_guard
from flopwatch_collector.api.tokens import RIGHTS, Right, Role, Token, Tokens
from flopwatch_collector.config_sign_in import SignInSettings

COOKIE = "flopwatch_session"
GUARD_COOKIE = "flopwatch_guard"
GUARD_HEADER = "x-flopwatch-guard"
"""Every change that a browser's cookie vouches for carries the session's guard in it."""
FAILURES_PER_SECOND = 5.0
SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Who asks: an address, and who that is, when anybody has to say so."""

    address: str
    token: Token | None
    name: str | None = None
    role: Role | None = None
    """None where everybody may do everything."""
    teams: tuple[str, ...] = ()
    """Whose jobs may be seen; none: everybody's."""
    way: Literal["open", "token", "session", "proxy"] = "open"

    def may(self, right: Right) -> bool:
        """Whether the role gives the right."""
        return self.role is None or right in RIGHTS[self.role]

    @property
    def viewer(self) -> viewer.Viewer:
        """The same for the pages."""
        if self.role is None:
            return viewer.EVERYBODY
        return viewer.Viewer(
            name=self.name,
            role="viewer" if self.role == "agent" else self.role,
            teams=self.teams,
            can_leave=self.way == "session",
        )


class Access:
    """Decides on requests.

    While there is no valid token and no other way to sign in everything is open: the start refuses to bind such a
    collector beyond loopback.
    """

    def __init__(
        self, tokens: Tokens, sessions: Sessions | None = None, settings: SignInSettings | None = None
    ) -> None:
        self.tokens = tokens
        self.sessions = sessions
        self.settings = settings or SignInSettings()
        self._failures = RateLimit(FAILURES_PER_SECOND)

    async def is_open(self) -> bool:
        """Whether nobody has to sign in."""
        if self.tokens.is_stale():
            await asyncio.to_thread(self.tokens.refresh)
        return not self.settings.signs_in and not self.tokens.any_valid()

    async def caller(self, headers: Headers, address: str, right: Right, *, changes: bool = False) -> Caller:
        """The caller of a request that needs a right; ``changes`` where it changes something.

        Raises:
            Refused: 401 without a known token or session, 403 when the role does not give the right or a change does
                not carry its guard, 429 after many tries.
        """
        if await self.is_open():
            return Caller(address=address, token=None)
        found = self._by_token(headers, address) or self._by_proxy(headers, address)
        if found is None:
            found = await self._by_session(headers, address)
        if found is None:
            raise _unknown()
        if not found.may(right):
            raise Refused(
                403, "forbidden", f"a token of role {found.role} does not give the right to {right}"
            )
        if changes:
            _require_guard(found, headers)
        return found

    def _by_token(self, headers: Headers, address: str) -> Caller | None:
        secret = secret_of(headers)
        if secret is None:
            return None
        self.check_failures(address)
        token = self.tokens.find(secret)
        if token is None:
            self._failures.wait_seconds(address, time.monotonic())
            raise _unknown(secret)
        return Caller(
            address=address, token=token, name=token.name, role=token.role, teams=token.teams, way="token"
        )

    def _by_proxy(self, headers: Headers, address: str) -> Caller | None:
        """Whom a trusted proxy names."""
        person = self.proxied(headers, address)
        if person is None:
            return None
        return Caller(
            address=address, token=None, name=person.name, role=person.role, teams=person.teams, way="proxy"
        )

    def proxied(self, headers: Headers, address: str) -> Person | None:
        """The person in the headers of a trusted proxy.

        Raises:
            Refused: 403, the proxy names somebody who may not come in.
        """
        name = self.settings.proxy_user_header
        told = headers.get(name, "") if name is not None and self.settings.trusts(address) else ""
        if not told.strip():
            return None
        groups = groups_of(headers.get(self.settings.proxy_groups_header or "", ""))
        person = person_of(told, groups, self.settings)
        if person is None:
            raise Refused(403, "forbidden", "you are signed in, but in no group that may look at flopwatch")
        return person

    async def _by_session(self, headers: Headers, address: str) -> Caller | None:
        secret = cookie_of(headers, COOKIE)
        sessions = self.sessions
        if secret is None or sessions is None:
            return None
        if sessions.is_stale(secret):
            await asyncio.to_thread(sessions.refresh)
        found = sessions.find(secret)
        if found is None or (found.token_id is not None and not self.tokens.is_valid(found.token_id)):
            return None
        if sessions.needs_noting(found):
            await asyncio.to_thread(sessions.note, found)
        return Caller(
            address=address, token=None, name=found.name, role=found.role, teams=found.teams, way="session"
        )

    def check_failures(self, address: str) -> None:
        """Refuse an address that tried many tokens that are not known.

        Raises:
            Refused: 429.
        """
        wait = self._failures.wait_seconds(address, time.monotonic(), take=False)
        if wait > 0.0:
            raise Refused(
                429,
                "too_many_requests",
                "too many requests with unknown tokens from this address",
                headers={"Retry-After": retry_after(wait)},
            )

    def client(self, headers: Headers, scope: Scope) -> str:
        """Who is at the other end: beyond a trusted proxy, the address that it names last."""
        peer = address_of(scope)
        if not self.settings.trusts(peer):
            return peer
        told = [part.strip() for part in headers.get("x-forwarded-for", "").split(",") if part.strip()]
        return next((one for one in reversed(told) if not self.settings.trusts(one)), peer)


def _require_guard(caller: Caller, headers: Headers) -> None:
    """A change that a cookie or a proxy vouches for is made by our own page, and no other.

    Raises:
        Refused: 403.
    """
    if caller.way not in ("session", "proxy"):
        return
    sent = headers.get(GUARD_HEADER, "")
    secret = cookie_of(headers, COOKIE) or ""
    if not sent or (caller.way == "session" and not is_guard(secret, sent)):
        raise Refused(
            403,
            "forbidden",
            f"a change from a browser needs the header {GUARD_HEADER} with its session's guard",
        )


def _unknown(secret: str | None = None) -> Refused:
    message = (
        "a token is needed: Authorization: Bearer fw_…, or sign in"
        if secret is None
        else "the token is not known or was revoked"
    )
    return Refused(401, "unauthorized", message, headers={"WWW-Authenticate": "Bearer"})


def secret_of(headers: Headers) -> str | None:
    """The secret in the Authorization header."""
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and credentials.strip():
        return credentials.strip()
    return None


def cookie_of(headers: Headers, name: str) -> str | None:
    """The value of a cookie; None where it is not there, empty, or no cookie can be read."""
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return cookie.value if cookie is not None and cookie.value else None


def retry_after(seconds: float) -> str:
    """A Retry-After header's value: whole seconds, at least one."""
    return str(max(1, round(seconds + 0.499)))


def needs(access: Access, right: Right, *, of_teams: bool = False) -> Callable[[Request], Awaitable[Caller]]:
    """A route's dependency: the caller, who has the right.

    A caller who may see the jobs of some teams only is let in where the route says that it answers ``of_teams``.
    """

    async def caller(request: Request) -> Caller:
        changes = request.method not in SAFE_METHODS
        found = await access.caller(request.headers, address_of(request.scope), right, changes=changes)
        if found.teams and (changes or not of_teams):
            raise Refused(
                403,
                "forbidden",
                f"{found.name} sees the jobs of {', '.join(found.teams)} only, and this is of all",
            )
        request.state.caller = found
        viewer.enter(found.viewer)
        return found

    return caller


def address_of(scope: Scope) -> str:
    """The caller's network address."""
    client = scope.get("client")
    return client[0] if client else "local"


class UiGate:
    """In front of the pages: people who have not signed in are led to where they can."""

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
        if not guarded:
            await self._app(scope, receive, send)
            return
        try:
            caller = await self._access.caller(Headers(scope=scope), address_of(scope), "read")
        except Refused as refused:
            await self._turn_away(refused, scope, receive, send)
            return
        with viewer.entered(caller.viewer):
            await self._app(scope, receive, send)

    async def _turn_away(self, refused: Refused, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        page = "text/html" in Headers(scope=scope).get("accept", "")
        if scope["method"] == "GET" and page and refused.status in (401, 403):
            asked = scope.get("query_string", b"").decode("latin-1")
            target = quote(scope["path"] + (f"?{asked}" if asked else ""))
            to = RedirectResponse(f"{self._login}?next={target}", status_code=303)
            await to(scope, receive, send)
            return
        await response(refused)(scope, receive, send)
