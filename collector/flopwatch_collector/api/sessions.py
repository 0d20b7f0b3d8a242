"""Sessions of people who have signed in: a random secret in their cookie, its hash in the control state."""

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from flopwatch_collector.api.people import Person
from flopwatch_collector.api.tokens import Role
from flopwatch_collector.store.port import Control

KIND = "session"
REFRESH_SECONDS = 5.0
"""What another collector did is known after this long."""
SEEN_STEP_SECONDS = 60.0
"""Use is noted no more often than this."""
MOST_SESSIONS = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """One person at one browser, until it ends."""

    session_id: str
    """SHA-256 of the cookie's secret, which is not kept."""
    name: str
    role: Role
    teams: tuple[str, ...] = ()
    token_id: str | None = None
    """The token that was given; a session ends with it."""
    created_seconds: float
    seen_seconds: float

    def ends_seconds(self, lasts: float, idle: float) -> float:
        """When it ends, if nothing more is asked."""
        return min(self.created_seconds + lasts, self.seen_seconds + idle)


class Sessions:
    """The sessions of a site. Safe for threads."""

    def __init__(
        self,
        control: Control,
        *,
        lasts_seconds: float,
        idle_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._control = control
        self._lasts = lasts_seconds
        self._idle = idle_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions = control.load(KIND, Session)
        self._loaded = time.monotonic()

    @property
    def lasts_seconds(self) -> float:
        """How long a session lasts at most."""
        return self._lasts

    def begin(self, person: Person, token_id: str | None = None) -> str:
        """A new session's secret, 256 random bits."""
        secret = secrets.token_urlsafe(32)
        now = self._clock()
        self._forget(now)
        made = Session(
            session_id=_hash(secret),
            name=person.name,
            role=person.role,
            teams=person.teams,
            token_id=token_id,
            created_seconds=now,
            seen_seconds=now,
        )
        self._control.save(KIND, {made.session_id: made})
        with self._lock:
            self._sessions = {**self._sessions, made.session_id: made}
        return secret

    def find(self, secret: str) -> Session | None:
        """The session of a cookie, where it has not ended; it is looked up by its hash, so no time tells of a guess."""
        found = self._sessions.get(_hash(secret))
        if found is None or self._clock() >= found.ends_seconds(self._lasts, self._idle):
            return None
        return found

    def is_stale(self, secret: str | None = None) -> bool:
        """Whether ``refresh`` is due, for a cookie that is not known here sooner."""
        age = time.monotonic() - self._loaded
        if secret is not None and _hash(secret) not in self._sessions:
            return age > 1.0
        return age > REFRESH_SECONDS

    def refresh(self) -> None:
        """Read what other collectors did."""
        with self._lock:
            self._loaded = time.monotonic()
            self._sessions = self._control.load(KIND, Session)

    def needs_noting(self, session: Session) -> bool:
        """Whether its use is to be noted."""
        return self._clock() - session.seen_seconds > min(SEEN_STEP_SECONDS, self._idle / 4.0)

    def note(self, session: Session) -> None:
        """Note that it was used now, unless it has ended meanwhile."""
        seen = replace(session, seen_seconds=self._clock())
        if self._control.replace(KIND, session.session_id, session, seen):
            with self._lock:
                self._sessions = {**self._sessions, seen.session_id: seen}

    def end(self, secret: str) -> Session | None:
        """End a session: signed out."""
        key = _hash(secret)
        ended = self._sessions.get(key)
        self._control.delete(KIND, [key])
        with self._lock:
            self._sessions = {name: one for name, one in self._sessions.items() if name != key}
        return ended

    def _forget(self, now: float) -> None:
        """Forget what has ended, and beyond a bound what was used longest ago."""
        known = self._control.load(KIND, Session)
        by_use = sorted(known.values(), key=lambda one: one.seen_seconds)
        surplus = by_use[: max(0, len(by_use) + 1 - MOST_SESSIONS)]
        gone = {one.session_id for one in by_use if now >= one.ends_seconds(self._lasts, self._idle)}
        gone |= {one.session_id for one in surplus}
        if gone:
            self._control.delete(KIND, sorted(gone))
        with self._lock:
            self._sessions = {name: one for name, one in known.items() if name not in gone}


def guard_of(secret: str) -> str:
    """What a page sends along with a change, made from the session's secret: another site cannot know it."""
    return hmac.new(secret.encode("utf-8", "surrogatepass"), b"flopwatch change", hashlib.sha256).hexdigest()


def is_guard(secret: str, sent: str) -> bool:
    """Whether it is this session's; takes the same time whatever was sent."""
    return hmac.compare_digest(guard_of(secret).encode(), sent.encode("utf-8", "surrogatepass"))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
