"""Follows one log file: bytes to the reader, and which of its rows belong to the run that is alive.

What stood in the file before the job began is history: it is read, since shape and launches are numbered from the
file's beginning and so are the same on every node, but its rows are not sent. What was sent before the agent
was restarted is read again and not sent again. Rows that were written before anyone looked and carry no time of
their own are dated backwards from the file's last change.
"""

import dataclasses
from dataclasses import dataclass
from typing import Protocol

from flopwatch_agent.endpoint_stream import EndpointStream
from flopwatch_agent.log_file import LogFile
from flopwatch_agent.trainers.rows import Output, Row

CHUNK_BYTES = 256 << 10
HISTORY_SLACK_SECONDS = 2.0
MAX_BACKLOG_ROWS = 50_000
SETTLED_SECONDS = 5.0
"""Longer than a reader waits for the rest of a block."""
UNSTAMPED = frozenset({"arrival", "none"})
NOTHING = Output()


class Reader(Protocol):
    """Makes rows of a log's bytes."""

    def feed(self, data: bytes, arrived_at_seconds: float | None) -> None:
        """Take the next bytes; none, with the time, when nothing came."""

    def finish(self) -> None:
        """Take the end of the file."""

    def take(self) -> Output:
        """What became known since the last call."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """How far a file was read and sent for a job: kept over a restart of the agent, by device and inode."""

    job: str
    source_id: str
    offset: int
    history_end: int


@dataclass(slots=True)
class Follower:
    """One file that is followed for one job."""

    file: LogFile | EndpointStream
    job: str
    reader: Reader
    run_start_seconds: float
    history_end: int = 0
    """Up to here the file was there before the run; 0 for a file that the run began."""
    sent_until: int = 0
    """Up to here rows were sent by an agent before this one."""
    source_id: str | None = None
    is_metrics: bool = False
    """A file of metrics beside the log."""
    has_times: bool = False
    """Whether a row with a step time was seen."""
    wanted_seconds: float = 0.0
    """When a look last found that the job writes it."""
    rows_seen: int = 0
    problem: str | None = None
    last_read_seconds: float | None = None
    truncations: int = 0
    backlog: list[Row] = dataclasses.field(default_factory=list)
    changed_seconds: float = 0.0
    last_poll_seconds: float | None = None
    seen_bytes: int = 0
    """The file's size as of the last poll."""
    tells_times: bool = False
    """Whether the last rows carry times of their own: then it does not matter when they are read."""
    arrivals: tuple[float | None, float | None] = (None, None)
    """When the last bytes came, and those before them: a reader may hold rows back."""
    settled: bool = False
    """Nothing came for a while and the reader was told so: there is nothing to do until bytes come."""

    def poll(self, now: float, budget: int) -> tuple[Output, int]:
        """What became known, and how many bytes were read; at most ``budget``.

        Raises:
            OSError: the file cannot be read any more.
        """
        status = self.file.status()
        self.seen_bytes = status.st_size
        if status.st_size < self.file.offset:
            self._restart()
        if self.settled and status.st_size == self.file.offset:
            self.last_poll_seconds = now
            return NOTHING, 0
        if self.source_id is None:
            self.source_id = self.file.source_id()
            if self.source_id is None:
                return Output(), 0
        parts: list[Output] = []
        taken = 0
        while taken < budget and (
            data := self.file.read(min(self._until_border(), CHUNK_BYTES, budget - taken))
        ):
            taken += len(data)
            self.arrivals = (self._arrival(status.st_mtime, now), self.arrivals[0])
            self.reader.feed(data, self.arrivals[0])
            parts.append(self._kept(self.reader.take()))
        if taken:
            self.last_read_seconds, self.settled = now, False
        else:
            self.reader.feed(b"", now)
            self.settled = now - (self.last_read_seconds or now) > SETTLED_SECONDS
            parts.append(self._kept(self.reader.take()))
        if self.backlog and self.file.offset >= self.file.size_at_open:
            parts.append(Output(steps=tuple(self._dated(min(status.st_mtime, now)))))
        self.last_poll_seconds = now
        return joined(parts), taken

    def finish(self, now: float) -> Output:
        """The rest, when the job has ended and nothing more will come."""
        self.reader.finish()
        last = self._kept(self.reader.take())
        return joined([last, Output(steps=tuple(self._dated(min(self.file.status().st_mtime, now))))])

    def position(self) -> Position | None:
        """What a restarted agent needs to go on here."""
        if self.source_id is None or self.backlog:
            return None
        return Position(
            job=self.job, source_id=self.source_id, offset=self.file.offset, history_end=self.history_end
        )

    def lag_bytes(self) -> int:
        """Bytes that were written and not read, as of the last poll."""
        return max(0, self.seen_bytes - self.file.offset)

    def _until_border(self) -> int:
        """Bytes to the next place where the rule for rows changes."""
        borders = (self.sent_until, self.history_end, self.file.size_at_open)
        return min(
            (border - self.file.offset for border in borders if border > self.file.offset),
            default=CHUNK_BYTES,
        )

    def _restart(self) -> None:
        """The file was truncated: what follows is new, by the same run."""
        self.truncations += 1
        self.file.offset = self.file.size_at_open = self.history_end = self.sent_until = 0
        self.source_id = None
        self.reader.feed(b"\n", None)

    def _arrival(self, modified: float, now: float) -> float | None:
        """When the bytes came: unknown for what stood there before, else the file's last change, at most a poll ago."""
        if self.file.offset <= self.file.size_at_open or self.last_poll_seconds is None:
            return None
        return modified if self.last_poll_seconds <= modified <= now else now

    def _kept(self, output: Output) -> Output:
        """The output without what is history or was sent; its rows are put aside for dating."""
        offset = self.file.offset
        if output.steps:
            self.has_times = self.has_times or any(row.seconds is not None for row in output.steps)
            self.tells_times = all(self._is_stamped(row) for row in output.steps)
        if offset <= self.sent_until:
            self.rows_seen += len(output.steps)
            return Output(runs=output.runs, family=output.family)
        if offset <= self.history_end:
            steps = tuple(row for row in output.steps if self._is_of_this_run(row))
            output = dataclasses.replace(output, steps=steps, phases=(), findings=())
        self.rows_seen += len(output.steps)
        self.backlog.extend(output.steps)
        del self.backlog[:-MAX_BACKLOG_ROWS]
        return dataclasses.replace(output, steps=())

    def _is_stamped(self, row: Row) -> bool:
        return row.basis not in UNSTAMPED and row.end_time_seconds not in (None, *self.arrivals)

    def _is_of_this_run(self, row: Row) -> bool:
        time = row.end_time_seconds
        return time is not None and time >= self.run_start_seconds - HISTORY_SLACK_SECONDS

    def _dated(self, end: float) -> list[Row]:
        """The backlog with times: a row without one ended when the next began, the last when the file last changed.

        A reader may hold rows back until it knows the format, so that undated ones may also come later.
        """
        rows, self.backlog = self.backlog, []
        dated = []
        for row in reversed(rows):
            if row.end_time_seconds is None:
                row = dataclasses.replace(row, end_time_seconds=max(end, self.run_start_seconds))  # noqa: PLW2901
            dated.append(row)
            end = (row.end_time_seconds or end) - (row.seconds or 0.0)
        dated.reverse()
        return dated


def joined(parts: list[Output]) -> Output:
    """Several outputs as one, in order."""
    return Output(
        steps=tuple(row for part in parts for row in part.steps),
        phases=tuple(mark for part in parts for mark in part.phases),
        runs=tuple(run for part in parts for run in part.runs),
        sessions=tuple(item for part in parts for item in part.sessions),
        findings=tuple(item for part in parts for item in part.findings),
        family=next((part.family for part in reversed(parts) if part.family), None),
    )
