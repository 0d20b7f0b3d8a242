"""What the store's writer, its upkeep and its questions share."""

from collections.abc import Callable
from dataclasses import dataclass

import duckdb

from flopwatch_collector.store.catalogue import Catalogue
from flopwatch_collector.store.database import Database
from flopwatch_collector.store.layout import Folder
from flopwatch_collector.store.problems import Problems
from flopwatch_collector.store.published import Published
from flopwatch_collector.store.schema import BATCH

Clock = Callable[[], float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """The folder, the database over its files, and the catalogue of raw rows."""

    folder: Folder
    database: Database
    catalogue: Published[Catalogue]
    problems: Problems
    clock: Clock

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
            return True

    def _readable(self) -> bool:
        try:
            with self.database.cursor() as cursor:
                for alias in self.catalogue.peek().hot:
                    cursor.execute(f"SELECT count(*) FROM {alias}.{BATCH.name}").fetchall()
        except duckdb.Error:
            return False
        return True
