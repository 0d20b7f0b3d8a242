"""Puts together what one writer spread over lines: dicts with an open brace, blocks of indented lines."""

import re
from dataclasses import dataclass, field

from flopwatch_agent.trainers.families.blocks import COMPOSER, OLMO_CORE

_MAX_LINES = 400
_MAX_CHARACTERS = 1 << 16
_DICT = re.compile(r"\{['\"]")
_INDENTED = re.compile(r"\s{3,}\S")
_TABBED = re.compile(r"\t| {4,}\S")


@dataclass(kw_only=True, slots=True)
class Lane:
    """What is open of one writer."""

    lines: list[str] = field(default_factory=list)
    characters: int = 0
    continues: re.Pattern[str] | None = None
    """How the next line of an open block begins; ``None`` for an open dict."""
    depth: int = 0

    @property
    def open(self) -> bool:
        """Whether the next line may belong to what went before."""
        return bool(self.lines)

    def take(self, text: str) -> list[str]:
        """Texts that are complete with this line."""
        if not self.lines:
            return self._begin(text)
        if self.continues is not None:
            return self._block(text)
        return self._dict(text)

    def flush(self) -> list[str]:
        """What is open, as one text."""
        lines, self.lines, self.characters, self.depth = self.lines, [], 0, 0
        if not lines:
            return []
        return ["\n".join(lines)] if self.continues is not None else lines

    def _begin(self, text: str) -> list[str]:
        if OLMO_CORE.anchor.search(text) or COMPOSER.anchor.search(text):
            self.continues = _TABBED if COMPOSER.anchor.search(text) else _INDENTED
            self._append(text)
            return []
        found = _DICT.search(text)
        if found and _opens_row(text, found.start()):
            self.continues = None
            self.depth = _depth(text[found.start() :])
            if self.depth > 0:
                self._append(text)
                return []
        return [text]

    def _block(self, text: str) -> list[str]:
        if self.continues is not None and self.continues.match(text) and self._has_room(text):
            self._append(text)
            return []
        return self.flush() + self._begin(text)

    def _dict(self, text: str) -> list[str]:
        begins = _DICT.match(text.lstrip())
        if (begins and "loss'" in text) or not self._has_room(text):
            return self.flush() + self._begin(text)
        self._append(text)
        self.depth += _depth(text)
        if self.depth > 0:
            return []
        joined = "".join(self.lines)
        self.lines, self.characters = [], 0
        return [joined]

    def _append(self, text: str) -> None:
        self.lines.append(text)
        self.characters += len(text)

    def _has_room(self, text: str) -> bool:
        return len(self.lines) < _MAX_LINES and self.characters + len(text) < _MAX_CHARACTERS


def _opens_row(text: str, start: int) -> bool:
    """A dict of metrics: it stands alone on its line, or names a loss or a step."""
    return not text[:start].strip() or "loss'" in text or "'timing/" in text or "'perf/" in text


def _depth(text: str) -> int:
    return text.count("{") - text.count("}")
