"""Batches on their way to the writer: bounded, and taken in groups."""

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from flopwatch_collector.model import BatchId, Columns
from flopwatch_collector.store.port import Overloaded, Unavailable, WriteResult

GROUP_ROWS = 20_000
RETRY_AFTER_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Shared:
    """Checked rows of batches that were submitted together, and by table the position of each row's batch."""

    rows: dict[str, Columns]
    owners: Mapping[str, npt.NDArray[Any]]
    batches: int

    def counts(self) -> npt.NDArray[Any]:
        """Rows of each batch, in all tables."""
        counted = [np.bincount(self.owners[name], minlength=self.batches) for name in self.rows]
        return np.sum(counted, axis=0) if counted else np.zeros(self.batches, dtype=np.int64)

    def of(self, positions: Sequence[int]) -> dict[str, Columns]:
        """The rows of these batches."""
        if len(positions) == self.batches:
            return self.rows
        kept = {name: np.isin(self.owners[name], positions) for name in self.rows}
        return {
            name: {column: values[kept[name]] for column, values in table.items()}
            for name, table in self.rows.items()
            if kept[name].any()
        }


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Waiting:
    """A batch with its checked rows, and the promise given for it."""

    batch: BatchId
    rows: dict[str, Columns]
    count: int
    shared: Shared | None = None
    """Where its rows are instead, at ``position``, when it was submitted together with others."""
    position: int = 0
    since: float = field(default_factory=time.monotonic)
    future: "Future[WriteResult]" = field(default_factory=Future)


class Inbox:
    """A queue of batches; many put, one takes."""

    def __init__(self, capacity: int, flush_seconds: float) -> None:
        self._capacity = capacity
        self._flush_seconds = flush_seconds
        self._condition = threading.Condition()
        self._waiting: deque[Waiting] = deque()
        self._rows = 0
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, *waiting: Waiting) -> None:
        """Queue batches: all or none.

        Raises:
            Overloaded: the queue is full.
            Unavailable: the store is closed.
        """
        with self._condition:
            if self._closed:
                raise Unavailable("the store is closed")
            if len(self._waiting) + len(waiting) > self._capacity:
                raise Overloaded(RETRY_AFTER_SECONDS)
            self._waiting.extend(waiting)
            self._rows += sum(each.count for each in waiting)
            self._condition.notify()

    def take(self) -> list[Waiting]:
        """The next group: when its oldest is old enough or its rows are many; empty when closed and done."""
        with self._condition:
            self._condition.wait_for(lambda: self._waiting or self._closed)
            while self._waiting and not self._closed and self._rows < GROUP_ROWS:
                left = self._waiting[0].since + self._flush_seconds - time.monotonic()
                if left <= 0:
                    break
                self._condition.wait(left)
            return self._group()

    def _group(self) -> list[Waiting]:
        group: list[Waiting] = []
        rows = 0
        while self._waiting and rows < GROUP_ROWS:
            waiting = self._waiting.popleft()
            rows += waiting.count
            group.append(waiting)
        self._rows -= rows
        return group

    def close(self) -> None:
        """Accept no more; what waits can still be taken."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
