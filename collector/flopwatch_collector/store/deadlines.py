"""Statements that take longer than they may are interrupted, by one thread that watches them all."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from flopwatch_collector.store.port import TooSlow


@dataclass(kw_only=True, slots=True, eq=False)
class _Watched:
    cursor: Any
    until: float
    is_over: bool = False


class Deadlines:
    """The cursors that answer questions at present, and until when they may."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._condition = threading.Condition()
        self._watched: set[_Watched] = set()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="flopwatch-store-deadlines", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def kept(self, cursor: Any) -> Iterator[None]:
        """Interrupt the cursor when this takes longer than it may.

        Raises:
            TooSlow: it did.
        """
        watched = _Watched(cursor=cursor, until=time.monotonic() + self.seconds)
        with self._condition:
            self._watched.add(watched)
            self._condition.notify()
        try:
            yield
        except duckdb.Error as problem:
            if watched.is_over:
                raise self.exceeded() from problem
            raise
        finally:
            with self._condition:
                self._watched.discard(watched)

    def exceeded(self) -> TooSlow:
        """What is said of a question that was not answered in time."""
        return TooSlow(f"the question took longer than {self.seconds:g} s; ask for a shorter range")

    def close(self) -> None:
        """End the thread."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        self._thread.join()

    def _run(self) -> None:
        with self._condition:
            while not self._closed:
                now = time.monotonic()
                running = [each for each in self._watched if not each.is_over]
                for watched in running:
                    if watched.until <= now:
                        watched.is_over = True
                        watched.cursor.interrupt()
                soonest = min((each.until for each in running if not each.is_over), default=None)
                self._condition.wait(None if soonest is None else max(0.0, soonest - now))
