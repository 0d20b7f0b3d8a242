"""Reading everything that is kept, to find what cannot be read."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from flopwatch_collector.store import hot, listing, reading
from flopwatch_collector.store.database import Database
from flopwatch_collector.store.ground import Ground
from flopwatch_collector.store.layout import Folder
from flopwatch_collector.store.port import Problem, Progress
from flopwatch_collector.store.rollup import Rollups
from flopwatch_collector.store.schema import HOT_TABLES, quoted


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """A file or open table, and the query that reads all of it."""

    name: str
    query: str
    rows: int | None = None
    """As many as it must have."""


def problems(ground: Ground, rollups: Collection[Rollups], progress: Progress) -> tuple[Problem, ...]:
    """What cannot be read, is not whole, or was set aside at an earlier start."""
    found: list[Problem] = []
    with ground.catalogue.borrowed() as catalogue:
        open_tables = [
            _Part(name=f"{alias}.{table.name}", query=_read(f"{alias}.{table.name}", table.columns))
            for alias in catalogue.hot
            for table in HOT_TABLES
        ]
        root = ground.folder.root
        closed = [
            _Part(name=str(file.path), query=reading.all_of(file.path), rows=listing.rows_of(root, file))
            for files in catalogue.files.values()
            for file in files
        ]
        found += _unreadable(ground.database, [*open_tables, *closed], progress)
    for rollup in rollups:
        with rollup.state.borrowed() as state:
            parts = [
                _Part(name=str(file.path), query=reading.all_of(file.path), rows=file.rows)
                for file in state.files
            ]
            found += _unreadable(ground.database, parts, progress)
    with ground.listing:
        unfinished = frozenset(map(hot.number_of, ground.catalogue.peek().hot))
        found += listing.differences(ground.folder, unfinished)
    found += [listing.stray(path) for rollup in rollups for path in rollup.strays()]
    return (*found, *_set_aside(ground.folder))


def _read(source: str, columns: Iterable[str]) -> str:
    """Counts rows, and decodes every column on the way."""
    hashes = ", ".join(quoted(name) for name in columns)
    return f"SELECT count(*), bit_xor(hash({hashes})) FROM {source}"


def _unreadable(database: Database, parts: Sequence[_Part], progress: Progress) -> list[Problem]:
    found = []
    for at, part in enumerate(parts):
        progress(f"reading {part.name}", at / len(parts))
        try:
            with database.cursor() as cursor:
                (rows, _) = cursor.execute(part.query).fetchall()[0]
        except duckdb.Error as problem:
            found.append(Problem(code="unreadable", text=f"{part.name} cannot be read: {problem}"))
            continue
        if part.rows is not None and rows != part.rows:
            text = f"{part.name} has {rows} rows instead of {part.rows}"
            found.append(Problem(code="unreadable", text=text))
    return found


def _set_aside(folder: Folder) -> list[Problem]:
    return [
        Problem(
            code="set_aside",
            text=f"{path} could not be read at an earlier start and was set aside",
            batches_missing=missing_of(path),
        )
        for path in sorted(folder.aside.iterdir())
    ]


def missing_of(path: Path) -> int | None:
    """Batches that were lost with a file that was set aside, as its name ``….missing-N`` says."""
    _, found, number = path.name.rpartition(".missing-")
    return int(number) if found and number.isdigit() else None


def all_missing(folder: Folder) -> int:
    """Batches that are known to be lost, over all that was set aside."""
    return sum(missing_of(path) or 0 for path in folder.aside.iterdir())
