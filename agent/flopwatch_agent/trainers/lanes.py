"""Puts together what one writer spread over lines: dicts with an open brace, blocks of indented lines."""

import re
from dataclasses import dataclass, field, replace

from flopwatch_agent.trainers.captured import without_capture
from flopwatch_agent.trainers.families.blocks import GRAMMARS as BLOCK_GRAMMARS
from flopwatch_agent.trainers.families.catalogue import GRAMMARS
from flopwatch_agent.trainers.framing import Record
from flopwatch_agent.trainers.grammar import match

_MAX_LINES = 400
_TOLERATED_LINES = 2
"""So many lines of other writers in a row may stand inside a block."""
_MAX_CHARACTERS = 1 << 16
_DICT = re.compile(r"\{['\"]")
_FIGURES = re.compile(r"\{'[\w/]+': [-+\d.e]+,\s*$")
"""The first line of a printed dict of numbers, whatever a tool put before it."""
_INDENTED = re.compile(r"\s{3,}\S")
_TABBED = re.compile(r"\t| {4,}\S")

_CONTINUES = {"indented": _INDENTED, "tabbed": _TABBED}
_BLOCKS = tuple((grammar, _CONTINUES[grammar.block]) for grammar in BLOCK_GRAMMARS if grammar.block != "none")
_LINES = tuple(grammar for grammar in GRAMMARS if grammar.block == "none")
_PART_OF_DICT = ("", "'", '"', "{", "}", "[", "]", ",")


@dataclass(kw_only=True, slots=True)
class Lane:
    """What is open of one writer."""

    records: list[Record] = field(default_factory=list)
    characters: int = 0
    continues: re.Pattern[str] | None = None
    """How the next line of an open block begins; ``None`` for an open dict."""
    anchored_at: int = 0
    """Where the anchor of the open block stands in its first line."""
    depth: int = 0
    foreign: list[Record] = field(default_factory=list)
    """Lines of other writers that came while a block is open; they follow it."""
    misses: int = 0
    """So many of them in a row."""

    @property
    def open(self) -> bool:
        """Whether the next line may belong to what went before."""
        return bool(self.records)

    def take(self, record: Record) -> list[Record]:
        """What is complete with this line, each with the label and time of its first line."""
        if not self.records:
            return self._begin(record)
        if self.continues is not None:
            return self._block(record)
        return self._dict(record)

    def flush(self) -> list[Record]:
        """What is open: a block as one record, a dict that never closed as its lines."""
        records, self.records, self.characters, self.depth = self.records, [], 0, 0
        foreign, self.foreign, self.misses = self.foreign, [], 0
        if self.continues is None or not records:
            return records
        return [replace(records[0], text="\n".join(record.text for record in records)), *foreign]

    def _begin(self, record: Record) -> list[Record]:
        text = record.text
        for grammar, continues in _BLOCKS:
            head = grammar.anchor.search(text) if grammar.literal in text else None
            if head:
                self.continues, self.anchored_at = continues, head.start()
                self._append(record)
                return []
        found = _DICT.search(text)
        if found and _opens_row(text, found.start()):
            self.continues = None
            self.depth = _depth(text[found.start() :])
            if self.depth > 0:
                self._append(record)
                return []
        return [record]

    def _block(self, record: Record) -> list[Record]:
        part = self._part(record)
        if part is not None and self._has_room(part):
            self._append(part)
            self.misses = 0
            return []
        if self._tolerates(record):
            self.foreign.append(record)
            self.misses += 1
            return []
        return self.flush() + self._begin(record)

    def _part(self, record: Record) -> Record | None:
        """The line as a part of the open block; without what an unknown tool put before both."""
        if self.continues is None or self.continues.match(record.text):
            return record
        head = self.records[0].text
        text = without_capture(head, self.anchored_at, record.text, tabbed=self.continues is _TABBED)
        fits = text is not None and self.continues.match(text) and not _is_a_step(record.text)
        return replace(record, text=text or "") if fits else None

    def _tolerates(self, record: Record) -> bool:
        """Whether the block may go on after this line of somebody else."""
        few = self.misses < _TOLERATED_LINES and len(self.foreign) < _MAX_LINES
        return few and not _is_a_step(record.text)

    def _dict(self, record: Record) -> list[Record]:
        begins = _DICT.match(record.text.lstrip())
        again = begins and "loss'" in record.text
        if again or not self._has_room(record) or _is_row(record.text):
            return self.flush() + self._begin(record)
        self._append(record)
        self.depth += _depth(record.text)
        if self.depth > 0:
            return []
        records, self.records, self.characters = self.records, [], 0
        return [replace(records[0], text="".join(part.text for part in records))]

    def _append(self, record: Record) -> None:
        self.records.append(record)
        self.characters += len(record.text)

    def _has_room(self, record: Record) -> bool:
        return len(self.records) < _MAX_LINES and self.characters + len(record.text) < _MAX_CHARACTERS


def _opens_row(text: str, start: int) -> bool:
    """A dict of metrics: it stands alone on its line, or names a loss or a step."""
    alone = not text[:start].strip() or _FIGURES.match(text, start)
    return bool(alone) or "loss'" in text or "'timing/" in text or "'perf/" in text


def _is_row(text: str) -> bool:
    """Whether the line is a whole row by itself, of a writer that does not print dicts."""
    if text.lstrip()[:1] in _PART_OF_DICT:
        return False
    return any(grammar.literal in text and match(grammar, text) for grammar in _LINES)


def _is_a_step(text: str) -> bool:
    """Whether the line begins a block, or is a row, so that no open block goes on after it."""
    heads = any(grammar.literal in text and grammar.anchor.search(text) for grammar, _ in _BLOCKS)
    return heads or _DICT.search(text) is not None or _is_row(text)


def _depth(text: str) -> int:
    return text.count("{") - text.count("}")
