"""Files of open hours: making one, and inserting batches into it in one transaction."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from flopwatch_collector.model import BatchId, Columns
from flopwatch_collector.store import columns, tally
from flopwatch_collector.store.database import Cursor, Database
from flopwatch_collector.store.layout import Folder, synced
from flopwatch_collector.store.schema import BATCH, HOT_TABLES, TABLES, Table, quoted


@dataclass(kw_only=True, slots=True)
class HotFile:
    """An open file; ``hour`` is the epoch hour of arrival that it holds."""

    number: int
    path: Path
    hour: int
    rows: int = 0
    batches: int = 0

    @property
    def alias(self) -> str:
        """Its name in SQL."""
        return alias(self.number)


def alias(number: int) -> str:
    """The name in SQL of an open file."""
    return f"hot_{number:09d}"


MAKING = "making"
"""The name in SQL of a file that is being made."""


def number_of(alias: str) -> int:
    """The number behind the name in SQL of an open file."""
    return int(alias.removeprefix("hot_"))


def path(folder: Folder, number: int) -> Path:
    """Where an open file lies."""
    return folder.hot / f"{number:09d}.duckdb"


def wal(hot: Path) -> Path:
    """The write-ahead log beside a DuckDB file."""
    return hot.with_name(hot.name + ".wal")


def made(database: Database, folder: Folder, number: int, hour: int) -> HotFile:
    """A new open file with empty tables; its tables never stand in a WAL.

    Raises:
        duckdb.Error: it cannot be written (a full disk).
        OSError: likewise.
    """
    final = path(folder, number)
    with making(database, final) as new:
        pass
    tally.note(final, 0)
    synced(tally.path(final))
    new.rename(final)
    synced(final.parent)
    database.attach(alias(number), final)
    return HotFile(number=number, path=final, hour=hour)


@contextlib.contextmanager
def making(database: Database, final: Path) -> Iterator[Path]:
    """A file of empty tables beside ``final``, attached as ``MAKING``; whole and durable afterwards, and detached."""
    new = final.with_name(final.name + ".new")
    remove(new)
    database.attach(MAKING, new)
    try:
        with database.cursor() as cursor:
            for table in HOT_TABLES:
                cursor.execute(f"CREATE TABLE {MAKING}.{table.name} ({_definition(table)})")
        yield new
        with database.cursor() as cursor:
            cursor.execute(f"CHECKPOINT {MAKING}")
    finally:
        database.detach(MAKING)
    synced(new)


def _definition(table: Table) -> str:
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in table.columns.items())


def complete(database: Database, attached: str) -> None:
    """Give an attached open file the tables and columns that came after it was made.

    Raises:
        duckdb.Error: it cannot be read or written.
    """
    with database.cursor() as cursor:
        found = cursor.execute(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = ?", [attached]
        ).fetchall()
        known = {(str(table), str(column)) for table, column in found}
        tables = {table for table, _ in known}
        for table in HOT_TABLES:
            if table.name not in tables:
                cursor.execute(f"CREATE TABLE {attached}.{table.name} ({_definition(table)})")
                continue
            for name, kind in table.columns.items():
                if (table.name, name) not in known:
                    cursor.execute(f"ALTER TABLE {attached}.{table.name} ADD COLUMN {quoted(name)} {kind}")


def remove(hot: Path) -> None:
    """Delete an open file that is no longer needed: what belongs to its WAL first."""
    for beside in sorted(hot.parent.glob(hot.name + ".wal*")):
        beside.unlink()
    hot.unlink(missing_ok=True)
    tally.path(hot).unlink(missing_ok=True)


def insert(
    cursor: Cursor, into: str, rows: dict[str, Columns], batches: Sequence[BatchId], now_seconds: float
) -> None:
    """Write rows and the batches they came with in one transaction; on an error nothing is written.

    Raises:
        duckdb.Error: it could not be made durable.
    """
    cursor.execute("BEGIN TRANSACTION")
    try:
        for name, table in rows.items():
            _insert_table(cursor, into, TABLES[name], table)
        _insert_table(cursor, into, BATCH, _batch_columns(batches, now_seconds))
        cursor.execute("COMMIT")
    except duckdb.Error:
        _roll_back(cursor)
        raise


def _insert_table(cursor: Cursor, into: str, table: Table, values: Columns) -> None:
    # DuckDB finds ``incoming`` by its name: registering it, and naming and casting each column in SQL, made the
    # planning of a small insert cost several times the insert. NaN arrives as NULL; columns take their own types.
    incoming = values  # noqa: F841
    cursor.execute(f"INSERT INTO {into}.{table.name} BY NAME SELECT * FROM incoming")


def _roll_back(cursor: Cursor) -> None:
    try:
        cursor.execute("ROLLBACK")
    except duckdb.Error:
        return  # a failed commit has already ended its transaction


def _batch_columns(batches: Sequence[BatchId], now_seconds: float) -> Columns:
    sequences = np.array([batch.sequence for batch in batches], dtype=np.float64)
    return {
        "node": np.array([batch.node for batch in batches], dtype=object),
        "spool": np.array([batch.spool for batch in batches], dtype=object),
        "first": sequences,
        "last": sequences,
        "ts": columns.times(np.full(len(batches), now_seconds)),
    }


def written(cursor: Cursor, into: str, batches: Sequence[BatchId]) -> frozenset[BatchId]:
    """Which of these batches the open file holds.

    Raises:
        duckdb.Error: it cannot be read.
    """
    cursor.register("asked", _batch_columns(batches, 0.0))
    try:
        found = cursor.execute(
            f"SELECT DISTINCT b.node, b.spool, b.first FROM {into}.batch b "
            "JOIN asked a ON b.node = a.node AND b.spool = a.spool AND b.first = a.first"
        ).fetchall()
    finally:
        cursor.unregister("asked")
    return frozenset(BatchId(node=node, spool=spool, sequence=first) for node, spool, first in found)
