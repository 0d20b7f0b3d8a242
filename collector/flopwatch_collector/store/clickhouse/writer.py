"""The one thread that inserts a collector's raw rows: a flush a group of batches, exactly once."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from flopwatch_collector.model import GPU_COLUMNS, NO_JOB, BatchId, Columns
from flopwatch_collector.store.clickhouse.arrivals import Arrivals, Begun
from flopwatch_collector.store.clickhouse.http import Client, StatementFailed
from flopwatch_collector.store.clickhouse.tables import FLUSH, name, raw_types
from flopwatch_collector.store.columns import concatenated
from flopwatch_collector.store.inbox import Inbox, Shared, Waiting
from flopwatch_collector.store.latest import Latest
from flopwatch_collector.store.port import Overloaded, TooSlow, Unavailable, WriteResult
from flopwatch_collector.store.problems import Problems
from flopwatch_collector.store.schema import TABLES

COMMIT_ATTEMPTS = 5
COMMIT_PAUSE_SECONDS = 1.0
BUSY_SECONDS = 5.0
_TYPES = {table.name: raw_types(table) for table in TABLES.values()}

log = logging.getLogger(__name__)


@dataclass(kw_only=True, slots=True)
class Written:
    """What this collector has written; the writer's to change, anyone's to read."""

    latest: Latest
    oldest_seconds: float | None = None
    commits: int = 0
    last_commit_seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Where rows and the record of arrivals go."""

    client: Client
    arrivals: Arrivals
    problems: Problems
    clock: Callable[[], float]
    pause: Callable[[float], object] = time.sleep


class Writer:
    """Inserts what waits in the inbox, group by group."""

    def __init__(self, places: Places, inbox: Inbox, written: Written) -> None:
        self._places = places
        self._inbox = inbox
        self._written = written
        self._thread = threading.Thread(target=self._run, name="flopwatch-clickhouse-writer", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Return when everything that waited is written or refused."""
        self._thread.join()

    def _run(self) -> None:
        group: list[Waiting] = []
        try:
            while group := self._inbox.take():
                self._write(group)
        finally:
            self._inbox.close()
            while group:
                _refuse(group, Unavailable("the writer of the store has stopped"))
                group = self._inbox.take()

    def _write(self, group: list[Waiting]) -> None:
        try:
            begun = self._places.arrivals.begin([waiting.batch for waiting in group])
        except Unavailable as problem:
            _refuse(group, problem)
            return
        fresh, others = _parted(group, begun)
        for waiting in others:
            _answer(waiting, begun)
        if begun.flush is not None:
            self._flush(begun.flush, fresh)

    def _flush(self, flush: int, fresh: dict[BatchId, list[Waiting]]) -> None:
        """Insert, then commit; whatever goes wrong leaves nothing that counts."""
        first = [waiting[0] for waiting in fresh.values()]
        failure: Exception | None = None
        try:
            self._insert(flush, first)
        except (Unavailable, Overloaded) as problem:
            failure = problem
        except (StatementFailed, TooSlow) as problem:
            failure = Unavailable(str(problem))
        if failure is None:
            failure = self._commit(flush)
        else:
            self._abandon(flush)
        if failure is not None:
            self._places.problems.add(f"a flush of {len(first)} batches failed: {failure}")
            _refuse((waiting for each in fresh.values() for waiting in each), failure)
            return
        self._landed(first)
        for waiting in fresh.values():
            for at, one in enumerate(waiting):
                one.future.set_result(WriteResult(duplicate=at > 0))

    def _insert(self, flush: int, group: Sequence[Waiting]) -> None:
        for table, rows in joined(group).items():
            prepared = as_inserted(rows, flush)
            self._places.client.insert(name(table), prepared, _TYPES[table], f"{flush}-{table}")

    def _commit(self, flush: int) -> Exception | None:
        """None when the flush counts; its outcome is asked again until it is known, for some seconds."""
        problem: Exception | None = None
        for _ in range(COMMIT_ATTEMPTS):
            try:
                if self._places.arrivals.commit(flush):
                    return None
                return Unavailable("another collector took these batches over, this one was too slow")
            except Unavailable as error:
                problem = error
            self._places.pause(COMMIT_PAUSE_SECONDS)
        return problem

    def _abandon(self, flush: int) -> None:
        try:
            self._places.arrivals.abandon(flush)
        except Unavailable as problem:
            # It stays begun, which hides its rows as well; the next batch of the kind sets it aside.
            log.warning("flush %d could not be abandoned: %s", flush, problem)

    def _landed(self, group: Sequence[Waiting]) -> None:
        written = self._written
        samples = joined(group).get("gpu")
        if samples is not None:
            shown = {column: samples[column] for column in GPU_COLUMNS}
            shown["ts"] = samples["ts"].view(np.int64) / 1e6
            written.latest.update(shown)
            first = float(shown["ts"].min())
            known = written.oldest_seconds
            written.oldest_seconds = first if known is None else min(known, first)
        written.commits += 1
        written.last_commit_seconds = self._places.clock()


def joined(group: Sequence[Waiting]) -> dict[str, Columns]:
    """The rows of all batches, by table."""
    parts = [waiting.rows for waiting in group if waiting.shared is None]
    together: dict[Shared, list[int]] = {}
    for waiting in group:
        if waiting.shared is not None:
            together.setdefault(waiting.shared, []).append(waiting.position)
    parts += [shared.of(positions) for shared, positions in together.items()]
    names = dict.fromkeys(table for part in parts for table in part)
    return {table: concatenated([part[table] for part in parts if table in part]) for table in names}


def as_inserted(rows: Columns, flush: int) -> Columns:
    """Checked rows of a table with the number of their flush."""
    prepared = {**rows, FLUSH: np.full(len(rows["ts"]), flush, dtype=np.uint64)}
    if "job" in rows:
        prepared["job"] = np.nan_to_num(rows["job"], nan=float(NO_JOB))
    return prepared


def _parted(group: Iterable[Waiting], begun: Begun) -> tuple[dict[BatchId, list[Waiting]], list[Waiting]]:
    """The fresh batches, each with all its arrivals in the group, and the others."""
    fresh: dict[BatchId, list[Waiting]] = {}
    others: list[Waiting] = []
    for waiting in group:
        if waiting.batch in begun.fresh:
            fresh.setdefault(waiting.batch, []).append(waiting)
        else:
            others.append(waiting)
    return fresh, others


def _answer(waiting: Waiting, begun: Begun) -> None:
    if waiting.batch in begun.repeated:
        waiting.future.set_result(WriteResult(duplicate=True))
    else:
        waiting.future.set_exception(Overloaded(BUSY_SECONDS))


def _refuse(group: Iterable[Waiting], problem: Exception) -> None:
    for waiting in group:
        if not waiting.future.done():
            waiting.future.set_exception(problem)
