"""Accept a batch once, however often it is sent, and answer only when it is durable."""

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from flopwatch.wire import Batch
from flopwatch_collector.ingest.decode import FieldError, MalformedBatch, check
from flopwatch_collector.ingest.directory import Directory, Resolved
from flopwatch_collector.ingest.spans import Spans
from flopwatch_collector.model import BatchId, Columns, RawRows
from flopwatch_collector.store.port import Control, Overloaded, Store, Unavailable, WriteResult

MAX_WAITING_BATCHES = 2_000
MAX_BATCHES_A_ROUND = 256
KNOWN_SPOOLS = 50_000
RETRY_SECONDS = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """The batch is durable: now, or since it came before."""

    duplicate: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """A batch that has become durable."""

    seconds: float
    """From its arrival until now."""
    duplicate: bool
    first_seconds: float | None
    """Event time of the earliest row that figures are made from; ``None`` without any."""
    last_seconds: float | None


@dataclass(slots=True)
class IngestStats:
    """Counts since the start, for metrics."""

    accepted: int = 0
    duplicates: int = 0
    rows: int = 0
    waiting: int = 0


@dataclass(slots=True)
class _Waiting:
    id: BatchId
    batch: Batch
    received_seconds: float
    sent_seconds: float | None
    future: "Future[Accepted]" = field(default_factory=Future)
    resolved: Resolved | None = None


class Ingest:
    """The way of a batch: resolve, save what is new of the fleet, store the rows, answer.

    One thread resolves batches in their order of arrival and saves the documents of all that wait in one
    transaction, before their rows go to the store: rows never name a number that a restart would not know.
    """

    def __init__(
        self,
        directory: Directory,
        control: Control,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        written: Callable[[Written], None] | None = None,
    ) -> None:
        self._directory = directory
        self._control = control
        self._store = store
        self._clock = clock
        self._simulated = directory.simulated
        self._tell = written
        self._lock = threading.Lock()
        self._waiting: deque[_Waiting] = deque()
        self._in_flight: dict[BatchId, Future[Accepted]] = {}
        self._done: OrderedDict[tuple[str, str], Spans] = OrderedDict()
        self._stats = IngestStats()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="flopwatch-ingest")

    def accept_batch(self, batch: Batch, *, sent_at_seconds: float | None = None) -> "Future[Accepted]":
        """Take one batch; the future is done when it is durable.

        Raises:
            MalformedBatch: a number that no column can hold, or simulated data for a real collector.
            Overloaded: too many batches wait.
        """
        check(batch)
        self._check_simulated(batch)
        key = BatchId(node=batch.node, spool=batch.spool, sequence=batch.sequence)
        with self._lock:
            if self._is_done(key):
                self._stats.duplicates += 1
                return _done(Accepted(duplicate=True))
            earlier = self._in_flight.get(key)
            if earlier is not None:
                return _follower(earlier)
            if len(self._waiting) >= MAX_WAITING_BATCHES:
                raise Overloaded(RETRY_SECONDS)
            item = _Waiting(id=key, batch=batch, received_seconds=self._clock(), sent_seconds=sent_at_seconds)
            self._waiting.append(item)
            self._in_flight[key] = item.future
        self._worker.submit(self._round)
        return item.future

    def stats(self) -> IngestStats:
        """Counts since the start."""
        with self._lock:
            stats = self._stats
            return IngestStats(
                accepted=stats.accepted,
                duplicates=stats.duplicates,
                rows=stats.rows,
                waiting=len(self._in_flight),
            )

    def close(self) -> None:
        """Hand what waits to the store, and end; close the store after it."""
        self._worker.shutdown(wait=True)

    def _check_simulated(self, batch: Batch) -> None:
        if batch.simulated != self._simulated:
            kind = "a demonstration" if self._simulated else "real data"
            raise MalformedBatch(
                FieldError(
                    field="simulated",
                    value=str(batch.simulated).lower(),
                    allowed=f"{str(self._simulated).lower()}: this collector is for {kind}",
                )
            )

    def _round(self) -> None:
        """Take all that wait: one transaction for the fleet's documents, then the rows."""
        with self._lock:
            count = min(len(self._waiting), MAX_BATCHES_A_ROUND)
            taken = [self._waiting.popleft() for _ in range(count)]
        if not taken:
            return
        try:
            ready = [item for item in taken if self._resolved(item)]
            self._save()
            for item in ready:
                self._submit(item)
        except BaseException as error:
            for item in taken:
                self._fail(item, error)
            if not isinstance(error, Unavailable):
                log.exception("%d batches could not be taken", len(taken))
                raise

    def _resolved(self, item: _Waiting) -> bool:
        try:
            item.resolved = self._directory.resolve(item.batch, item.received_seconds, item.sent_seconds)
        except MalformedBatch as error:
            self._fail(item, error)
            return False
        return True

    def _save(self) -> None:
        documents = self._directory.take_documents()
        if not documents:
            return
        try:
            self._control.save_all(documents)
        except BaseException:
            self._directory.not_saved()
            raise

    def _submit(self, item: _Waiting) -> None:
        if item.resolved is None:
            return
        try:
            written = self._store.submit(item.id, item.resolved.rows)
        except (Overloaded, Unavailable) as error:
            self._fail(item, error)
        except ValueError as error:
            self._fail(item, MalformedBatch(FieldError(field="body", value=str(error), allowed="see there")))
        else:
            written.add_done_callback(partial(self._written, item))

    def _written(self, item: _Waiting, written: "Future[WriteResult]") -> None:
        error = written.exception()
        if error is not None:
            self._fail(item, error)
            return
        duplicate = written.result().duplicate
        self._directory.advance()
        with self._lock:
            self._in_flight.pop(item.id, None)
            self._spans(item.id).add(item.id.sequence, item.id.sequence)
            if duplicate:
                self._stats.duplicates += 1
            else:
                self._stats.accepted += 1
                self._stats.rows += _row_count(item.resolved)
        try:
            if self._tell is not None:
                self._tell(_told(item, self._clock(), duplicate=duplicate))
        finally:
            item.future.set_result(Accepted(duplicate=duplicate))

    def _fail(self, item: _Waiting, error: BaseException) -> None:
        if item.future.done():
            return
        if item.resolved is not None:
            self._directory.give_back(item.resolved)
        with self._lock:
            self._in_flight.pop(item.id, None)
        item.future.set_exception(error)

    def _is_done(self, key: BatchId) -> bool:
        spans = self._done.get((key.node, key.spool))
        return spans is not None and key.sequence in spans

    def _spans(self, key: BatchId) -> Spans:
        spans = self._done.setdefault((key.node, key.spool), Spans())
        self._done.move_to_end((key.node, key.spool))
        if len(self._done) > KNOWN_SPOOLS:
            self._done.popitem(last=False)
        return spans


def _done(accepted: Accepted) -> "Future[Accepted]":
    future: Future[Accepted] = Future()
    future.set_result(accepted)
    return future


def _follower(earlier: "Future[Accepted]") -> "Future[Accepted]":
    """The answer to a batch that came again while its first arrival was being written."""
    future: Future[Accepted] = Future()

    def follow(done: "Future[Accepted]") -> None:
        error = done.exception()
        if error is None:
            future.set_result(Accepted(duplicate=True))
        else:
            future.set_exception(error)

    earlier.add_done_callback(follow)
    return future


def _tables(resolved: Resolved | None) -> list[Columns]:
    """The tables that the batch has rows for."""
    if resolved is None:
        return []
    tables = (getattr(resolved.rows, name) for name in RawRows.__slots__)
    return [table for table in tables if table and len(table["ts"])]


def _row_count(resolved: Resolved | None) -> int:
    return sum(len(table["ts"]) for table in _tables(resolved))


def _told(item: _Waiting, now: float, *, duplicate: bool) -> Written:
    times = _event_times(item.resolved)
    return Written(
        seconds=max(0.0, now - item.received_seconds),
        duplicate=duplicate,
        first_seconds=min((float(each.min()) for each in times), default=None),
        last_seconds=max((float(each.max()) for each in times), default=None),
    )


def _event_times(resolved: Resolved | None) -> list[npt.NDArray[np.float64]]:
    """Times that figures of the past may change from; a phase that still lasts is sent again and again."""
    if resolved is None:
        return []
    rows = resolved.rows
    times = [table["ts"] for table in (rows.gpu, rows.step, rows.event) if table]
    if rows.phase:
        times.append(rows.phase["ts"][~np.isnan(rows.phase["end"])])
    return [each for each in times if len(each)]
