"""What went wrong in the store and was survived: shown to people, never only logged."""

import logging
import threading

_KEPT = 100

logger = logging.getLogger(__name__)


class Problems:
    """The newest distinct problems, in words."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[str, None] = {}

    def add(self, text: str) -> None:
        """Report a problem."""
        logger.warning("store: %s", text)
        with self._lock:
            self._texts.pop(text, None)
            self._texts[text] = None
            while len(self._texts) > _KEPT:
                del self._texts[next(iter(self._texts))]

    def texts(self) -> tuple[str, ...]:
        """Oldest first."""
        with self._lock:
            return tuple(self._texts)
