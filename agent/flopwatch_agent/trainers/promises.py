"""Whether a line with a trainer's sign can be a row or a header at all: cheaper than trying the expressions."""

from flopwatch_agent.trainers.families.catalogue import GRAMMARS
from flopwatch_agent.trainers.lines import CENTURY, CONTAINER_LINE
from flopwatch_agent.trainers.prefilter import PROOFS

_BAR_WORDS = (b"rain", b"poch", b"tep", b"oss", b"iteration", b"G  ")
"""A bar that counts training says one of them, and so does a row that was torn into its line."""
_MARKS = "|'=([_/:"


def _grouped() -> tuple[tuple[bytes, tuple[bytes, ...]], ...]:
    """The texts that rows and headers have, by a character that most other lines lack.

    Without quotation marks: inside a structured sink's record they are escaped.
    """
    groups: dict[str, list[bytes]] = {mark: [] for mark in (*_MARKS, "")}
    for text in dict.fromkeys((*PROOFS, *(grammar.literal for grammar in GRAMMARS))):
        plain = text.strip('"')
        groups[next((mark for mark in _MARKS if mark in plain), "")].append(plain.encode())
    return tuple((mark.encode(), tuple(texts)) for mark, texts in groups.items())


_GROUPS = _grouped()


def promises(line: bytes) -> bool:
    """Whether the line holds a text that a row or a proof needs."""
    if line.startswith(CENTURY) and CONTAINER_LINE.match(line):
        return True
    if b'"loss"' in line or b'_loss"' in line or b'/loss"' in line:
        return True
    if b"it/s" in line or b"s/it" in line:
        return any(word in line for word in _BAR_WORDS)
    return (b"<" in line and b"loss" in line) or _has_a_text(line)


def _has_a_text(line: bytes) -> bool:
    for mark, texts in _GROUPS:
        if mark in line:
            for text in texts:
                if text in line:
                    return True
    return False
