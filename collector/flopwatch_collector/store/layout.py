"""The data folder: where what lies, its lock, its format, and files that are complete or not there."""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from flopwatch_collector.store.port import DATA_FORMAT, StoreLocked


@dataclass(frozen=True, kw_only=True, slots=True)
class RawFile:
    """A closed hour (or a day's part of it) of one table; times are the samples' own, in microseconds."""

    table: str
    number: int
    start: int
    end: int
    path: Path
    rows: int = 0


def parsed(table: str, path: Path) -> RawFile | None:
    """The file behind a name ``NUMBER-TMIN-TMAX.parquet``; None where the name is not of that form."""
    found = _RAW_NAME.fullmatch(path.name)
    if found is None:
        return None
    number, start, end = map(int, found.groups())
    return RawFile(table=table, number=number, start=start, end=end, path=path)


_RAW_NAME = re.compile(r"(\d+)-(-?\d+)-(-?\d+)\.parquet")


class Folder:
    """The folder of one store, held by this process until it is released.

    Raises:
        StoreLocked: another process holds it.
        ValueError: it was written in another format.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self._lock = self._held()
        try:
            self._check_format()
            for folder in (self.hot, self.sealed, self.aside, self.spill):
                folder.mkdir(parents=True, exist_ok=True)
            for left in self.spill.iterdir():
                left.unlink()
        except BaseException:
            self.release()
            raise

    def _held(self) -> int:
        handle = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(handle)
            raise StoreLocked(f"{self.root} is in use by another process (pid {holder})") from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        return handle

    def _check_format(self) -> None:
        path = self.root / "format"
        if not path.exists():
            with complete(path) as temporary:
                temporary.write_text(f"{DATA_FORMAT}\n")
            return
        found = path.read_text().strip()
        if found != str(DATA_FORMAT):
            raise ValueError(
                f"{self.root} has data format {found!r}; this version reads and writes {DATA_FORMAT}"
            )

    @property
    def hot(self) -> Path:
        """Files of open hours."""
        return self.root / "raw" / "hot"

    @property
    def sealed(self) -> Path:
        """Markers of hours whose Parquet is complete and whose hot file may still be there."""
        return self.root / "raw" / "sealed"

    @property
    def aside(self) -> Path:
        """Files that could not be read, kept for a person to look at."""
        return self.root / "raw" / "aside"

    @property
    def spill(self) -> Path:
        """Where sorts spill to."""
        return self.root / "temporary"

    def raw(self, table: str) -> Path:
        """Closed hours of a table."""
        return made(self.root / "raw" / table)

    def rollup(self, kind: str) -> Path:
        """Rollup files of a kind."""
        return made(self.root / "rollup" / kind)

    def raw_files(self, table: str) -> list[RawFile]:
        """Closed files of a table by number; left-overs of an interrupted write are removed."""
        drop_temporary(self.raw(table))
        found = [parsed(table, path) for path in sorted(self.raw(table).glob("*.parquet"))]
        return [file for file in found if file is not None]

    def strays(self, table: str) -> list[Path]:
        """Files among the closed ones of a table whose names are none of the store's."""
        return [path for path in sorted(self.raw(table).glob("*.parquet")) if parsed(table, path) is None]

    def release(self) -> None:
        """Let other processes have it."""
        os.close(self._lock)


def made(folder: Path) -> Path:
    """The folder, which exists afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def drop_temporary(folder: Path) -> None:
    """Remove what an interrupted write left."""
    for path in folder.glob("*.tmp"):
        path.unlink()


def synced(path: Path) -> None:
    """Make a file's content, or a folder's entries, durable."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def complete(path: Path) -> Iterator[Path]:
    """A path to write to; afterwards ``path`` is there, whole and durable, or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        yield temporary
        synced(temporary)
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    synced(path.parent)


def size_of(path: Path) -> int:
    """Bytes of a file; none where it is gone."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def removed(paths: Iterable[Path]) -> int:
    """Delete files; returns bytes freed. One that is gone already frees none."""
    freed = 0
    for path in paths:
        freed += size_of(path)
        path.unlink(missing_ok=True)
    return freed


def size(root: Path) -> int:
    """Bytes of all files below a folder; files that vanish meanwhile count nothing."""
    total = 0
    for folder, _, names in os.walk(root):
        total += sum(size_of(Path(folder) / name) for name in names)
    return total
