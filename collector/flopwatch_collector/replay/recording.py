"""Recorded batches: one batch a line as the spool holds it, plain or gzip, in any order, with bad lines among them."""

import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

from flopwatch.wire import Batch
from flopwatch_collector.ingest.decode import MalformedBatch, decode
from flopwatch_collector.ingest.place import SKEW_SECONDS

STDIN = "-"
FOLDER_PATTERNS = ("*.json.gz", "*.jsonl.gz", "*.json", "*.jsonl", "*.ndjson")
SHOWN_PROBLEMS = 20
GZIP_MAGIC = b"\x1f\x8b"
PROGRESS_LINES = 20_000
Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """A line that was set aside, or an input that broke off."""

    source: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """Where a batch lies in the scratch copy; the order is that of time."""

    time_seconds: float
    """When it was sampled, on the recorder's clock."""
    node: str
    spool: str
    sequence: int
    offset: int
    length: int
    sent_at_seconds: float | None = field(default=None, compare=False)
    received_at_seconds: float | None = field(default=None, compare=False)


class _Envelope(msgspec.Struct):
    """What a recorder may write beside a batch's own keys."""

    sent_at_seconds: float | None = None
    received_at_seconds: float | None = None


_ENVELOPE = msgspec.json.Decoder(_Envelope)


@dataclass(slots=True)
class Recording:
    """All batches of the inputs, indexed."""

    copy: Path
    """The lines, plain, as they were read."""
    entries: list[Entry] = field(default_factory=list)
    lines: int = 0
    set_aside: int = 0
    problems: list[Problem] = field(default_factory=list)
    """The first of them."""
    simulated: bool = False
    """Whether any batch says that it is simulated."""
    end_seconds: float | None = None
    """The newest time that any batch tells of."""

    def ordered(self) -> list[Entry]:
        """The batches in order of time, however they lay in the inputs."""
        return sorted(self.entries)

    def batches(self, entries: Iterable[Entry]) -> Iterator[Batch]:
        """The batches behind entries, read one by one."""
        with self.copy.open("rb") as file:
            for entry in entries:
                file.seek(entry.offset)
                yield decode(file.read(entry.length))

    def note(self, source: str, line: int, reason: str) -> None:
        """Count what was set aside; the first ones are kept for people."""
        self.set_aside += 1
        if len(self.problems) < SHOWN_PROBLEMS:
            self.problems.append(Problem(source=source, line=line, reason=reason))


def read(inputs: Iterable[str], stdin: BinaryIO, copy: Path, progress: Progress) -> Recording:
    """Index all batches of the inputs: files, folders of a spool, or ``-`` for ``stdin``.

    Raises:
        OSError: an input cannot be read.
    """
    recording = Recording(copy=copy)
    with copy.open("wb") as out:
        for name in inputs:
            if name == STDIN:
                _index(recording, out, ("stdin", stdin), progress)
                continue
            for path in _files(Path(name)):
                with path.open("rb") as file:
                    _index(recording, out, (str(path), file), progress)
    return recording


def _files(path: Path) -> list[Path]:
    """The file itself, or all files of a spool's folder."""
    if not path.is_dir():
        return [path]
    return sorted({file for pattern in FOLDER_PATTERNS for file in path.glob(pattern)})


def _index(recording: Recording, out: BinaryIO, source: tuple[str, BinaryIO], progress: Progress) -> None:
    name, file = source
    line_number = 0
    try:
        for line in _plain(file):
            line_number += 1
            if line.strip():
                recording.lines += 1
                _take(recording, out, line, (name, line_number))
            if line_number % PROGRESS_LINES == 0:
                progress(f"{name}: {line_number:,} lines read")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        recording.note(name, line_number + 1, f"the input breaks off: {error}")


def _plain(file: BinaryIO) -> BinaryIO:
    """The input unpacked, when it is packed."""
    buffered = file if isinstance(file, io.BufferedReader) else io.BufferedReader(file)  # type: ignore[type-var] # any raw reader will do
    packed = buffered.peek(2)[:2] == GZIP_MAGIC
    return gzip.GzipFile(fileobj=buffered) if packed else buffered  # type: ignore[return-value] # both give lines


def _take(recording: Recording, out: BinaryIO, line: bytes, where: tuple[str, int]) -> None:
    try:
        batch = decode(line)
        envelope = _envelope(line)
    except MalformedBatch as error:
        recording.note(*where, str(error))
        return
    told = (envelope.sent_at_seconds, envelope.received_at_seconds)
    place = (out.tell(), len(line))
    recording.entries.append(
        Entry(
            batch.sampled_at_seconds + _offset(envelope),
            batch.node,
            batch.spool,
            batch.sequence,
            *place,
            *told,
        )
    )
    out.write(line)
    recording.simulated = recording.simulated or batch.simulated
    newest = newest_seconds(batch) + _offset(envelope)
    recording.end_seconds = newest if recording.end_seconds is None else max(newest, recording.end_seconds)


def _envelope(line: bytes) -> _Envelope:
    try:
        return _ENVELOPE.decode(line)
    except msgspec.DecodeError:
        return _Envelope()


def _offset(envelope: _Envelope) -> float:
    """What the recorder's clock was ahead of the node's when the batch was sent; 0 where it is not known."""
    if envelope.sent_at_seconds is None or envelope.received_at_seconds is None:
        return 0.0
    offset = envelope.received_at_seconds - envelope.sent_at_seconds
    return offset if abs(offset) > SKEW_SECONDS else 0.0


def newest_seconds(batch: Batch) -> float:
    """The newest time that a batch tells of as past; what it announces for later does not count."""
    times = [
        *(sample.time_seconds for sample in batch.gpu_samples[-1:]),
        *(step.end_time_seconds for step in batch.steps),
        *(phase.end_seconds for phase in batch.phases),
        *(mark.end_seconds for mark in batch.sessions),
        *(job.end_time_seconds for job in batch.jobs),
        *(lease.end_seconds for lease in batch.leases),
        *(event.time_seconds for event in batch.events),
    ]
    limit = batch.sampled_at_seconds + batch.interval_seconds
    return max([batch.sampled_at_seconds, *(time for time in times if time is not None and time <= limit)])
