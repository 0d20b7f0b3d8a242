"""An open file with damaged blocks: what can be read goes to a new file in its place, the old one is set aside."""

from collections.abc import Iterable

import duckdb

from flopwatch_collector.store import attaching, hot, tally
from flopwatch_collector.store.database import Cursor, Database
from flopwatch_collector.store.ground import Ground
from flopwatch_collector.store.layout import synced
from flopwatch_collector.store.schema import HOT_TABLES, Table, quoted

GROUP_ROWS = 122_880
"""DuckDB's row group: what one damaged block makes unreadable."""


def salvage(ground: Ground, numbers: Iterable[int]) -> bool:
    """Replace the open files that cannot be read; whether there were any.

    Raises:
        duckdb.Error: a new file cannot be made.
        OSError: likewise.
    """
    damaged = [number for number in numbers if not _readable(ground.database, hot.alias(number))]
    for number in damaged:
        _replace(ground, number)
    return bool(damaged)


def _readable(database: Database, alias: str) -> bool:
    try:
        with database.cursor() as cursor:
            for table in HOT_TABLES:
                names = ", ".join(quoted(name) for name in table.columns)
                cursor.execute(f"SELECT bit_xor(hash({names})) FROM {alias}.{table.name}").fetchall()
    except duckdb.Error:
        return False
    return True


def _replace(ground: Ground, number: int) -> None:
    database, folder = ground.database, ground.folder
    alias, path = hot.alias(number), hot.path(folder, number)
    with hot.making(database, path) as new, database.cursor() as cursor:
        lost = {table.name: _copied(cursor, alias, table) for table in HOT_TABLES}
        (batches,) = cursor.execute(attaching.batch_count(hot.MAKING)).fetchall()[0]
    database.detach(alias)
    expected = tally.noted(path)
    for old in sorted(path.parent.glob(path.name + ".wal*")):
        attaching.set_aside(folder, old)
    kept = attaching.set_aside(folder, path)
    missing = None if expected is None else max(0, expected - batches)
    if missing:
        kept = kept.rename(kept.with_name(f"{kept.name}.missing-{missing}"))
    new.rename(path)
    synced(path.parent)
    tally.note(path, batches)
    database.attach(alias, path)
    words = ", ".join(f"{rows} rows of {name}" for name, rows in lost.items() if rows)
    ground.problems.add(f"{path} is damaged: {words or 'nothing'} could not be read; as it was it is {kept}")


def _copied(cursor: Cursor, alias: str, table: Table) -> int:
    """Copy a table group by group into the file that is made; rows that could not be read."""
    source, target = f"{alias}.{table.name}", f"{hot.MAKING}.{table.name}"
    (rows,) = cursor.execute(f"SELECT count(*) FROM {source}").fetchall()[0]
    lost = 0
    for first in range(0, rows, GROUP_ROWS):
        inside = f"rowid >= {first} AND rowid < {first + GROUP_ROWS}"
        try:
            cursor.execute(f"INSERT INTO {target} SELECT * FROM {source} WHERE {inside}")
        except duckdb.Error:
            lost += min(GROUP_ROWS, rows - first)
    return lost
