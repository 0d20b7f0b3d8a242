"""Runs one source in a thread of its own, so that a source that hangs or fails costs only itself."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from flopwatch_agent.source import Readings, Source, SourceHealth, joined

logger = logging.getLogger(__name__)
MAX_KEPT = 64


class Poller:
    """Reads a source every ``interval_seconds`` and keeps what it gave, bounded, until it is taken."""

    def __init__(
        self, source: Source, interval_seconds: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._source = source
        self._interval = interval_seconds
        self._clock = clock
        self._fresh: deque[Readings] = deque(maxlen=MAX_KEPT)
        self.latest: Readings | None = None
        self.latest_seconds: float | None = None
        self._errors = 0
        self._success = True
        self._duration = 0.0
        self._started = clock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=source.name, daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End after the present read."""
        self._stop.set()

    def take(self) -> Readings:
        """What was read since the last call."""
        return joined([self._fresh.popleft() for _ in range(len(self._fresh))])

    def health(self) -> SourceHealth:
        """How the last read went; a read that hangs shows by its age."""
        return SourceHealth(
            name=self._source.name,
            success=self._success,
            read_seconds=self.latest_seconds if self.latest_seconds is not None else self._started,
            duration_seconds=self._duration,
            errors=self._errors,
        )

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            self._read_once()
            moment = time.monotonic()
            due = max(due + self._interval, moment)
            self._stop.wait(due - moment)

    def _read_once(self) -> None:
        began = time.monotonic()
        now = self._clock()
        try:
            readings = self._source.read(now)
        except Exception:
            if self._success:
                logger.exception("source %s failed", self._source.name)
            self._errors += 1
            self._success = False
        else:
            self._success = True
            self.latest, self.latest_seconds = readings, now
            self._fresh.append(readings)
        self._duration = time.monotonic() - began
