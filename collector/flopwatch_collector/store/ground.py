"""What the store's writer, its upkeep and its questions share."""

from collections.abc import Callable
from dataclasses import dataclass

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

    def hour(self) -> int:
        """The epoch hour now."""
        return int(self.clock() // 3600)
