"""Metric files beside a job's log: their rows wait until it shows whether the log or the SDK gives step times.

Two sources of the same steps would be read twice. So rows of such a file are held back; when nothing better has
come within some seconds, the first file with step times is the job's source from then on, and the others are let go.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from flopwatch_agent.log_file import FileIdentity
from flopwatch_agent.log_follow import Follower
from flopwatch_agent.trainers.rows import Output

PATIENCE_SECONDS = 10.0
WEAK = frozenset({"derived_timestamps", "arrival", "none"})
"""Bases of a step time that are worth less than what a log on another node may print."""
MAX_BARREN_BYTES = 64 << 20
"""A file that had no row in so many bytes is none of a trainer's metrics."""
MAX_HELD_ROWS = 20_000
MAX_BARREN_FILES = 1000


@dataclass(slots=True)
class Held:
    """What one file gave so far."""

    follower: Follower
    is_whole: bool
    """Whether the whole job is on this node: then no other node reads its log."""
    outputs: list[Output] = field(default_factory=list)
    rows: int = 0
    timed_since: float | None = None
    """When its first row with a step time was read; of a part of a job, with one that is not weak."""

    def add(self, output: Output, now: float) -> None:
        """Keep more of it, the oldest given up beyond a bound."""
        self.outputs.append(output)
        self.rows += len(output.steps)
        while self.rows > MAX_HELD_ROWS and len(self.outputs) > 1:
            self.rows -= len(self.outputs.pop(0).steps)
        timed = (row for row in output.steps if row.seconds is not None)
        if self.timed_since is None and any(self.is_whole or row.basis not in WEAK for row in timed):
            self.timed_since = now


class Candidates:
    """The metric files that are followed, by job."""

    def __init__(self) -> None:
        self._held: dict[FileIdentity, Held] = {}
        self._chosen: dict[str, FileIdentity] = {}
        self._decided: set[str] = set()
        """Jobs with a better source."""
        self._barren: dict[FileIdentity, None] = {}

    def wants(self, ref: str) -> bool:
        """Whether files are still looked for, for a job."""
        return ref not in self._decided and ref not in self._chosen

    def takes(self, identity: FileIdentity) -> bool:
        """Whether a file is worth following."""
        return identity not in self._barren

    def add(self, follower: Follower, *, is_whole: bool) -> None:
        """Follow one more; one whose rows were sent before the agent was restarted is the job's source at once."""
        if follower.sent_until > 0:
            self._chosen[follower.job] = follower.file.identity
        else:
            self._held[follower.file.identity] = Held(follower, is_whole)

    def is_held(self, identity: FileIdentity) -> bool:
        """Whether the file's rows are to wait."""
        return identity in self._held

    def hold(self, identity: FileIdentity, output: Output, now: float) -> None:
        """Keep what a file gave."""
        self._held[identity].add(output, now)

    def settle(
        self, now: float, has_better: Callable[[str], bool]
    ) -> tuple[list[tuple[Follower, Output]], list[Follower]]:
        """(what is to be sent now, files to let go). ``has_better``: whether a job's log or SDK gives step times."""
        sent: list[tuple[Follower, Output]] = []
        dropped: list[Follower] = []
        for ref in sorted({held.follower.job for held in self._held.values()}):
            if has_better(ref):
                self._decided.add(ref)
            elif ref not in self._chosen:
                ready = self._ready(ref, now - PATIENCE_SECONDS)
                sent += [] if ready is None else self._choose(ready)
            if not self.wants(ref):
                dropped += self._drop(ref)
        return sent, dropped + self._barren_ones()

    def _choose(self, ready: Held) -> list[tuple[Follower, Output]]:
        identity = ready.follower.file.identity
        self._chosen[ready.follower.job] = identity
        del self._held[identity]
        return [(ready.follower, output) for output in ready.outputs]

    def _barren_ones(self) -> list[Follower]:
        """Files that had much and no row: they are not followed again."""
        dropped = []
        for identity, held in list(self._held.items()):
            if held.rows == 0 and held.follower.file.offset > MAX_BARREN_BYTES:
                self._barren[identity] = None
                dropped.append(self._held.pop(identity).follower)
        while len(self._barren) > MAX_BARREN_FILES:
            del self._barren[next(iter(self._barren))]
        return dropped

    def last(self, ref: str) -> Iterable[tuple[Follower, Output]]:
        """What a job that ends leaves to be sent, where nothing better came; its files are forgotten."""
        ready = self._ready(ref, float("inf")) if self.wants(ref) else None
        self._drop(ref)
        self._decided.discard(ref)
        self._chosen.pop(ref, None)
        return [] if ready is None else [(ready.follower, output) for output in ready.outputs]

    def forget(self, identity: FileIdentity) -> None:
        """A file is followed no more."""
        self._held.pop(identity, None)
        self._chosen = {ref: chosen for ref, chosen in self._chosen.items() if chosen != identity}

    def _ready(self, ref: str, since: float) -> Held | None:
        """The first of a job's files, in the order they were found, with step times since before a time."""
        own = (held for held in self._held.values() if held.follower.job == ref)
        return next((h for h in own if h.timed_since is not None and h.timed_since <= since), None)

    def _drop(self, ref: str) -> list[Follower]:
        gone = [identity for identity, held in self._held.items() if held.follower.job == ref]
        return [self._held.pop(identity).follower for identity in gone]
