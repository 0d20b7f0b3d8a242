"""``/login`` and ``/logout``: people give a token once, or come from their identity provider; a session follows."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from flopwatch_collector.api import login_page
from flopwatch_collector.api.access import COOKIE, GUARD_COOKIE, Access, cookie_of, retry_after
from flopwatch_collector.api.audit import Audit
from flopwatch_collector.api.errors import Refused
from flopwatch_collector.api.limits import RateLimit
from flopwatch_collector.api.login_page import Asked, asked_of, local_path
from flopwatch_collector.api.oidc import Denied, Provider
from flopwatch_collector.api.people import Person
from flopwatch_collector.api.sessions import Sessions, guard_of

log = logging.getLogger(__name__)
MAX_FORM_BYTES = 16_384
TRIES_PER_SECOND = 0.2
MOST_TRIES = 10
PENDING_COOKIE = "flopwatch_sign_in"
PENDING_SECONDS = 600
ID_COOKIE = "flopwatch_id"
"""The provider's word on who has signed in, for signing out there as well; sent to ``/logout`` only."""
NO_PROOF = "none"
LONGEST_ID_TOKEN = 3_500
"""What a browser's cookie holds with its name; a longer one is not shown to the provider again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoginParts:
    """What the routes work with."""

    access: Access
    sessions: Sessions
    audit: Audit
    home: str
    secure: bool
    """Cookies travel over TLS only."""
    simulated: Callable[[], bool] = lambda: False
    provider: Provider | None = None
    address: str | None = None
    """Where people reach this server, for the way back from the provider; None: as the request says."""


def router(parts: LoginParts) -> APIRouter:
    """The page, what takes its form, the way over the provider, and the way out."""
    api = APIRouter(include_in_schema=False)
    tries = RateLimit(TRIES_PER_SECOND, burst=MOST_TRIES)

    @api.get("/login")
    async def form(request: Request) -> Response:
        asked = _asked(parts, request, dict(request.query_params))
        note = login_page.TEXTS[asked.language]["ended"] if request.query_params.get("ended") else ""
        return _page(asked, note=note)

    @api.post("/login")
    async def sign_in(request: Request) -> Response:
        read = parse_qs((await _form_bytes(request.stream())).decode("utf-8", "replace"))
        fields = {name: values[0] for name, values in read.items()}
        asked = _asked(parts, request, fields)
        client = parts.access.client(request.headers, request.scope)
        try:
            person, token_id = await _person(parts.access, tries, fields.get("token", "").strip(), client)
        except Refused as refused:
            await parts.audit.note(client, client, "sign-in refused", refused.problem.error)
            return _page(asked, refused)
        return await _entered(parts, person, token_id, (client, asked.to))

    _add_way_out(api, parts)
    if parts.provider is not None:
        _add_provider(api, parts, parts.provider)
    return api


def _add_way_out(api: APIRouter, parts: LoginParts) -> None:
    @api.post("/logout")
    async def sign_out(request: Request) -> Response:
        secret = cookie_of(request.headers, COOKIE)
        if secret is not None:
            ended = await asyncio.to_thread(parts.sessions.end, secret)
            if ended is not None:
                client = parts.access.client(request.headers, request.scope)
                await parts.audit.note(ended.name, client, "signed out", "")
        answer = await _left(parts, request)
        for name in (COOKIE, GUARD_COOKIE):
            answer.delete_cookie(name, secure=parts.secure)
        answer.delete_cookie(ID_COOKIE, path="/logout", secure=parts.secure)
        return answer


async def _left(parts: LoginParts, request: Request) -> Response:
    """To the form; who came from a provider goes there first, so that the session there ends as well.

    That is no redirection: browsers do not let a page's form lead to another host.
    """
    proof = cookie_of(request.headers, ID_COOKIE)
    home = RedirectResponse("/login?ended=1", status_code=303)
    if parts.provider is None or proof is None:
        return home
    try:
        address = await asyncio.to_thread(
            parts.provider.leave, "" if proof == NO_PROOF else proof, f"{_base(parts, request)}/login?ended=1"
        )
    except Denied as denied:
        log.warning("signed out here, not at the provider: %s", denied)
        return home
    if address is None:
        return home
    asked = _asked(parts, request, {})
    answer = _page(asked, note=login_page.TEXTS[asked.language]["ended"])
    answer.headers["refresh"] = f"0; url={address}"
    return answer


async def _person(access: Access, tries: RateLimit, secret: str, client: str) -> tuple[Person, str]:
    """The holder of a token, and its id.

    Raises:
        Refused: 401 for one that is not known, 403 for an agent's, 429 after many tries.
    """
    if not secret:
        raise Refused(401, "missing", "no token was entered")
    wait = tries.wait_seconds(client, time.monotonic())
    if wait > 0.0:
        raise Refused(429, "too_many_requests", "too many tries", headers={"Retry-After": retry_after(wait)})
    await asyncio.to_thread(access.tokens.refresh)
    token = access.tokens.find(secret)
    if token is None:
        raise Refused(401, "unauthorized", "the token is not known or was revoked")
    if not token.may("read"):
        raise Refused(403, "forbidden", f"a token of role {token.role} does not give the right to read")
    return Person(name=token.name, role=token.role, teams=token.teams), token.token_id


def _add_provider(api: APIRouter, parts: LoginParts, provider: Provider) -> None:
    """To the identity provider, and back."""

    @api.get("/login/oidc")
    async def leave(request: Request) -> Response:
        to = local_path(request.query_params.get("next", parts.home), parts.home)
        try:
            address, pending = await asyncio.to_thread(provider.begin, _back(parts, request), to)
        except Denied as denied:
            return _denied(parts, request, denied)
        answer = RedirectResponse(address, status_code=303)
        answer.set_cookie(
            PENDING_COOKIE, pending, max_age=PENDING_SECONDS, path="/login", httponly=True, samesite="lax",
            secure=parts.secure,
        )  # fmt: skip
        return answer

    @api.get("/login/oidc/callback")
    async def back(request: Request) -> Response:
        pending = cookie_of(request.headers, PENDING_COOKIE) or ""
        came = dict(request.query_params)
        client = parts.access.client(request.headers, request.scope)
        try:
            arrived = await asyncio.to_thread(provider.finish, _back(parts, request), pending, came)
        except Denied as denied:
            await parts.audit.note(client, client, "sign-in refused", str(denied))
            return _denied(parts, request, denied)
        to = local_path(arrived.to, parts.home)
        answer = await _entered(parts, arrived.person, None, (client, to))
        answer.set_cookie(
            ID_COOKIE, arrived.id_token if len(arrived.id_token) <= LONGEST_ID_TOKEN else NO_PROOF, path="/logout",
            max_age=round(parts.sessions.lasts_seconds), httponly=True, samesite="strict", secure=parts.secure,
        )  # fmt: skip
        answer.delete_cookie(PENDING_COOKIE, path="/login", secure=parts.secure)
        return answer


async def _entered(
    parts: LoginParts, person: Person, token_id: str | None, came: tuple[str, str]
) -> RedirectResponse:
    """A session begun: its cookies, and on to where the person wanted to go."""
    client, to = came
    secret = await asyncio.to_thread(parts.sessions.begin, person, token_id)
    await parts.audit.note(person.name, client, "signed in", person.role)
    answer = RedirectResponse(to, status_code=303)
    age = round(parts.sessions.lasts_seconds)
    answer.set_cookie(GUARD_COOKIE, guard_of(secret), max_age=age, samesite="strict", secure=parts.secure)
    answer.set_cookie(COOKIE, secret, max_age=age, httponly=True, samesite="lax", secure=parts.secure)
    answer.headers["cache-control"] = "no-store"
    return answer


def _asked(parts: LoginParts, request: Request, fields: dict[str, str]) -> Asked:
    accepts = request.headers.get("accept-language", "")
    asked = asked_of(fields, accepts, to=fields.get("next", parts.home), home=parts.home)
    name = None if parts.provider is None else parts.provider.name
    return replace(asked, simulated=parts.simulated(), provider=name)


def _back(parts: LoginParts, request: Request) -> str:
    """The address that the provider leads back to."""
    return f"{_base(parts, request)}/login/oidc/callback"


def _base(parts: LoginParts, request: Request) -> str:
    """Where people reach this server."""
    return (parts.address or f"{request.url.scheme}://{request.headers.get('host', '')}").rstrip("/")


def _denied(parts: LoginParts, request: Request, denied: Denied) -> Response:
    asked = _asked(parts, request, {})
    words = login_page.TEXTS[asked.language]
    text = words["problem.groups"] if denied.in_no_group else words["problem.provider"].format(why=denied)
    return _answer(login_page.page(asked, text), 403)


def _page(asked: Asked, refused: Refused | None = None, note: str = "") -> Response:
    if refused is None:
        return _answer(login_page.page(asked, note=note), 200)
    words = login_page.TEXTS[asked.language]
    seconds = refused.headers.get("Retry-After", "")
    problem = words[f"problem.{refused.problem.error}"].format(seconds=seconds)
    answer = _answer(login_page.page(asked, problem), refused.status)
    if seconds:
        answer.headers["retry-after"] = seconds
    return answer


def _answer(text: str, status: int) -> Response:
    headers = {
        "Content-Security-Policy": login_page.POLICY,
        "Cache-Control": "no-store",
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
    }
    return HTMLResponse(text, status_code=status, headers=headers)


async def _form_bytes(stream: AsyncIterator[bytes]) -> bytes:
    body = b""
    async for part in stream:
        body += part
        if len(body) > MAX_FORM_BYTES:
            raise Refused(413, "too_large", f"the form is larger than {MAX_FORM_BYTES} bytes")
    return body
