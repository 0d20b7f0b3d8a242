"""Who looks at a page: what they may do, and which teams' jobs they may see.

The collector says so for the length of one request; the pages ask. It travels in a context variable, which follows a
request into the threads that answer it.
"""

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

ViewerRole = Literal["viewer", "operator", "admin"]
WhyReadOnly = Literal["role", "team", "source"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Viewer:
    """One reader. Equal viewers see equal pages: the name is no part of that."""

    name: str | None = field(default=None, compare=False)
    """None where nobody has to sign in."""
    role: ViewerRole = "admin"
    teams: tuple[str, ...] = ()
    """Whose jobs they see; none: everybody's."""
    can_leave: bool = field(default=False, compare=False)
    """Whether there is a session to sign out of."""
    has_desk: bool = True
    """Whether this process takes changes: a dashboard on its own does not."""

    @property
    def read_only(self) -> WhyReadOnly | None:
        """Why nothing may be changed; None where it may."""
        if not self.has_desk:
            return "source"
        if self.role == "viewer":
            return "role"
        return "team" if self.teams else None

    def sees(self, team: str | None) -> bool:
        """Whether a job of this team (account) is theirs to see."""
        return not self.teams or team in self.teams


EVERYBODY = Viewer()
_CURRENT: contextvars.ContextVar[Viewer] = contextvars.ContextVar("flopwatch_viewer", default=EVERYBODY)


def current() -> Viewer:
    """Who asks, as of this request."""
    return _CURRENT.get()


def enter(viewer: Viewer) -> None:
    """From now on, in this request, it is this viewer who asks."""
    _CURRENT.set(viewer)


@contextmanager
def entered(viewer: Viewer) -> Iterator[None]:
    """For the length of the block it is this viewer who asks."""
    token = _CURRENT.set(viewer)
    try:
        yield
    finally:
        _CURRENT.reset(token)
