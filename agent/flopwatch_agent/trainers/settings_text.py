"""Settings files without a YAML library: block mappings of scalars and lists of scalars, which tools write by default.

Anchors, tags, text over several lines and lists of mappings are passed over; nothing is ever executed.
"""

import re
from typing import Any

_PAIR = re.compile(r"(?P<quote>[\"']?)(?P<name>[\w./-]{1,200})(?P=quote):(?:\s+(?P<value>\S.*?))?\s*$")
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_REAL = re.compile(r"[+-]?(?:\d{1,18}\.\d{0,18}|\.\d{1,18}|\d{1,18})(?:[eE][+-]?\d{1,3})?")
_NOTHING = ("null", "Null", "NULL", "~", "None", "", "{}", "[]")
_WORDS = {"true": True, "True": True, "false": False, "False": False}
_MAX_INDENT = 64
_PASSED_OVER = ("|", ">", "&", "!", "*")


def scalar(text: str) -> Any:
    """A scalar as YAML or Python's ``str`` writes it: a number, truth, text, or None."""
    text = text.strip()
    if text in _NOTHING:
        return None
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    return text[1:-1] if len(text) > 1 and text[0] in "'\"" and text[0] == text[-1] else text


def list_or_scalar(text: str) -> Any:
    """A scalar, or a list of scalars in one line."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]") and text != "[]":
        return [scalar(item) for item in text[1:-1].split(",")]
    return scalar(text)


def block_mapping(text: str) -> dict[str, Any]:
    """The names and values of a settings file, sections as mappings of their own; empty sections are None."""
    reader = _Reader()
    for line in text.splitlines():
        content = line.strip()
        indent = len(line) - len(line.lstrip(" "))
        if content and not content.startswith(("#", "---", "...")) and indent <= _MAX_INDENT:
            reader.take(indent, content)
    return _without_empty(reader.top)


class _Reader:
    """The sections that are open, the outermost first."""

    def __init__(self) -> None:
        self.top: dict[str, Any] = {}
        self._open: list[tuple[int, dict[str, Any], str]] = []
        """Indentation and place of the names whose values may still follow."""
        self._skip: int | None = None
        """Lines further in than this belong to something that is passed over."""

    def take(self, indent: int, content: str) -> None:
        if self._skip is not None and indent > self._skip:
            return
        self._skip = None
        if content == "-" or content.startswith("- "):
            self._item(indent, content[1:])
            return
        found = _PAIR.match(content)
        if found is None:
            return
        while self._open and self._open[-1][0] >= indent:
            self._open.pop()
        self._pair(indent, found["name"], found["value"])

    def _item(self, indent: int, text: str) -> None:
        self._skip = indent
        while self._open and self._open[-1][0] > indent:
            self._open.pop()
        if self._open:
            _, place, name = self._open[-1]
            place[name] = place[name] if isinstance(place[name], list) else []
            place[name].append(scalar(text))

    def _pair(self, indent: int, name: str, value: str | None) -> None:
        inside = self._open[-1][1][self._open[-1][2]] if self._open else self.top
        if not isinstance(inside, dict):
            return
        if value is None:
            inside[name] = {}
            self._open.append((indent, inside, name))
        elif value.startswith(_PASSED_OVER):
            inside[name], self._skip = value, indent
        else:
            inside[name] = list_or_scalar(value)


def _without_empty(section: dict[str, Any]) -> dict[str, Any]:
    return {
        name: (_without_empty(value) or None) if isinstance(value, dict) else value
        for name, value in section.items()
    }
