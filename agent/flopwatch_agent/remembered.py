"""A set that forgets its oldest members beyond a bound."""

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Remembered(Generic[T]):
    """At most ``most`` members; the newest stay."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._members: dict[T, None] = {}

    def __contains__(self, member: T) -> bool:
        return member in self._members

    def add(self, member: T) -> None:
        """Take one in as the newest."""
        self._members.pop(member, None)
        self._members[member] = None
        while len(self._members) > self._most:
            del self._members[next(iter(self._members))]
