"""The way of what is told: batches about nodes, through the same ingest as everything else."""

import secrets
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from typing import Protocol

from flopwatch.wire import Batch
from flopwatch_collector.schedulers.declared import Told
from flopwatch_collector.schedulers.telling import About, Head
from flopwatch_collector.store.port import Overloaded, Unavailable

DURABLE_SECONDS = 60.0
AT_ONCE = 500
"""Batches that wait for the store together."""


class Accepted(Protocol):
    """A batch is durable."""

    @property
    def duplicate(self) -> bool:
        """Whether it had come before."""
        ...


@dataclass(kw_only=True)
class Delivery:
    """Makes durable what is told. Safe for threads."""

    accept: Callable[[Batch], "Future[Accepted]"]
    simulated: bool = False
    clock: Callable[[], float] = time.time
    again: Callable[[float, float], None] = lambda _start, _end: None
    """Told of times of which figures are to be made anew."""
    interval_seconds: float = 30.0
    _spool: str = field(default_factory=lambda: f"told-{secrets.token_hex(8)}")
    _sequence: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def deliver(self, cluster: str, told: Mapping[str, About], now: float) -> None:
        """Make durable what is told of nodes, by name; returns when it is.

        Raises:
            Unavailable: the store or the control state cannot be reached; some of it may be durable.
            Overloaded: too much waits.
            MalformedBatch: a time or a number that no column can hold.
        """
        names = sorted(told)
        for first in range(0, len(names), AT_ONCE):
            group = names[first : first + AT_ONCE]
            waiting = [self.accept(told[name].batch(self._head(cluster, now), name)) for name in group]
            done = wait_for(waiting, timeout=DURABLE_SECONDS)
            if done.not_done:
                raise Unavailable(f"{len(done.not_done)} batches are not durable after {DURABLE_SECONDS:g} s")
            for future in waiting:
                future.result()
        for about in told.values():
            for start, end in about.touched:
                self.again(start, max(start, end))

    def events(self, told: list[Told]) -> None:
        """Make events of nodes durable.

        Raises:
            Unavailable: the store or the control state cannot be reached.
            Overloaded: too much waits.
        """
        by_cluster: dict[str, dict[str, About]] = {}
        for each in told:
            about = by_cluster.setdefault(each.cluster, {}).setdefault(each.node, About())
            about.events.append(each.event)
        for cluster, nodes in by_cluster.items():
            self.deliver(cluster, nodes, self.clock())

    def _head(self, cluster: str, now: float) -> Head:
        with self._lock:
            self._sequence += 1
            return Head(
                cluster=cluster,
                spool=self._spool,
                sequence=self._sequence,
                time_seconds=now,
                interval_seconds=self.interval_seconds,
                simulated=self.simulated,
            )


FAILURES = (Unavailable, Overloaded)
"""What a delivery may fail with and succeed with later."""
