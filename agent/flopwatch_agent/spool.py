"""A bounded queue of batches on disk: each written whole or not at all, numbered once, sent in order.

A batch is written to a temporary file, synced, renamed and the folder synced: after a crash or a power cut a batch
is whole or was never there, and its number is used once. One sync every ten seconds costs nothing that matters.
Beyond ``max_bytes`` the oldest batches go and are counted.
"""

import gzip
import os
import uuid
from dataclasses import dataclass
from pathlib import Path

SUFFIX = ".json.gz"
REJECTED_BYTES = 16 << 20
ID_FILE, SENT_FILE, DROPPED_FILE = "spool_id", "last_sent", "dropped"


@dataclass(frozen=True, slots=True)
class SpooledBatch:
    """One batch that waits to be sent."""

    sequence: int
    path: Path
    size_bytes: int


class Spool:
    """The spool below ``folder``; one process at a time.

    Raises:
        OSError: the folder cannot be made or read.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._rejected = folder / "rejected"
        self._max_bytes = max_bytes
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for leftover in folder.glob("*.tmp"):
            leftover.unlink()
        self.spool_id = self._read_text(ID_FILE) or self._new_id()
        self._waiting = {int(path.name.removesuffix(SUFFIX)): path.stat().st_size for path in self._batches()}
        last_sent = int(self._read_text(SENT_FILE) or -1)
        self._last = max([last_sent, *self._waiting], default=-1)
        self.dropped = int(self._read_text(DROPPED_FILE) or 0)
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
        return sum(list(self._waiting.values()))

    def write(self, sequence: int, body: bytes) -> None:
        """Keep a batch; ``sequence`` is ``next_sequence``.

        Raises:
            OSError: it could not be written; the number stays free.
        """
        packed = gzip.compress(body, 6, mtime=0)
        target = self._path(sequence)
        temporary = target.with_suffix(".tmp")
        try:
            write_synced(temporary, packed)
            temporary.replace(target)
            sync_folder(self._folder)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        self._waiting[sequence] = len(packed)
        self._last = sequence
        self._make_room()

    def oldest(self) -> SpooledBatch | None:
        """The batch to send next."""
        sequence = min(list(self._waiting), default=None)
        if sequence is None:
            return None
        return SpooledBatch(sequence, self._path(sequence), self._waiting[sequence])

    def done(self, batch: SpooledBatch) -> None:
        """The collector has it: delete it."""
        self._note_sent(batch.sequence)
        batch.path.unlink(missing_ok=True)
        self._waiting.pop(batch.sequence, None)

    def reject(self, batch: SpooledBatch, reason: str) -> None:
        """The collector will never take it: keep it aside with the reason, for people to look at."""
        self._rejected.mkdir(exist_ok=True, mode=0o700)
        self._note_sent(batch.sequence)
        note = self._rejected / f"{batch.sequence:020d}.reason"
        note.write_text(reason[:4000] + "\n", encoding="utf-8")
        batch.path.replace(self._rejected / batch.path.name)
        self._waiting.pop(batch.sequence, None)
        kept = sorted(self._rejected.iterdir(), reverse=True)
        size = 0
        for path in kept:
            size += path.stat().st_size
            if size > REJECTED_BYTES:
                path.unlink()

    def _make_room(self) -> None:
        lost = 0
        while self.waiting_bytes > self._max_bytes and len(self._waiting) > 1:
            sequence = min(list(self._waiting))
            self._path(sequence).unlink(missing_ok=True)
            self._waiting.pop(sequence, None)
            lost += 1
        if lost:
            self.dropped += lost
            self._write_text(DROPPED_FILE, str(self.dropped))

    def _note_sent(self, sequence: int) -> None:
        """So that a number is not used again when the folder is empty after a restart."""
        self._write_text(SENT_FILE, str(sequence))

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

    def _write_text(self, name: str, text: str) -> None:
        temporary = self._folder / f"{name}.tmp"
        write_synced(temporary, text.encode("ascii"))
        temporary.replace(self._folder / name)


def write_synced(path: Path, data: bytes) -> None:
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
