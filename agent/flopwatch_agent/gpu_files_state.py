"""Whether the running agent has the GPUs' device files open, for ``flopwatch agent release`` to wait for."""

import contextlib
import fcntl
import os
from pathlib import Path

LOCK_FILE, STATE_FILE = "lock", "gpu_files"
OPEN, RELEASED = "open", "released"


class GpuFilesState:
    """Told by the agent's loop; written only when it changes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / STATE_FILE
        self._told: bool | None = None

    def tell(self, *, released: bool) -> None:
        """Write the state; a full disk keeps the agent from nothing else, so it is tried again the next time."""
        if released == self._told:
            return
        temporary = self._path.with_suffix(".tmp")
        with contextlib.suppress(OSError):
            temporary.write_text(RELEASED if released else OPEN)
            temporary.replace(self._path)
            self._told = released


def state(folder: Path) -> str | None:
    """What the agent told last; None when it told nothing."""
    try:
        return (folder / STATE_FILE).read_text().strip()
    except OSError:
        return None


def running_agent(folder: Path) -> int | None:
    """The pid of the agent that uses a data folder; None when none runs.

    Raises:
        OSError: the folder's lock cannot be read.
    """
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.read(descriptor, 32).strip()
        return int(text) if text.isdigit() else None
    finally:
        os.close(descriptor)
    return None
