"""The thread beside the writer: closes hours and merges rollup files, and tries again what failed."""

import threading
import time
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
    """Runs tasks in the order they were asked for; one that failed waits, and holds up no other."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._condition = threading.Condition()
        self._tasks: deque[tuple[float, Task]] = deque()
        """With the monotonic time before which a task is not tried."""
        self._running = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="flopwatch-store-upkeep", daemon=True)
        self._thread.start()

    def ask(self, task: Task) -> None:
        """Queue a task; one of the same name that waits already is enough."""
        with self._condition:
            if all(waiting.name != task.name for _, waiting in self._tasks):
                self._tasks.append((0.0, task))
                self._condition.notify_all()

    def wait(self) -> None:
        """Return when nothing is left to do but what has failed and waits for another try."""
        with self._condition:
            self._condition.wait_for(lambda: self._due() is None and not self._running)

    def close(self) -> None:
        """End after the task that runs; the others are found again at the next start."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while (task := self._next()) is not None:
            again = None
            try:
                task.run()
            except (duckdb.Error, OSError, NotWhole) as problem:
                self._problems.add(f"{task.name} failed and will be tried again: {problem}")
                again = time.monotonic() + RETRY_SECONDS
            self._done(task, again)

    def _due(self) -> tuple[float, Task] | None:
        now = time.monotonic()
        return next((waiting for waiting in self._tasks if waiting[0] <= now), None)

    def _next(self) -> Task | None:
        with self._condition:
            while not self._closed:
                due = self._due()
                if due is not None:
                    self._tasks.remove(due)
                    self._running = True
                    return due[1]
                soonest = min((not_before for not_before, _ in self._tasks), default=None)
                self._condition.wait(None if soonest is None else max(0.0, soonest - time.monotonic()))
            return None

    def _done(self, task: Task, again: float | None) -> None:
        with self._condition:
            self._running = False
            if again is not None:
                self._tasks.append((again, task))
            self._condition.notify_all()
