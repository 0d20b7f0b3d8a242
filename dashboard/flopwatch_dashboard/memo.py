"""Answers kept for readers who ask the same: drawn once, sent only where they changed."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from plotly.io.json import to_json_plotly

T = TypeVar("T")


class Memo(Generic[T]):
    """The newest values by key; safe between threads, bounded."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The kept value of ``key``, or a new one; two threads may both make it, neither waits."""
        found = self.peek(key)
        if found is not None:
            return found
        made = make()
        self.put(key, made)
        return made

    def peek(self, key: Hashable) -> T | None:
        """The kept value, None when there is none."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def put(self, key: Hashable, value: T) -> None:
        """Keep a value; the one longest not asked for goes."""
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """A page's parts as they go to the browser, and a digest of each."""

    parts: Mapping[str, Any]
    digests: Mapping[str, str]


def drawn(parts: Mapping[str, Any]) -> Drawn:
    """The parts with their digests."""
    return Drawn(parts=parts, digests={name: digest(value) for name, value in parts.items()})


def digest(value: Any) -> str:
    """A short fingerprint of what would be sent."""
    try:
        encoded = msgspec.json.encode(value)
    except TypeError:  # Components and arrays inside: only Plotly's slower encoder knows them.
        encoded = to_json_plotly(value).encode()
    return hashlib.blake2b(encoded, digest_size=8).hexdigest()


def transaction(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What turns one list of rows into the other: rows to add, to update, to remove, by their ``id``."""
    old = {row["id"]: row for row in before}
    new = {row["id"]: row for row in after}
    return {
        "add": [row for key, row in new.items() if key not in old],
        "update": [row for key, row in new.items() if key in old and old[key] != row],
        "remove": [row for key, row in old.items() if key not in new],
    }
