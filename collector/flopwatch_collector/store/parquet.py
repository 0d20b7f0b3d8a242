"""A small table as one Parquet file, in memory."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import duckdb

from flopwatch_collector.store.database import literal
from flopwatch_collector.store.schema import quoted

ColumnKind = Literal["VARCHAR", "DOUBLE", "BIGINT", "BOOLEAN", "TIMESTAMPTZ"]


def parquet_bytes(columns: Mapping[str, ColumnKind], rows: Sequence[Mapping[str, object]]) -> bytes:
    """The file's bytes; columns keep their kind, also where every value is None."""
    definition = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
    places = ", ".join("?" for _ in columns)
    with tempfile.TemporaryDirectory(prefix="flopwatch-parquet-") as folder:
        target = Path(folder) / "table.parquet"
        with duckdb.connect(config={"threads": 1, "autoinstall_known_extensions": "false"}) as connection:
            connection.execute(f"CREATE TABLE answer ({definition})")
            values = [[row.get(name) for name in columns] for row in rows]
            if values:
                connection.executemany(f"INSERT INTO answer VALUES ({places})", values)
            connection.execute(f"COPY answer TO {literal(target)} (FORMAT parquet, COMPRESSION zstd)")
        return target.read_bytes()
