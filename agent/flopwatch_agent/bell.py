"""Wakes a waiting loop, from another thread or from a signal handler."""

import queue


class Bell:
    """Rung from anywhere; a queue and no event, since an event's lock may be held by the thread a signal interrupts."""

    def __init__(self) -> None:
        self._rings: queue.SimpleQueue[None] = queue.SimpleQueue()

    def ring(self) -> None:
        """Wake the loop now, or make its next wait end at once."""
        self._rings.put(None)

    def wait(self, seconds: float) -> None:
        """Return when it was rung, at the latest after ``seconds``."""
        try:
            self._rings.get(timeout=seconds)
            while True:
                self._rings.get_nowait()
        except queue.Empty:
            return
