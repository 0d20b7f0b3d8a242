"""Accept a batch once, however often it is sent, and answer only when it is durable."""

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy.typing as npt

from flopwatch.wire import Batch
from flopwatch_collector.ingest.decode import FieldError, MalformedBatch, check
from flopwatch_collector.ingest.directory import Directory, Resolved
from flopwatch_collector.ingest.rows import Extent, together
from flopwatch_collector.ingest.spans import Spans
from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store.port import Control, Overloaded, Store, Unavailable, WriteResult

MAX_WAITING_BATCHES = 2_000
MAX_BATCHES_A_ROUND = 512
GATHER_SECONDS = 0.2
"""What a collector with many senders gathers: half of it is added to an answer's time on average."""
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
    since: float = field(default_factory=time.monotonic)
    future: "Future[Accepted]" = field(default_factory=Future)
    resolved: Resolved | None = None
    extent: Extent | None = None


@runtime_checkable
class GroupStore(Protocol):
    """A store that takes many batches at once."""

    def submit_group(
        self, batches: Sequence[BatchId], rows: RawRows, owners: Mapping[str, npt.NDArray[Any]]
    ) -> "list[Future[WriteResult]]":
        """Queue batches; ``owners`` gives by table the position of each row's batch."""
        ...


class Ingest:
    """The way of a batch: resolve, save what is new of the fleet, store the rows, answer.

    One thread resolves batches in their order of arrival and saves the documents of all that wait in one
    transaction, before their rows go to the store: rows never name a number that a restart would not know.
    A batch that cannot be resolved fails alone.
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
        self.gather_seconds = 0.0
        """How long the first batch of a round waits for others: what a round costs is shared by all in it."""
        self._lock = threading.Condition()
        self._closed = False
        self._waiting: deque[_Waiting] = deque()
        self._in_flight: dict[BatchId, Future[Accepted]] = {}
        self._done: OrderedDict[tuple[str, str], Spans] = OrderedDict()
        self._stats = IngestStats()
        self._worker = threading.Thread(target=self._run, name="flopwatch-ingest", daemon=True)
        self._worker.start()

    def accept_batch(self, batch: Batch, *, sent_at_seconds: float | None = None) -> "Future[Accepted]":
        """Take one batch; the future is done when it is durable.

        Raises:
            MalformedBatch: a number that no column can hold, or simulated data for a real collector.
            Overloaded: too many batches wait.
            Unavailable: the collector is being stopped.
        """
        check(batch)
        return self.accept_checked(batch, sent_at_seconds=sent_at_seconds)

    def accept_checked(self, batch: Batch, *, sent_at_seconds: float | None = None) -> "Future[Accepted]":
        """Like ``accept_batch``, for a batch that ``decode`` has checked."""
        self._check_simulated(batch)
        key = BatchId(node=batch.node, spool=batch.spool, sequence=batch.sequence)
        with self._lock:
            if self._is_done(key):
                self._stats.duplicates += 1
                return _done(Accepted(duplicate=True))
            earlier = self._in_flight.get(key)
            if earlier is not None:
                return _follower(earlier)
            if self._closed:
                raise Unavailable("the collector is being stopped")
            if len(self._waiting) >= MAX_WAITING_BATCHES:
                raise Overloaded(RETRY_SECONDS)
            item = _Waiting(id=key, batch=batch, received_seconds=self._clock(), sent_seconds=sent_at_seconds)
            self._waiting.append(item)
            self._in_flight[key] = item.future
            # Only what ends a wait wakes the thread.
            if len(self._waiting) in (1, MAX_BATCHES_A_ROUND):
                self._lock.notify()
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
        with self._lock:
            self._closed = True
            self._lock.notify()
        self._worker.join()

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

    def _run(self) -> None:
        while taken := self._next():
            self._round(taken)

    def _next(self) -> list[_Waiting]:
        """The next round: what waits once the first has waited long enough; empty when closed and done."""
        with self._lock:
            self._lock.wait_for(lambda: self._waiting or self._closed)
            while self._waiting and not self._closed and len(self._waiting) < MAX_BATCHES_A_ROUND:
                left = self._waiting[0].since + self.gather_seconds - time.monotonic()
                if left <= 0:
                    break
                self._lock.wait(left)
            count = min(len(self._waiting), MAX_BATCHES_A_ROUND)
            return [self._waiting.popleft() for _ in range(count)]

    def _round(self, taken: list[_Waiting]) -> None:
        """One transaction for the fleet's documents, then the rows."""
        try:
            with self._directory.turn():
                ready = [item for item in taken if self._resolved(item)]
                self._save()
            self._submit(ready)
        except Exception as error:
            if not isinstance(error, Unavailable):
                log.exception("%d batches could not be taken", len(taken))
            for item in taken:
                self._fail(item, error)

    def _resolved(self, item: _Waiting) -> bool:
        try:
            item.resolved = self._directory.resolve(item.batch, item.received_seconds, item.sent_seconds)
        except Exception as error:
            log.exception("batch %d of %s could not be taken", item.id.sequence, item.id.node)
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

    def _submit(self, items: list[_Waiting]) -> None:
        """Hand the rows to the store; those of a batch that it cannot keep fail alone."""
        if isinstance(self._store, GroupStore):
            try:
                self._submit_group(self._store, items)
            except (Overloaded, Unavailable) as error:
                for item in items:
                    self._fail(item, error)
            except ValueError as error:
                if len(items) > 1:
                    for item in items:
                        self._submit([item])
                else:
                    self._refuse(items[0], error)
            return
        for item in items:
            self._submit_alone(item)

    def _submit_group(self, store: GroupStore, items: Sequence[_Waiting]) -> None:
        known = [(item, item.resolved.taken) for item in items if item.resolved is not None]
        if not known:
            return
        group = together([taken for _, taken in known])
        for (item, _), extent in zip(known, group.extents(), strict=True):
            item.extent = extent
        written = store.submit_group([item.id for item, _ in known], group.rows, group.owners)
        for (item, _), future in zip(known, written, strict=True):
            future.add_done_callback(partial(self._written, item))

    def _submit_alone(self, item: _Waiting) -> None:
        if item.resolved is None:
            return
        try:
            group = together([item.resolved.taken])
            (item.extent,) = group.extents()
            written = self._store.submit(item.id, group.rows)
        except (Overloaded, Unavailable) as error:
            self._fail(item, error)
        except ValueError as error:
            self._refuse(item, error)
        else:
            written.add_done_callback(partial(self._written, item))

    def _refuse(self, item: _Waiting, error: ValueError) -> None:
        """The sender's fault: what the store says of a value."""
        if not isinstance(error, MalformedBatch):
            error = MalformedBatch(FieldError(field="body", value=str(error), allowed="see there"))
        self._fail(item, error)

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
                self._stats.rows += item.extent.rows if item.extent is not None else 0
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


def _told(item: _Waiting, now: float, *, duplicate: bool) -> Written:
    return Written(
        seconds=max(0.0, now - item.received_seconds),
        duplicate=duplicate,
        first_seconds=None if item.extent is None else item.extent.first_seconds,
        last_seconds=None if item.extent is None else item.extent.last_seconds,
    )
