"""Changes come from our own pages: what a browser sends on behalf of another site is refused."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from flopwatch_collector.api.access import SAFE_METHODS, Access, address_of
from flopwatch_collector.api.errors import Refused, response


class SameSite:
    """In front of the whole application.

    A browser says where a request began: in ``Sec-Fetch-Site``, else in ``Origin``. Programs send neither, and bring
    their token with them.
    """

    def __init__(self, app: ASGIApp, access: Access, public_url: str | None) -> None:
        self._app = app
        self._access = access
        self._public = urlsplit(public_url).netloc.lower() if public_url else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what may pass."""
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if self._is_ours(headers, address_of(scope)):
            await self._app(scope, receive, send)
            return
        refused = Refused(403, "forbidden", "a change that was sent by a page of another site is not made")
        await response(refused)(scope, receive, send)

    def _is_ours(self, headers: Headers, address: str) -> bool:
        if headers.get("authorization"):
            return True
        where = headers.get("sec-fetch-site")
        if where is not None:
            return where in ("same-origin", "none")
        origin = headers.get("origin")
        if origin is None:
            return True
        known = {headers.get("host", "").lower(), self._public}
        if self._access.settings.trusts(address):
            known.add(headers.get("x-forwarded-host", "").lower())
        return urlsplit(origin).netloc.lower() in known - {"", None}
