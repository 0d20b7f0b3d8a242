"""Records by key in memory, which of them wait to be saved, and a copy for readers made only on change."""

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

K = TypeVar("K", int, str)
R = TypeVar("R")
TOUCH_SECONDS = 60.0
"""Times of last sight are saved this often; everything else is saved before the batch is answered."""


class Table(Generic[K, R]):
    """Records of one kind. Not safe for threads: the directory's lock guards it."""

    def __init__(self, kind: str, records: Mapping[K, R]) -> None:
        self.kind = kind
        self.records: dict[K, R] = dict(records)
        self.highest_loaded = _highest(records)
        self._unsaved: dict[K, R] = {}
        self._copy: Mapping[K, R] | None = None

    def put(self, key: K, record: R, *, save: bool = True) -> None:
        """Insert or replace; ``save`` false keeps the change in memory until a change that matters."""
        self.records[key] = record
        self._copy = None
        if save or key in self._unsaved:
            self._unsaved[key] = record

    def learn(self, records: Mapping[K, R]) -> None:
        """Take over records that are saved already, by another collector."""
        for key in sorted(records):
            self.records[key] = records[key]
            self._unsaved.pop(key, None)
        self.highest_loaded = max(self.highest_loaded, _highest(records))
        self._copy = None

    def view(self) -> Mapping[K, R]:
        """A copy that later changes leave alone; the same one until something changes."""
        if self._copy is None:
            self._copy = dict(self.records)
        return self._copy

    def take_unsaved(self) -> dict[str, R]:
        """Documents to be saved, by their text keys; they count as saved from now on."""
        taken, self._unsaved = self._unsaved, {}
        return {str(key): record for key, record in taken.items()}

    def keep_unsaved(self) -> None:
        """Count every record as unsaved: saving failed."""
        self._unsaved = dict(self.records)


def _highest(keys: Iterable[Any]) -> int:
    return max((key for key in keys if isinstance(key, int)), default=0)


def next_number(table: Table[int, R]) -> int:
    """The next number, from 1: one more than the highest, for some below it may be forgotten."""
    # Records are put in the order of their numbers; those that were loaded come in any order.
    newest = next(reversed(table.records), 0)
    return 1 + max(table.highest_loaded, newest)
