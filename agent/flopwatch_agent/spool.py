"""A bounded queue of batches on disk: each written whole or not at all, numbered once, sent in order.

A batch is written to a temporary file, synced, renamed and the folder synced: after a crash or a power cut a batch
is whole or was never there, and its number is used once. One sync every ten seconds costs nothing that matters.
Beyond ``max_bytes`` the oldest batches go and are counted.
"""

import contextlib
import gzip
import os
import threading
import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path

SUFFIX = ".json.gz"
REJECTED_BYTES = 16 << 20
SENT_SUFFIX = ".sent"
ID_FILE, DROPPED_FILE = "spool_id", "dropped"


@dataclass(frozen=True, slots=True)
class SpooledBatch:
    """One batch that waits to be sent."""

    sequence: int
    path: Path
    size_bytes: int


class DamagedBatchError(Exception):
    """A batch on disk is not what was written: the disk or a power cut tore it."""


class Spool:
    """The spool below ``folder``; one process at a time, one thread that writes and one that sends.

    Raises:
        OSError: the folder cannot be made or read.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._rejected = folder / "rejected"
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for leftover in folder.glob("*.tmp"):
            leftover.unlink()
        self.spool_id = self._read_text(ID_FILE) or self._new_id()
        self._waiting = {number_of(path): path.stat().st_size for path in self._batches()}
        self._sent = sorted(p for p in folder.glob(f"*{SENT_SUFFIX}") if p.stem.isdigit())
        self._last = max([-1, *(number_of(path) for path in self._sent), *self._waiting])
        self._inherited = self._last
        self.dropped = self._read_number(DROPPED_FILE, 0)
        """Batches given up because the spool was full, since the folder was made."""

    @property
    def next_sequence(self) -> int:
        """The number of the next batch."""
        return self._last + 1

    @property
    def waiting(self) -> int:
        """Batches on disk."""
        return len(self._waiting)

    @property
    def waiting_bytes(self) -> int:
        """Their size on disk."""
        with self._lock:
            return sum(self._waiting.values())

    def write(self, sequence: int, body: bytes) -> None:
        """Keep a batch; ``sequence`` is ``next_sequence``.

        Raises:
            OSError: it could not be written; the number stays free.
        """
        packed = gzip.compress(body, 6, mtime=0)
        target = f"{self._folder}/{sequence:020d}{SUFFIX}"  # text: a Path costs more than writing
        temporary = f"{self._folder}/{sequence:020d}.tmp"
        try:
            write_synced(temporary, packed)
            os.replace(temporary, target)  # noqa: PTH105 - as above
            sync_folder(self._folder)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
        with self._lock:
            self._waiting[sequence] = len(packed)
        self._last = sequence
        self._make_room()

    def oldest(self) -> SpooledBatch | None:
        """The batch to send next."""
        with self._lock:
            sequence = min(self._waiting, default=None)
            size = 0 if sequence is None else self._waiting[sequence]
        return None if sequence is None else SpooledBatch(sequence, self._path(sequence), size)

    def read(self, batch: SpooledBatch) -> bytes | None:
        """The packed body of a batch; None when it was given up meanwhile.

        Raises:
            DamagedBatchError: an earlier process left it, and it is empty or torn.
            OSError: it cannot be read now.
        """
        try:
            packed = batch.path.read_bytes()
        except FileNotFoundError:
            self._forget(batch.sequence)
            return None
        if batch.sequence <= self._inherited:
            require_whole(batch.path.name, packed)
        return packed

    def done(self, batch: SpooledBatch) -> None:
        """The collector has it: its file, renamed, keeps the number until the next one is sent."""
        mark = self._folder / f"{batch.sequence:020d}{SENT_SUFFIX}"
        with contextlib.suppress(FileNotFoundError):
            batch.path.replace(mark)
        self._keep_mark(mark)
        self._forget(batch.sequence)

    def reject(self, batch: SpooledBatch, reason: str) -> None:
        """The collector will never take it: keep it aside with the reason, for people to look at."""
        self._rejected.mkdir(exist_ok=True, mode=0o700)
        mark = self._folder / f"{batch.sequence:020d}{SENT_SUFFIX}"
        mark.touch(mode=0o600)
        self._keep_mark(mark)
        note = self._rejected / f"{batch.sequence:020d}.reason"
        note.write_text(reason[:4000] + "\n", encoding="utf-8")
        batch.path.replace(self._rejected / batch.path.name)
        self._forget(batch.sequence)
        kept = sorted(self._rejected.iterdir(), reverse=True)
        size = 0
        for path in kept:
            size += path.stat().st_size
            if size > REJECTED_BYTES:
                path.unlink()

    def _make_room(self) -> None:
        lost = 0
        while self.waiting_bytes > self._max_bytes and len(self._waiting) > 1:
            oldest = self.oldest()
            if oldest is None:
                break
            oldest.path.unlink(missing_ok=True)
            self._forget(oldest.sequence)
            lost += 1
        if lost:
            self.dropped += lost
            self._write_text(DROPPED_FILE, str(self.dropped))

    def _forget(self, sequence: int) -> None:
        with self._lock:
            self._waiting.pop(sequence, None)

    def _keep_mark(self, mark: Path) -> None:
        """The newest mark alone is enough: a number is not used again when no batch waits at a restart."""
        for older in self._sent:
            if older != mark:
                older.unlink(missing_ok=True)
        self._sent = [mark]

    def _new_id(self) -> str:
        spool_id = uuid.uuid4().hex
        self._write_text(ID_FILE, spool_id)
        sync_folder(self._folder)
        return spool_id

    def _path(self, sequence: int) -> Path:
        return self._folder / f"{sequence:020d}{SUFFIX}"

    def _batches(self) -> list[Path]:
        return [path for path in self._folder.glob(f"*{SUFFIX}") if path.name.removesuffix(SUFFIX).isdigit()]

    def _read_text(self, name: str) -> str | None:
        try:
            return (self._folder / name).read_text(encoding="ascii").strip() or None
        except FileNotFoundError:
            return None

    def _read_number(self, name: str, default: int) -> int:
        """A number that was kept; ``default`` when the file is not there or was damaged."""
        try:
            return int(self._read_text(name) or default)
        except ValueError:
            return default

    def _write_text(self, name: str, text: str) -> None:
        temporary = self._folder / f"{name}.tmp"
        write_synced(temporary, text.encode("ascii"))
        temporary.replace(self._folder / name)


def number_of(path: Path) -> int:
    """The number that a batch's file, or the mark of a sent one, is named by."""
    return int(path.name.partition(".")[0])


def require_whole(name: str, packed: bytes) -> None:
    """Raise ``DamagedBatchError`` unless the bytes are one whole gzip file."""
    if not packed:
        raise DamagedBatchError(f"{name} is empty")
    try:
        gzip.decompress(packed)
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedBatchError(f"{name}: {error}") from error


def write_synced(path: Path | str, data: bytes) -> None:
    """Write a file so that it is on disk when this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder last."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
