"""What an unknown tool put before each line of a block: the same before its head and before what belongs to it."""

import re

_CLOCK = re.compile(r"[\dT.,/-]*\d:\d[\d:.,]*(?:Z|[+-]\d\d:?\d\d)?")
"""Times differ from line to line."""
_INDENTED = re.compile(r"\s{3,}(?=[A-Za-z][^=]*=)")
_LONGEST_CHARACTERS = 160


def without_capture(head: str, anchored_at: int, line: str, *, tabbed: bool) -> str | None:
    """The line without what stands before it as before the head; None where that is not the same.

    A tabbed block's head has nothing of its own before its anchor; an indented one's may have the logger's words there,
    so what is common ends where the line is indented.

    Args:
        head: the block's first line.
        anchored_at: where its anchor begins.
        line: a line below it.
        tabbed: how the block goes on.
    """
    if anchored_at <= 0:
        return None
    before = _CLOCK.sub("0:0", head[: min(anchored_at, _LONGEST_CHARACTERS)])
    if tabbed:
        below = _CLOCK.sub("0:0", line)
        return below[len(before) :] if below.startswith(before) else None
    found = _INDENTED.search(line[:_LONGEST_CHARACTERS])
    if found is None or not found.start():
        return None
    return line[found.start() :] if before.startswith(_CLOCK.sub("0:0", line[: found.start()])) else None
