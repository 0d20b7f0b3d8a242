"""The embedded store: DuckDB for the open hour, Parquet for closed ones, one process."""

import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb
import numpy.typing as npt

from flopwatch_collector.model import BatchId, Columns, RawRows
from flopwatch_collector.store import checking, closing, columns, opening, retention, salvaging, saving
from flopwatch_collector.store.closing import NotWhole
from flopwatch_collector.store.database import Database
from flopwatch_collector.store.ground import Clock, Ground
from flopwatch_collector.store.hot import HotFile
from flopwatch_collector.store.inbox import Inbox, Shared, Waiting
from flopwatch_collector.store.layout import Folder, size
from flopwatch_collector.store.port import (
    CAPABILITIES,
    Capability,
    HostKind,
    Problem,
    Progress,
    RollupKind,
    Saved,
    StoreSettings,
    StoreStats,
    Unavailable,
    WriteResult,
    quiet,
)
from flopwatch_collector.store.problems import Problems
from flopwatch_collector.store.published import Published
from flopwatch_collector.store.query import Questions
from flopwatch_collector.store.rollup import KINDS, MOST_CLOSED_FILES, Rollups
from flopwatch_collector.store.schema import TABLES
from flopwatch_collector.store.upkeep import Task, Upkeep
from flopwatch_collector.store.writer import Writer, Written

DISK_CHECK_SECONDS = 1.0


class EmbeddedStore:
    """The ``Store`` of one machine. Opening recovers what an interrupted process left.

    Raises:
        StoreLocked: another process holds the folder.
        ValueError: the folder was written in another format.
    """

    def __init__(self, settings: StoreSettings, clock: Clock = time.time) -> None:
        self._settings = settings
        self._folder = Folder(settings.folder)
        try:
            self._open(clock)
        except BaseException:
            self._folder.release()
            raise

    def _open(self, clock: Clock) -> None:
        settings, folder, problems = self._settings, self._folder, Problems()
        database = Database(folder.spill, settings.memory_limit, settings.statement_seconds)
        found = opening.recovered(folder, database, problems)
        catalogue = Published(opening.catalogue(folder, database, problems, found))
        self._ground = Ground(
            folder=folder, database=database, catalogue=catalogue, problems=problems, clock=clock
        )
        opened, self._written = self._found(found)
        self._rollups: dict[str, Rollups] = {
            kind: Rollups(kind=kind, folder=folder, database=database, problems=problems) for kind in KINDS
        }
        self._questions = Questions(self._ground)
        self._inbox = Inbox(settings.queue_batches, settings.flush_seconds)
        self._upkeep = Upkeep(problems)
        for number in found.hot[:-1]:
            self._close_later(number)
        self._writer = Writer(self._ground, self._inbox, self._written, opened, self._close_later)
        self._dropped_rows = dict.fromkeys(TABLES, 0)
        self._retaining = threading.Lock()
        self._disk_checked = -DISK_CHECK_SECONDS
        self._disk_full: str | None = None
        self._closed = False

    def _found(self, found: opening.Found) -> tuple[HotFile, Written]:
        """The file to write to and what is known of earlier writing; damaged open files are replaced first."""
        try:
            return opening.open_file(self._ground, found), opening.written(self._ground)
        except duckdb.Error:
            if not salvaging.salvage(self._ground, found.hot):
                raise
        return opening.open_file(self._ground, found), opening.written(self._ground)

    def _close_later(self, number: int) -> None:
        self._upkeep.ask(Task(name=f"closing hour {number}", run=lambda: closing.close(self._ground, number)))

    @property
    def capabilities(self) -> frozenset[Capability]:
        """All there are."""
        return CAPABILITIES

    @property
    def ground(self) -> Ground:
        """The files and the database over them, for work on raw rows as they lie."""
        return self._ground

    def submit(self, batch: BatchId, rows: RawRows) -> "Future[WriteResult]":
        """Queue a batch; the future is done when it is durable.

        Raises:
            Overloaded: the queue is full.
            Unavailable: nothing can be made durable.
            ValueError: a column is not of its table, or holds what cannot be kept.
        """
        self._require_disk()
        filled = _checked(rows)
        waiting = Waiting(batch=batch, rows=filled, count=sum(len(table["ts"]) for table in filled.values()))
        waiting.future.set_running_or_notify_cancel()
        self._inbox.put(waiting)
        return waiting.future

    def submit_group(
        self, batches: Sequence[BatchId], rows: RawRows, owners: Mapping[str, npt.NDArray[Any]]
    ) -> "list[Future[WriteResult]]":
        """Queue many batches whose rows lie in one set of tables: all or none are taken; a future a batch.

        ``owners`` gives, by table, the position in ``batches`` that each row belongs to. Checking and joining
        small tables costs more than their rows do: this does it once.

        Raises:
            Overloaded: the queue is full.
            Unavailable: nothing can be made durable.
            ValueError: a column is not of its table, or holds what cannot be kept.
        """
        self._require_disk()
        shared = Shared(rows=_checked(rows), owners=owners, batches=len(batches))
        waiting = [
            Waiting(batch=batch, rows={}, count=count, shared=shared, position=position)
            for position, (batch, count) in enumerate(zip(batches, shared.counts().tolist(), strict=True))
        ]
        for each in waiting:
            each.future.set_running_or_notify_cancel()
        self._inbox.put(*waiting)
        return [each.future for each in waiting]

    def _require_disk(self) -> None:
        now = time.monotonic()
        if now - self._disk_checked >= DISK_CHECK_SECONDS:
            usage = shutil.disk_usage(self._folder.root)
            full = usage.free < usage.total * self._settings.free_disk_ratio
            self._disk_full = (
                f"{self._folder.root}: {usage.free / usage.total:.1%} of the disk is free" if full else None
            )
            self._disk_checked = now
        if self._disk_full:
            raise Unavailable(
                f"{self._disk_full}; below {self._settings.free_disk_ratio:.0%} nothing is accepted"
            )

    def latest_gpus(self) -> Columns:
        """The newest sample of every GPU, from memory."""
        return self._written.latest.table()

    def gpu_samples(
        self, start: float, end: float, columns: tuple[str, ...], *, gpus: Iterable[int] | None = None
    ) -> Columns:
        """Raw samples sorted by (gpu, ts), with ``ts``, ``gpu`` and the asked columns of ``GPU_COLUMNS``.

        Raises:
            ValueError: an asked column is not of ``GPU_COLUMNS``.
        """
        return self._questions.gpu_samples(start, end, columns, gpus)

    def job_series(
        self, start: float, end: float, step_seconds: float, *, jobs: Iterable[int] | None = None
    ) -> Columns:
        """Raw samples of jobs in buckets that begin at multiples of ``step_seconds``, sorted by (job, ts)."""
        return self._questions.job_series(start, end, step_seconds, jobs)

    def gpu_series(
        self, start: float, end: float, step_seconds: float, columns: tuple[str, ...], gpus: Iterable[int]
    ) -> Columns:
        """Means of raw samples of GPUs in buckets that begin at multiples of ``step_seconds``, by (gpu, ts).

        Raises:
            ValueError: an asked column is not of ``GPU_COLUMNS``.
        """
        return self._questions.gpu_series(start, end, step_seconds, (columns, tuple(gpus)))

    def port_samples(self, start: float, end: float, nodes: Iterable[int]) -> Columns:
        """Raw samples of nodes' network ports, sorted by (node, port, ts)."""
        return self._questions.port_samples(start, end, tuple(nodes))

    def host_samples(self, kind: HostKind, start: float, end: float, numbers: Iterable[int]) -> Columns:
        """Raw host samples of nodes or of jobs, sorted by (node or job, ts)."""
        return self._questions.host_samples(kind, start, end, tuple(numbers))

    def node_series(self, start: float, end: float, step_seconds: float, nodes: Iterable[int]) -> Columns:
        """Throughput of nodes in buckets that begin at multiples of ``step_seconds``, sorted by (node, ts)."""
        return self._questions.node_series(start, end, step_seconds, nodes)

    def steps(self, start: float, end: float, *, jobs: Iterable[int] | None = None) -> Columns:
        """Step rows that ended in the interval, sorted by (job, ts)."""
        return self._questions.steps(start, end, jobs)

    def phases(self, start: float, end: float, *, jobs: Iterable[int] | None = None) -> Columns:
        """Phases that overlap the interval, sorted by (job, ts); of one phase sent twice the one with an end."""
        return self._questions.phases(start, end, jobs)

    def events(self, start: float, end: float, kinds: Iterable[str] | None = None) -> Columns:
        """Events in the interval, sorted by ts."""
        return self._questions.events(start, end, kinds)

    def put_windows(self, kind: RollupKind, windows: Iterable[float], rows: Columns) -> None:
        """Replace all rows of these windows in one step, durably.

        Raises:
            ValueError: a row is of no named window, or a column holds neither numbers nor strings.
            Unavailable: they cannot be made durable.
        """
        self._require_disk()
        rollup = self._rollups[kind]
        try:
            rollup.put(windows, rows)
        except (duckdb.Error, OSError, NotWhole) as problem:
            raise Unavailable(f"{kind} windows cannot be written: {problem}") from problem
        self._tidy_later(rollup, MOST_CLOSED_FILES)

    def _tidy_later(self, rollup: Rollups, most_closed: int) -> None:
        """Merge days (of hourly and daily kinds: months) with many files, and remove superseded files."""
        period = _month if rollup.kind in {"job1h", "ledger1d"} else _day
        for start, end in rollup.crowded(period, most_closed):
            self._merge_later(rollup, start, end)
        if rollup.state.peek().dead_files():
            self._upkeep.ask(
                Task(name=f"removing superseded {rollup.kind} files", run=rollup.drop_superseded)
            )

    def _merge_later(self, rollup: Rollups, start: float, end: float) -> None:
        name = f"merging {rollup.kind} windows from {datetime.fromtimestamp(start, timezone.utc):%Y-%m-%d}"
        self._upkeep.ask(Task(name=name, run=lambda: rollup.merge(start, end)))

    def windows(
        self, kind: RollupKind, start: float, end: float, *, jobs: Iterable[int] | None = None
    ) -> Columns:
        """Rollup rows whose window starts in the interval, sorted by ts; at least the column ``ts``."""
        return self._rollups[kind].rows(start, end, jobs)

    def done_windows(self, kind: RollupKind, start: float, end: float) -> frozenset[float]:
        """Starts of the windows that have been put."""
        return self._rollups[kind].done(start, end)

    def first_sample_seconds(self) -> float | None:
        """Event time of the oldest raw GPU sample or rollup window."""
        catalogue, oldest = self._ground.catalogue.peek(), self._written.oldest
        times = [file.start for file in catalogue.files.get("gpu", ())]
        times += [oldest[alias] for alias in catalogue.hot if alias in oldest]
        times += [file.start for rollup in self._rollups.values() for file in rollup.state.peek().files]
        return min(times) / 1e6 if times else None

    def retain(self, now: float) -> int:
        """Drop what is older than the retention settings and merge closed days; returns bytes freed by dropping."""
        with self._retaining:
            gone = retention.expired_raw(self._ground, now, self._settings)
            freed = retention.drop_raw(self._ground, gone)
            for file in gone:
                if file.table in self._dropped_rows:
                    self._dropped_rows[file.table] += file.rows
            freed += retention.drop_rollups(self._rollups.values(), now, self._settings)
        for rollup in self._rollups.values():
            self._tidy_later(rollup, 1)
        return freed

    def stats(self) -> StoreStats:
        """Sizes and health."""
        rows = {name: self._written.rows.get(name, 0) - self._dropped_rows[name] for name in TABLES}
        for kind, rollup in self._rollups.items():
            rows[kind] = sum(file.rows for file in rollup.state.peek().files)
        return StoreStats(
            rows=rows,
            bytes_on_disk=size(self._folder.root),
            pending_batches=len(self._inbox),
            commits=self._written.commits,
            last_commit_seconds=self._written.last_commit_seconds,
            reopened=self._ground.database.reopened,
            problems=self._ground.problems.texts(),
            batches_missing=checking.all_missing(self._folder),
        )

    def check(self, progress: Progress = quiet) -> tuple[Problem, ...]:
        """Read everything; what is unreadable, not whole or was set aside, none when all is well."""
        return checking.problems(self._ground, self._rollups.values(), progress)

    def compact(self, progress: Progress = quiet) -> int:
        """Merge small files and drop superseded rows now; returns bytes freed."""
        before = size(self._folder.root)
        for at, rollup in enumerate(self._rollups.values()):
            progress(f"merging {rollup.kind}", at / len(self._rollups))
            self._tidy_later(rollup, 1)
            self._upkeep.wait()
        return max(0, before - size(self._folder.root))

    def backup(
        self, destination: Path, beside: Callable[[Path], None] | None = None, progress: Progress = quiet
    ) -> Saved:
        """Copy everything as of one moment into a new folder, while writing and reading go on.

        Raises:
            FileExistsError: the destination is there and not empty.
            Unavailable: it cannot be written.
        """
        sources = saving.Sources(ground=self._ground, rollups=self._rollups)
        return saving.backup(sources, destination, beside, progress)

    def close_hour(self) -> None:
        """Close the open hour before its time, so that all rows are in closed ones. Nobody may write meanwhile.

        Raises:
            Unavailable: it cannot be closed.
        """
        try:
            self._writer.rotate_if_filled()
        except (duckdb.Error, OSError) as problem:
            raise Unavailable(f"the open hour cannot be closed: {problem}") from problem
        self._upkeep.wait()
        if len(self._ground.catalogue.peek().hot) > 1:
            raise Unavailable(f"the open hour cannot be closed: {self._ground.problems.texts()[-1]}")

    def settle(self) -> None:
        """Return when hours are closed and files merged as far as is due."""
        self._upkeep.wait()

    def close(self) -> None:
        """Write what waits, and let the folder go."""
        if self._closed:
            return
        self._closed = True
        self._inbox.close()
        self._writer.join()
        self._upkeep.close()
        self._ground.database.close()
        self._folder.release()


def _checked(rows: RawRows) -> dict[str, Columns]:
    """The tables that have rows, as they are inserted."""
    tables = {name: columns.checked(table, getattr(rows, name)) for name, table in TABLES.items()}
    return {name: table for name, table in tables.items() if table and len(table["ts"])}


def _day(seconds: float) -> tuple[float, float]:
    start = seconds // 86_400 * 86_400
    return start, start + 86_400


def _month(seconds: float) -> tuple[float, float]:
    start = datetime.fromtimestamp(seconds, timezone.utc).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    following = (start + timedelta(days=32)).replace(day=1)
    return start.timestamp(), following.timestamp()
