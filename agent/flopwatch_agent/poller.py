"""Reads one source again and again; one that hangs or fails costs only itself."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

from flopwatch_agent.rounds import Rounds
from flopwatch_agent.source import Readings, Source, SourceHealth, joined

logger = logging.getLogger(__name__)
MAX_KEPT = 64


class Poller:
    """Reads a source in its turns and keeps what it gave, bounded, until it is taken."""

    def __init__(self, source: Source, rounds: Rounds, clock: Callable[[], float] = time.time) -> None:
        self._source = source
        self._rounds = rounds
        self._clock = clock
        self._fresh: deque[Readings] = deque(maxlen=MAX_KEPT)
        self.latest: Readings | None = None
        self.latest_seconds: float | None = None
        self._errors = 0
        self._success = True
        self._duration = 0.0
        self._started = clock()
        self._stop = threading.Event()

    def start(self) -> None:
        """Begin to read."""
        self._rounds.add(self)

    def stop(self) -> None:
        """End after the present read."""
        self._stop.set()
        self._rounds.hurry(self)

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

    def turn(self, moment: float) -> float | None:
        """Read; when the next read is; None once it was stopped."""
        if self._stop.is_set():
            return None
        self._read_once()
        return self._rounds.next_after(moment, self._rounds.interval_seconds)

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
