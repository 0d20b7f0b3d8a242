"""``/login``: people give their token once; a cookie carries it from then on."""

import html
from collections.abc import AsyncIterator
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.datastructures import Headers

from flopwatch_collector.api.access import COOKIE, Access, address_of
from flopwatch_collector.api.errors import Refused

MAX_FORM_BYTES = 4_096
COOKIE_SECONDS = 30 * 86_400
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
    "Cache-Control": "no-store",
}
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>flopwatch: sign in</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 16px system-ui, sans-serif; margin: 15vh auto; max-width: 24rem; padding: 0 1rem; color: #1d2733 }}
input, button {{ font: inherit; width: 100%; box-sizing: border-box; padding: .5rem; margin: .5rem 0 }}
button {{ background: #0b6fb8; color: #fff; border: 0; border-radius: 4px }}
p.problem {{ color: #b42318 }}
</style></head><body><main><h1>flopwatch</h1>
<form method="post" action="{action}"><label for="token">Access token (role viewer, operator or admin)</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<input type="hidden" name="next" value="{to}"><button>Sign in</button></form>
<p class="problem" role="alert">{problem}</p>
<p>An administrator makes one with <code>flopwatch token create --role viewer</code>.</p></main></body></html>
"""


def router(access: Access, *, home: str, secure: bool) -> APIRouter:
    """The form, and what takes it; ``secure`` cookies travel over TLS only."""
    api = APIRouter(include_in_schema=False)

    @api.get("/login")
    async def form(request: Request) -> HTMLResponse:
        return _page(_target(request.query_params.get("next", home), home), "", 200)

    @api.post("/login", response_model=None)
    async def sign_in(request: Request) -> HTMLResponse | RedirectResponse:
        fields = parse_qs((await _form_bytes(request.stream())).decode("utf-8", "replace"))
        secret = fields.get("token", [""])[0].strip()
        to = _target(fields.get("next", [home])[0], home)
        try:
            headers = Headers({"authorization": f"Bearer {secret}"})
            await access.caller(headers, address_of(request.scope), "read")
        except Refused as refused:
            return _page(to, str(refused), refused.status)
        answer = RedirectResponse(to, status_code=303)
        answer.set_cookie(
            COOKIE, secret, max_age=COOKIE_SECONDS, httponly=True, samesite="strict", secure=secure
        )
        return answer

    return api


async def _form_bytes(stream: AsyncIterator[bytes]) -> bytes:
    body = b""
    async for part in stream:
        body += part
        if len(body) > MAX_FORM_BYTES:
            raise Refused(413, "too_large", f"the form is larger than {MAX_FORM_BYTES} bytes")
    return body


def _target(to: str, home: str) -> str:
    """Where to go after: only to a path of this server."""
    local = to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable()
    return to if local else home


def _page(to: str, problem: str, status: int) -> HTMLResponse:
    text = _PAGE.format(action="/login", to=html.escape(to, quote=True), problem=html.escape(problem))
    return HTMLResponse(text, status_code=status, headers=_HEADERS)
