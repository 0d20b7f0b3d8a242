"""Several collectors over one control state: each changes the fleet in its turn, knowing what the others changed."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol, cast

from flopwatch_collector.ingest import declared
from flopwatch_collector.ingest.declared import DeclaredJob
from flopwatch_collector.ingest.identity import Identity
from flopwatch_collector.model import Gpu, JobRecord, Launch, LeaseRecord, Node
from flopwatch_collector.store.port import Control
from flopwatch_collector.store.sharing import Changes, SharedControl

KINDS: dict[str, type[Any]] = {
    "node": Node,
    "gpu": Gpu,
    "job": JobRecord,
    "identity": Identity,
    "launch": Launch,
    "lease": LeaseRecord,
    declared.KIND: DeclaredJob,
}
"""What the fleet is kept as."""
NOTHING = Changes(number=0, saved={}, deleted={})


class Turns(Protocol):
    """When this collector may change the fleet."""

    def taken(self) -> "contextlib.AbstractContextManager[Changes | None]":
        """A turn, with what the others changed since the last one; None: read everything anew."""
        ...


class Unshared:
    """The turns of a collector that shares with no other: always."""

    @contextlib.contextmanager
    def taken(self) -> Iterator[Changes | None]:
        """A turn; nobody has changed anything."""
        yield NOTHING


class Shared:
    """The turns of one of several collectors; a turn is one transaction.

    After a turn that failed what this process knows may be more than what is kept, so the next one begins anew.
    """

    def __init__(self, control: SharedControl) -> None:
        self._control = control
        self._seen: int | None = None

    @contextlib.contextmanager
    def taken(self) -> Iterator[Changes | None]:
        """A turn, committed at its end.

        Raises:
            Unavailable: the control state cannot be reached or written; nothing was changed.
        """
        try:
            with self._control.exclusive():
                yield None if self._seen is None else self._control.changes(KINDS, self._seen)
                newest = self._control.newest_change()
        except BaseException:
            self._seen = None
            raise
        self._seen = newest


def turns(control: Control) -> Turns:
    """The turns that a control state asks for."""
    return Shared(cast("SharedControl", control)) if getattr(control, "shared", False) else Unshared()


def lived(own: JobRecord, theirs: JobRecord) -> JobRecord:
    """Another collector's record of a job, with the newest sign of life that either has of each part."""
    seen = {(part.node, part.ref): part.last_seen_seconds for part in own.parts}
    parts = tuple(
        replace(part, last_seen_seconds=max(part.last_seen_seconds, seen.get((part.node, part.ref), 0.0)))
        if part.end_seconds is None
        else part
        for part in theirs.parts
    )
    last = max([theirs.last_seen_seconds, *(part.last_seen_seconds for part in parts)])
    return replace(theirs, parts=parts, last_seen_seconds=last)
