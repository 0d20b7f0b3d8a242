"""When a collector's first page has data."""

from collections.abc import Callable

from flopwatch_collector.accounting import Accounting
from flopwatch_collector.store.port import Store


class Readiness:
    """The first page has data once GPU samples have come and were accounted for after that."""

    def __init__(self, store: Store, accounting: Accounting, clock: Callable[[], float]) -> None:
        self._store = store
        self._accounting = accounting
        self._clock = clock
        self._data_since: float | None = None
        self._is_ready = False
        self.note_data()

    def note_data(self) -> None:
        """GPU samples are there from now on, if they are."""
        if self._data_since is None and len(self._store.latest_gpus()["ts"]):
            self._data_since = self._clock()

    def is_ready(self) -> bool:
        """Whether the first page has data; once it has, it always has."""
        if not self._is_ready and self._data_since is not None:
            accounted, _ = self._accounting.newest()
            self._is_ready = accounted >= self._data_since
        return self._is_ready
