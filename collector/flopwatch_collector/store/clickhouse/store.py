"""The ``Store`` on ClickHouse: stateless but for a queue and the newest samples; several collectors may use one."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from flopwatch_collector.model import GPU_COLUMNS, BatchId, Columns, RawRows, empty
from flopwatch_collector.store import columns
from flopwatch_collector.store.clickhouse import tables
from flopwatch_collector.store.clickhouse.arrivals import CLEAN_SECONDS, Arrivals
from flopwatch_collector.store.clickhouse.http import Client, StatementFailed, literal
from flopwatch_collector.store.clickhouse.questions import Questions, chosen, instant
from flopwatch_collector.store.clickhouse.rollups import Rollups
from flopwatch_collector.store.clickhouse.tables import FLUSH, LONG_KINDS, WINDOWS, Layout, name
from flopwatch_collector.store.clickhouse.writer import Places, Writer, Written
from flopwatch_collector.store.inbox import Inbox, Shared, Waiting
from flopwatch_collector.store.latest import Latest
from flopwatch_collector.store.port import (
    CAPABILITIES,
    ROLLUP_KINDS,
    Capability,
    HostKind,
    NotSupported,
    Problem,
    Progress,
    RollupKind,
    Saved,
    StoreStats,
    Unavailable,
    WriteResult,
    quiet,
)
from flopwatch_collector.store.problems import Problems
from flopwatch_collector.store.schema import TABLES

OLDEST_SECONDS = 300.0
WARM_SECONDS = 86_400.0
DAY = 86_400.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ClickHouseSettings:
    """How long what is kept, and how inserts are grouped."""

    layout: Layout
    raw_days: float = 14.0
    rollup_days: float = 90.0
    hourly_days: float = 730.0
    flush_seconds: float = 1.0
    queue_batches: int = 20_000
    statement_seconds: float = 60.0


class ClickHouseStore:
    """Makes its tables where they are not there yet.

    Raises:
        Unavailable: ClickHouse or the control database cannot be reached.
    """

    def __init__(
        self,
        settings: ClickHouseSettings,
        client: Client,
        arrivals: Arrivals,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._client = client
        self._arrivals = arrivals
        self._problems = Problems()
        _prepare(client, settings.layout)
        seconds = settings.statement_seconds
        self._questions = Questions(client, arrivals, seconds)
        self._rollups = Rollups(client, arrivals, settings.layout, seconds)
        self._mark = arrivals.snapshot().settled
        self._refreshing = threading.Lock()
        self._written = Written(latest=Latest(_warm(self._questions)))
        self._oldest_read = -OLDEST_SECONDS
        self._inbox = Inbox(settings.queue_batches, settings.flush_seconds)
        places = Places(client=client, arrivals=arrivals, problems=self._problems, clock=clock)
        self._writer = Writer(places, self._inbox, self._written)
        self._closed = False

    @property
    def capabilities(self) -> frozenset[Capability]:
        """All but backups, which ClickHouse makes itself."""
        return CAPABILITIES - {"backup"}

    def submit(self, batch: BatchId, rows: RawRows) -> "Future[WriteResult]":
        """Queue a batch; the future is done when it is durable.

        Raises:
            Overloaded: the queue is full.
            Unavailable: the store is closed.
            ValueError: a column is not of its table, or holds what cannot be kept.
        """
        filled = _checked(rows)
        waiting = Waiting(batch=batch, rows=filled, count=sum(len(table["ts"]) for table in filled.values()))
        waiting.future.set_running_or_notify_cancel()
        self._inbox.put(waiting)
        return waiting.future

    def submit_group(
        self, batches: Sequence[BatchId], rows: RawRows, owners: Mapping[str, npt.NDArray[Any]]
    ) -> "list[Future[WriteResult]]":
        """Queue many batches whose rows lie in one set of tables; a future a batch.

        ``owners`` gives, by table, the position in ``batches`` that each row belongs to.

        Raises:
            Overloaded: the queue is full.
            Unavailable: the store is closed.
            ValueError: a column is not of its table, or holds what cannot be kept.
        """
        shared = Shared(rows=_checked(rows), owners=owners, batches=len(batches))
        waiting = [
            Waiting(batch=batch, rows={}, count=count, shared=shared, position=position)
            for position, (batch, count) in enumerate(zip(batches, shared.counts().tolist(), strict=True))
        ]
        for each in waiting:
            each.future.set_running_or_notify_cancel()
        self._inbox.put(*waiting)
        return [each.future for each in waiting]

    def latest_gpus(self) -> Columns:
        """The newest sample of every GPU, from memory; of what others wrote, as of the last :meth:`refresh`."""
        return self._written.latest.table()

    def refresh(self) -> None:
        """Take over the newest samples that other collectors wrote since the last time.

        Raises:
            Unavailable: ClickHouse or the control database cannot be reached.
            TooSlow: the question took too long.
        """
        with self._refreshing:
            settled = self._arrivals.snapshot().settled
            self._written.latest.update(self._questions.latest(self._mark, "true"))
            self._mark = settled

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
        return self._questions.node_series(start, end, step_seconds, tuple(nodes))

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
        self._rollups.put(kind, windows, rows)

    def windows(
        self, kind: RollupKind, start: float, end: float, *, jobs: Iterable[int] | None = None
    ) -> Columns:
        """Rollup rows whose window starts in the interval, sorted by ts; at least the column ``ts``."""
        return self._rollups.rows(kind, start, end, jobs)

    def done_windows(self, kind: RollupKind, start: float, end: float) -> frozenset[float]:
        """Starts of the windows that have been put."""
        return self._rollups.done(kind, start, end)

    def first_sample_seconds(self) -> float | None:
        """Event time of the oldest raw GPU sample or rollup window; what others wrote counts within minutes."""
        if time.monotonic() - self._oldest_read >= OLDEST_SECONDS or self._written.oldest_seconds is None:
            found = self._questions.oldest_sample(1e10)
            own = self._written.oldest_seconds
            self._written.oldest_seconds = min((t for t in (found, own) if t is not None), default=None)
            self._oldest_read = time.monotonic()
        times = (self._written.oldest_seconds, self._rollups.oldest())
        return min((t for t in times if t is not None), default=None)

    def retain(self, now: float) -> int:
        """Drop what is older than the retention settings, and what never counted; returns bytes freed by dropping."""
        settings = self._settings
        freed = sum(self._drop_days(each, now - settings.raw_days * DAY) for each in TABLES)
        for kind in ROLLUP_KINDS:
            days = settings.hourly_days if kind in LONG_KINDS else settings.rollup_days
            self._rollups.drop(kind, now - days * DAY)
        self._arrivals.forget(now - settings.raw_days * DAY)
        self._written.oldest_seconds, self._oldest_read = None, -OLDEST_SECONDS
        self._tidy()
        return freed

    def _drop_days(self, table: str, before: float) -> int:
        """Drop whole days of a raw table that end before a time; bytes on this server."""
        stored = self._settings.layout.stored(table)
        found = self._client.ask(
            "SELECT partition, toInt64(sum(bytes_on_disk)) AS bytes FROM system.parts WHERE active "
            f"AND database = currentDatabase() AND table = {literal(stored)} GROUP BY partition"
        )
        freed = 0
        for day, size in zip(found.get("partition", ()), found.get("bytes", ()), strict=True):
            end = datetime.fromisoformat(day).replace(tzinfo=timezone.utc) + timedelta(days=1)
            if end.timestamp() <= before:
                self._client.run(
                    f"ALTER TABLE {name(stored)}{self._settings.layout.everywhere} DROP PARTITION {literal(day)}"
                )
                freed += int(size)
        return freed

    def _tidy(self, older_than_seconds: float = CLEAN_SECONDS) -> None:
        """Remove rows of inserts that never counted and windows that were put again."""
        layout, gone = self._settings.layout, self._arrivals.to_clean(older_than_seconds)
        if gone:
            listed = ", ".join(map(str, gone))
            for table in TABLES:
                self._client.run(
                    f"ALTER TABLE {name(layout.stored(table))}{layout.everywhere} DELETE WHERE {FLUSH} IN ({listed})",
                    {"mutations_sync": "2"},
                )
            self._arrivals.cleaned(gone)
        self._rollups.drop_superseded()
        for kind in ROLLUP_KINDS:
            self._rollups.drop_unfinished(kind)

    def stats(self) -> StoreStats:
        """Sizes and health; bytes are those of this server."""
        counts = " UNION ALL ".join(
            f"SELECT {literal(each)} AS name, toInt64(count()) AS amount FROM {name(each)}"
            for each in (*TABLES, *ROLLUP_KINDS)
        )
        size = (
            "SELECT '' AS name, toInt64(sum(bytes_on_disk)) AS amount FROM system.parts "
            "WHERE active AND database = currentDatabase()"
        )
        found = self._client.ask(f"{counts} UNION ALL {size}", self._settings.statement_seconds)
        amounts = {each: int(amount) for each, amount in zip(found["name"], found["amount"], strict=True)}
        return StoreStats(
            bytes_on_disk=amounts.pop("", 0),
            rows=amounts,
            pending_batches=len(self._inbox),
            commits=self._written.commits,
            last_commit_seconds=self._written.last_commit_seconds,
            reopened=0,
            problems=self._problems.texts(),
        )

    def check(self, progress: Progress = quiet) -> tuple[Problem, ...]:
        """Have the server verify every part of every table; what is damaged, none when all is well."""
        layout, found = self._settings.layout, []
        names = [*(layout.stored(each) for each in TABLES), *ROLLUP_KINDS, WINDOWS]
        for at, table in enumerate(names):
            progress(table, at / len(names))
            answer = self._client.ask(
                f"CHECK TABLE {name(table)} SETTINGS check_query_single_value_result = 1"
            )
            if not answer or not bool(next(iter(answer.values()))[0]):
                found.append(Problem(code="unreadable", text=f"the table {table} has damaged parts"))
        progress("done", 1.0)
        return tuple(found)

    def compact(self, progress: Progress = quiet) -> int:
        """Remove what was superseded or never counted now; bytes freed on this server, as far as merges are done."""
        before = self.stats().bytes_on_disk
        progress("superseded windows and abandoned inserts", 0.0)
        self._tidy()
        progress("done", 1.0)
        return max(0, before - self.stats().bytes_on_disk)

    def backup(
        self,
        destination: Path,
        beside: Callable[[Path], None] | None = None,  # noqa: ARG002 - the port's signature
        progress: Progress = quiet,  # noqa: ARG002
    ) -> Saved:
        """Not here.

        Raises:
            NotSupported: always; the message names ClickHouse's own way.
        """
        raise NotSupported(
            f"a ClickHouse store is backed up by its server: BACKUP DATABASE {self._settings.layout.database} TO …; "
            f"nothing was written to {destination}"
        )

    def settle(self) -> None:
        """Return at once: merges are the server's own affair."""

    def close(self) -> None:
        """Write what waits, and let the connections go."""
        if self._closed:
            return
        self._closed = True
        self._inbox.close()
        self._writer.join()
        self._client.close()
        self._arrivals.close()


def _checked(rows: RawRows) -> dict[str, Columns]:
    """The tables that have rows, each column as it is inserted."""
    checked = {each: columns.checked(table, getattr(rows, each)) for each, table in TABLES.items()}
    return {each: table for each, table in checked.items() if table and len(table["ts"])}


def _prepare(client: Client, layout: Layout) -> None:
    """Make what is not there yet.

    Raises:
        Unavailable: the server cannot be reached or refuses; the message says which.
    """
    try:
        for statement in tables.statements(layout):
            client.run(statement, {"database": "default"})
        for table in TABLES:
            _set_ttl(client, layout, table)
    except StatementFailed as problem:
        raise Unavailable(f"the tables in ClickHouse cannot be made: {problem}") from problem


def _set_ttl(client: Client, layout: Layout, table: str) -> None:
    """Have a table that was made with other settings keep rows as long as the present ones say."""
    stored = layout.stored(table)
    found = client.ask(
        f"SELECT engine_full FROM system.tables WHERE database = currentDatabase() AND name = {literal(stored)}"
    )
    made = str(found["engine_full"][0]) if found else ""
    wanted = "".join(tables.ttl(layout))
    if wanted and wanted not in made:
        client.run(
            f"ALTER TABLE {name(stored)}{layout.everywhere} MODIFY {wanted}",
            {"materialize_ttl_after_modify": "0"},
        )
    elif not wanted and " TTL " in made:
        client.run(f"ALTER TABLE {name(stored)}{layout.everywhere} REMOVE TTL")


def _warm(questions: Questions) -> Columns:
    """The newest sample of every GPU: first of the newest day, then of GPUs that are silent for longer."""
    newest = questions.newest_sample()
    if newest is None:
        return empty(GPU_COLUMNS)
    day = instant(newest - WARM_SECONDS)
    recent = questions.latest(0, f"ts >= {day}")
    known = np.unique(recent["gpu"]).astype(np.int64).tolist()
    silent = questions.latest(0, f"ts < {day} AND NOT ({chosen('gpu', known)})")
    return {column: np.concatenate((recent[column], silent[column])) for column in GPU_COLUMNS}
