"""The credentials of who looks at a dashboard of its own process: the collector is asked with them, for one request.

They travel in a context variable, which follows a request into the threads that answer it.
"""

import contextvars
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

COOKIES = "flopwatch_"
"""Cookies of these names are flopwatch's; no other is handed on."""
_CURRENT: contextvars.ContextVar[Mapping[str, str] | None] = contextvars.ContextVar(
    "flopwatch_reader", default=None
)


def credentials(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request that say who it is: a token, and flopwatch's own cookies."""
    pieces = (piece.strip() for piece in headers.get("cookie", "").split(";"))
    cookie = "; ".join(piece for piece in pieces if piece.startswith(COOKIES))
    found = {"cookie": cookie, "authorization": headers.get("authorization", "")}
    return {name: value for name, value in found.items() if value}


def current() -> Mapping[str, str] | None:
    """With which credentials this request asks; None where readers do not sign in."""
    return _CURRENT.get()


@contextmanager
def entered(given: Mapping[str, str]) -> Iterator[None]:
    """For the length of the block it is asked with these."""
    token = _CURRENT.set(given)
    try:
        yield
    finally:
        _CURRENT.reset(token)
