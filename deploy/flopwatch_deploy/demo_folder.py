"""The demo's own data folder: marked, made anew at each start, never opened by anything else."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARKER = "SIMULATED"


class NotADemoFolder(Exception):
    """The folder holds something else, or another demo runs in it."""


def is_demo(folder: Path) -> bool:
    """Whether a demo made the folder, or the one around it."""
    return any((place / MARKER).exists() for place in (folder, folder.parent))


@contextmanager
def fresh(folder: Path) -> Iterator[Path]:
    """An empty folder for one demo, held while the context lasts.

    Raises:
        NotADemoFolder: it holds data that no demo made, or another demo holds it.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / MARKER).exists():
        raise NotADemoFolder(f"{folder} holds data that no demo made; name another with FLOPWATCH_DATA_DIR")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / MARKER).open("a") as marker:
        try:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise NotADemoFolder(f"another demo runs on {folder}") from error
        _clear(folder)
        marker.truncate(0)
        marker.write(
            f"Simulated data of a flopwatch demo, process {os.getpid()}. Every start makes them anew.\n"
        )
        marker.flush()
        yield folder


def _clear(folder: Path) -> None:
    for item in folder.iterdir():
        if item.name == MARKER:
            continue
        if item.is_dir() and not item.is_symlink():
            shutil.rmtree(item)
        else:
            item.unlink()
