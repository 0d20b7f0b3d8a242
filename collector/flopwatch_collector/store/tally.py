"""How many batches an open file must hold: a number beside it, so that a log that ends early is noticed.

DuckDB takes a damaged record of its log for the log's end, and says nothing. The number is written after a commit
and before its answer, and not synced: it survives the process, and after a loss of power it may be too small, never
too large.
"""

import os
from pathlib import Path

_DIGITS = 20


def path(hot: Path) -> Path:
    """Where the number of an open file lies."""
    return hot.with_name(hot.name + ".count")


def note(hot: Path, batches: int) -> None:
    """Keep the number; its file has one size from the beginning, so that a full disk does not matter.

    Raises:
        OSError: it cannot be written.
    """
    handle = os.open(path(hot), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(handle, f"{batches:0{_DIGITS}d}\n".encode(), 0)
    finally:
        os.close(handle)


def noted(hot: Path) -> int | None:
    """The number that was kept; None without one that can be read."""
    try:
        text = path(hot).read_text(errors="replace").strip()
    except FileNotFoundError:
        return None
    return int(text) if text.isdigit() else None
