"""Events that open and close windows of maintenance, spares and health, read again only where they may be new."""

import numpy as np

from flopwatch_collector.compute.layout import take
from flopwatch_collector.model import EVENT_COLUMNS, Columns
from flopwatch_collector.store.port import Store

DECLARING = ("drain", "maintenance", "spare", "health", "stranded", "xid")
"""Of GPUs and nodes; an XID also says whose loss an interruption is."""
AGAIN_SECONDS = 3600.0
"""Events younger than this are read at every tick, older ones once in that time."""


class Declarations:
    """All declaring events so far. Used by the thread that ticks, and by readers who only take them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._events: Columns = {}
        self._whole_seconds = -np.inf
        self._known: set[tuple[str, ...]] = set()
        self._known_before = False
        self._new_since = np.inf

    def again(self) -> None:
        """Read all events anew the next time: some of them may have arrived late."""
        self._whole_seconds = -np.inf

    def before(self, end: float, now: float) -> Columns:
        """The events before ``end``."""
        events, since = self._events, self._whole_seconds
        if not events or now - since > AGAIN_SECONDS:
            events = self._store.events(0.0, now + 0.001, DECLARING)
            self._events, self._whole_seconds = events, now
        else:
            newest = self._store.events(now - 2.0 * AGAIN_SECONDS, now + 0.001, DECLARING)
            older = take(events, events["ts"] < now - 2.0 * AGAIN_SECONDS)
            events = {name: np.concatenate((older[name], newest[name])) for name in EVENT_COLUMNS}
            self._events = events
        self._note_new(events)
        return take(events, events["ts"] < end)

    def _note_new(self, events: Columns) -> None:
        columns = ("ts", "node", "gpu", "kind", "value")
        known = {
            tuple(map(str, row)) for row in zip(*(events[name].tolist() for name in columns), strict=True)
        }
        new = known - self._known
        if new and self._known_before:
            self._new_since = min([self._new_since, *(float(row[0]) for row in new)])
        self._known, self._known_before = known, True

    def new_since(self) -> float | None:
        """Time of the oldest event that was not there at an earlier read; forgotten once told."""
        since, self._new_since = self._new_since, np.inf
        return None if since == np.inf else float(since)
