"""The thread beside the writer: closes hours and merges rollup files, and tries again what failed."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import duckdb

from flopwatch_collector.store.closing import NotWhole
from flopwatch_collector.store.problems import Problems

RETRY_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """Work that may be repeated; ``name`` says in words what failed."""

    name: str
    run: Callable[[], None]


class Upkeep:
    """Runs tasks in the order they were asked for."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._condition = threading.Condition()
        self._tasks: deque[Task] = deque()
        self._running = False
        self._failed = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="flopwatch-store-upkeep", daemon=True)
        self._thread.start()

    def ask(self, task: Task) -> None:
        """Queue a task; one of the same name that waits already is enough."""
        with self._condition:
            if all(waiting.name != task.name for waiting in self._tasks):
                self._tasks.append(task)
                self._condition.notify_all()

    def wait(self) -> None:
        """Return when nothing is left to do, or what is left has failed and waits for another try."""
        with self._condition:
            self._condition.wait_for(lambda: self._failed or not (self._tasks or self._running))

    def close(self) -> None:
        """End after the task that runs; the others are found again at the next start."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            try:
                task.run()
            except (duckdb.Error, OSError, NotWhole) as problem:
                self._problems.add(f"{task.name} failed and will be tried again: {problem}")
                self._try_later(task)
            else:
                self._done()

    def _next(self) -> Task | None:
        with self._condition:
            self._condition.wait_for(lambda: self._tasks or self._closed)
            if self._closed:
                return None
            self._running = True
            return self._tasks.popleft()

    def _done(self) -> None:
        with self._condition:
            self._running = self._failed = False
            self._condition.notify_all()

    def _try_later(self, task: Task) -> None:
        with self._condition:
            self._running = False
            self._failed = True
            self._tasks.appendleft(task)
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._closed, timeout=RETRY_SECONDS)
