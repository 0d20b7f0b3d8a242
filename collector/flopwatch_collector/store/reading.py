"""Reading every value of a closed file."""

from pathlib import Path

from flopwatch_collector.store.database import Database, literal


def all_of(path: Path) -> str:
    """The query that counts a file's rows, and decodes every column on the way."""
    return f"SELECT count(*), bit_xor(hash(t)) FROM read_parquet({literal(path)}) AS t"


def rows_of(database: Database, path: Path) -> int:
    """Rows of a closed file, all of whose values were read.

    Raises:
        duckdb.Error: it cannot be read.
    """
    with database.cursor() as cursor:
        (rows, _) = cursor.execute(all_of(path)).fetchall()[0]
        return int(rows)
