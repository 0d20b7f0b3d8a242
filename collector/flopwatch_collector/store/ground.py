"""What the store's writer, its upkeep and its questions share."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import duckdb

from flopwatch_collector.store import attaching, hot
from flopwatch_collector.store.catalogue import Catalogue
from flopwatch_collector.store.database import Database
from flopwatch_collector.store.layout import Folder
from flopwatch_collector.store.problems import Problems
from flopwatch_collector.store.published import Published

Clock = Callable[[], float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """The folder, the database over its files, and the catalogue of raw rows."""

    folder: Folder
    database: Database
    catalogue: Published[Catalogue]
    problems: Problems
    clock: Clock
    healing: threading.Lock = field(default_factory=threading.Lock)
    """Held by the one thread that looks for files that cannot be read."""
    listing: threading.Lock = field(default_factory=threading.Lock)
    """Held while closed files and the lists of them change together, or are compared."""

    def hour(self) -> int:
        """The epoch hour now."""
        return int(self.clock() // 3600)

    def revive(self) -> bool:
        """Reopen the database if an open file can no longer be read; whether that was so.

        Raises:
            duckdb.Error: it cannot be opened again.
        """
        with self.database.reviving:
            if self._readable():
                return False
            self.database.reopen()
            self._report_missing()
            return True

    def _report_missing(self) -> None:
        """Compare what the reopened files hold with what was acknowledged of them."""
        for alias in self.catalogue.peek().hot:
            number = hot.number_of(alias)
            with self.database.cursor() as cursor:
                (count,) = cursor.execute(attaching.batch_count(alias)).fetchall()[0]
            missing = attaching.missing_batches(hot.path(self.folder, number), count)
            if missing:
                attaching.lost(self.folder, self.problems, number, missing, None)

    def _readable(self) -> bool:
        try:
            with self.database.cursor() as cursor:
                for alias in self.catalogue.peek().hot:
                    cursor.execute(attaching.batch_count(alias)).fetchall()
        except duckdb.Error:
            return False
        return True
