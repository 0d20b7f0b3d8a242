"""Rows that a console library broke at the terminal's width, the rest indented below the message."""

import re

from flopwatch_agent.trainers.families.catalogue import GRAMMARS
from flopwatch_agent.trainers.framing import Record

_CONTINUED = re.compile(r" {6,}(?=\S)")
_MOST_LINES = 4
_LONGEST_CHARACTERS = 2_000
_MOST_WRITERS = 64
_PATIENCE_LINES = 16
"""The rest of a row comes within so many lines of all writers, or not at all."""
_BROKEN = tuple(grammar for grammar in GRAMMARS if grammar.block == "none" and grammar.needs)


class WrappedRows:
    """Keeps lines that begin a row and lack its rest, one of a writer."""

    def __init__(self) -> None:
        self._heads: dict[str, tuple[str, int]] = {}
        self._patience = 0

    @property
    def open(self) -> bool:
        """Whether the next line may be the rest of a row."""
        return bool(self._heads)

    def awaits(self, lane: str) -> bool:
        """Whether this writer's line may be the rest of its row; asked once for every line that comes."""
        self._patience -= 1
        if self._patience < 0:
            self._heads.clear()
        return lane in self._heads

    def joined(self, record: Record) -> str | None:
        """The row so far with this line, where it continues one; None where it does not."""
        text, count = self._heads.pop(record.lane, ("", 0))
        whole = continued(text, record.text)
        if not count or count >= _MOST_LINES or whole == text:
            return None
        self._keep(record.lane, whole, count + 1)
        return whole

    def begin(self, record: Record) -> None:
        """Keep a line that was no row, where it begins one."""
        text = record.text
        if any(grammar.literal in text and grammar.anchor.search(text) for grammar in _BROKEN):
            self._keep(record.lane, text, 1)

    def complete(self, lane: str) -> None:
        """The row was read."""
        self._heads.pop(lane, None)

    def _keep(self, lane: str, text: str, count: int) -> None:
        if len(text) <= _LONGEST_CHARACTERS and len(self._heads) < _MOST_WRITERS:
            self._heads[lane], self._patience = (text, count), _PATIENCE_LINES


def continued(text: str, following: str) -> str:
    """The line with the one below it, where that is indented as the rest of a broken row is."""
    if not following or _CONTINUED.match(following) is None:
        return text
    return f"{text.rstrip()} {following.strip()}"
