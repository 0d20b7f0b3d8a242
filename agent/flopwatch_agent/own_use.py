"""What the agent itself uses: a program that watches others must not grow without anyone noticing."""

import logging
import os
from pathlib import Path

logger = logging.getLogger(__name__)

LOOK_SECONDS = 10.0
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class OwnUse:
    """Memory and descriptors of this process, looked at every ten seconds."""

    def __init__(self, max_memory_bytes: int) -> None:
        self.resident_bytes = self.open_files = 0
        self._max_bytes = max_memory_bytes
        self._looked: float | None = None
        self.is_too_large = False
        """Whether the process is larger than it may be, and must be replaced by a new one; never from the start on."""

    def look(self, moment: float) -> None:
        """Look when it is time, by the monotonic clock."""
        first = self._looked is None
        if self._looked is not None and moment - self._looked < LOOK_SECONDS:
            return
        self._looked = moment
        self.resident_bytes = (
            int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES
        )
        self.open_files = sum(1 for _ in Path("/proc/self/fd").iterdir())
        self.is_too_large = not first and self.resident_bytes > self._max_bytes
        if self.is_too_large:
            logger.error(
                "the agent uses %d MiB, more than agent.max_memory_bytes allows (%d MiB): starting a new process",
                self.resident_bytes >> 20,
                self._max_bytes >> 20,
            )
