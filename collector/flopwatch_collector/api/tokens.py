"""Access tokens: a random secret shown once, kept as its hash, compared in constant time."""

import hashlib
import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from flopwatch_collector.store.port import Control

Role = Literal["agent", "viewer", "operator", "admin"]
ROLES: tuple[Role, ...] = ("agent", "viewer", "operator", "admin")
Right = Literal["ingest", "read", "operate", "schedule"]
RIGHTS: dict[Role, frozenset[Right]] = {
    "agent": frozenset({"ingest", "schedule"}),
    "viewer": frozenset({"read"}),
    "operator": frozenset({"read", "operate", "schedule"}),
    "admin": frozenset({"ingest", "read", "operate", "schedule"}),
}
KIND = "token"
PREFIX = "fw_"
REFRESH_SECONDS = 5.0
"""Tokens made or revoked by another process are known after this long."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """What is kept of a token; the secret itself is not."""

    token_id: str
    name: str
    role: Role
    sha256: str
    created_seconds: float
    revoked_seconds: float | None = None
    teams: tuple[str, ...] = ()
    """Whose jobs its holder may see; none: everybody's."""

    def may(self, right: Right) -> bool:
        """Whether the token's role gives the right."""
        return right in RIGHTS[self.role]


class Tokens:
    """The tokens of one collector. Safe for threads."""

    def __init__(self, control: Control, clock: Callable[[], float] = time.time) -> None:
        self._control = control
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens = control.load(KIND, Token)
        self._loaded = time.monotonic()

    def create(self, role: Role, name: str, teams: tuple[str, ...] = ()) -> tuple[Token, str]:
        """A new token and its secret, 256 random bits, which is not kept."""
        secret = PREFIX + secrets.token_urlsafe(32)
        token = Token(
            token_id=secrets.token_hex(4),
            name=name,
            role=role,
            sha256=_hash(secret),
            created_seconds=self._clock(),
            teams=teams,
        )
        self._save(token)
        return token, secret

    def revoke(self, token_id: str) -> Token:
        """The token, of no use from now on.

        Raises:
            KeyError: there is no such token.
        """
        self.refresh()
        token = replace(self._tokens[token_id], revoked_seconds=self._clock())
        self._save(token)
        return token

    def all(self) -> tuple[Token, ...]:
        """All tokens ever made, oldest first."""
        self.refresh()
        return tuple(sorted(self._tokens.values(), key=lambda token: token.created_seconds))

    def any_valid(self) -> bool:
        """Whether there is a token that is not revoked."""
        return any(token.revoked_seconds is None for token in self._tokens.values())

    def is_valid(self, token_id: str) -> bool:
        """Whether there is a token of this id that is not revoked."""
        token = self._tokens.get(token_id)
        return token is not None and token.revoked_seconds is None

    def find(self, secret: str) -> Token | None:
        """The token of a secret; takes the same time whichever of them matches."""
        asked = _hash(secret)
        found = None
        for token in tuple(self._tokens.values()):
            if hmac.compare_digest(token.sha256, asked) and token.revoked_seconds is None:
                found = token
        return found

    def is_stale(self) -> bool:
        """Whether ``refresh`` is due."""
        return time.monotonic() - self._loaded > REFRESH_SECONDS

    def refresh(self) -> None:
        """Read what other processes made or revoked."""
        with self._lock:
            self._loaded = time.monotonic()
            self._tokens = self._control.load(KIND, Token)

    def _save(self, token: Token) -> None:
        self._control.save(KIND, {token.token_id: token})
        self.refresh()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
