"""The followed files: which are read in a look, and for how long.

A file that is quiet costs nothing: it is looked at more seldom, at full pace again once something came. However dear a
file's content is to read, a look takes a bounded share of one core, and the next look begins where it stopped.
"""

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from flopwatch_agent.log_file import FileIdentity
from flopwatch_agent.log_follow import Follower
from flopwatch_agent.trainers.rows import Output

logger = logging.getLogger(__name__)

BYTES_A_FILE = 4 << 20
BYTES_A_LOOK = 12 << 20
BYTES_A_POLL = 256 << 10
CPU_SECONDS_A_LOOK = 0.25
QUIET_SECONDS = 30.0
"""A file to which nothing came for so long is looked at every ``QUIET_POLL_SECONDS`` only."""
QUIET_POLL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Polled:
    """What one file gave, or why it cannot be read any more."""

    identity: FileIdentity
    follower: Follower
    output: Output
    error: Exception | None = None


class Followers:
    """Files that are followed, by identity and by job. ``spent`` tells the CPU seconds of the calling thread."""

    def __init__(self, spent: Callable[[], float] = time.thread_time) -> None:
        self._files: dict[FileIdentity, Follower] = {}
        self._of_job: dict[str, list[Follower]] = {}
        self._spent = spent

    def __contains__(self, identity: FileIdentity) -> bool:
        return identity in self._files

    def __iter__(self) -> Iterator[tuple[FileIdentity, Follower]]:
        """All of them; they may be added and removed meanwhile."""
        return iter(list(self._files.items()))

    def get(self, identity: FileIdentity) -> Follower | None:
        """The follower of a file, if it is followed."""
        return self._files.get(identity)

    def of_job(self, ref: str) -> list[Follower]:
        """The files of one job."""
        return list(self._of_job.get(ref, ()))

    def add(self, follower: Follower) -> None:
        """Follow one more file."""
        self._files[follower.file.identity] = follower
        self._of_job.setdefault(follower.job, []).append(follower)

    def remove(self, follower: Follower) -> None:
        """Follow a file no more; it is closed."""
        follower.file.close()
        del self._files[follower.file.identity]
        own = self._of_job[follower.job]
        own.remove(follower)
        if not own:
            del self._of_job[follower.job]

    def needs_arrivals(self, now: float) -> bool:
        """Whether a file is at work whose rows are dated by when they are read."""
        return any(
            not item.tells_times and 0 <= now - (item.last_read_seconds or 0.0) <= QUIET_SECONDS
            for item in self._files.values()
        )

    def poll(self, now: float) -> Iterator[Polled]:
        """Read what came to the files that are due, as much as one look may cost."""
        began, budget = self._spent(), BYTES_A_LOOK
        for identity, follower in self:
            if is_quiet(follower, now):
                continue
            limit = min(BYTES_A_FILE, budget)
            while limit > 0:
                polled, taken = _polled(identity, follower, now, min(limit, BYTES_A_POLL))
                yield polled
                limit, budget = limit - taken, budget - taken
                if not taken or identity not in self._files or self._spent() - began > CPU_SECONDS_A_LOOK:
                    break
            if budget <= 0 or self._spent() - began > CPU_SECONDS_A_LOOK:
                self._next_after(identity)
                break

    def _next_after(self, identity: FileIdentity) -> None:
        """Let the next look begin with the file after this one, so that a busy one keeps nobody waiting."""
        order = list(self._files)
        place = order.index(identity) + 1 if identity in self._files else 0
        self._files = {key: self._files[key] for key in (*order[place:], *order[:place])}


def _polled(identity: FileIdentity, follower: Follower, now: float, limit: int) -> tuple[Polled, int]:
    try:
        output, taken = follower.poll(now, limit)
    except OSError as error:
        return Polled(identity, follower, Output(), error), 0
    except Exception as error:
        # What one file holds must not keep the others, and the rows that they gave, from being told.
        logger.exception("%s cannot be understood", follower.file.path)
        return Polled(identity, follower, Output(), error), 0
    return Polled(identity, follower, output), taken


def is_quiet(follower: Follower, now: float) -> bool:
    """Whether nothing came to a file for long and it was looked at a moment ago."""
    last, looked = follower.last_read_seconds, follower.last_poll_seconds
    if not follower.settled or last is None or looked is None:
        return False
    return now - last > QUIET_SECONDS and 0 <= now - looked < QUIET_POLL_SECONDS
