"""What holds the raw rows at one moment: open files by alias, closed files by table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from flopwatch_collector.store.database import literal
from flopwatch_collector.store.layout import RawFile
from flopwatch_collector.store.schema import Table, quoted


@dataclass(frozen=True, kw_only=True, slots=True)
class Catalogue:
    """Open and closed files; no row is in two of them."""

    hot: tuple[str, ...]
    files: Mapping[str, tuple[RawFile, ...]]

    def opened(self, alias: str) -> "Catalogue":
        """With one more open file."""
        return replace(self, hot=(*self.hot, alias))

    def closed(self, alias: str, files: Iterable[RawFile]) -> "Catalogue":
        """With the files that an open one became, in its place."""
        merged = dict(self.files)
        for file in files:
            merged[file.table] = (*merged.get(file.table, ()), file)
        return Catalogue(hot=tuple(name for name in self.hot if name != alias), files=merged)

    def without(self, gone: frozenset[RawFile]) -> "Catalogue":
        """Without these closed files."""
        kept = {
            table: tuple(file for file in files if file not in gone) for table, files in self.files.items()
        }
        return replace(self, files=kept)

    def source(self, table: Table, start: int | None = None, end: int | None = None) -> str:
        """The table's rows as an SQL table expression, without files that hold nothing in [start, end)."""
        none = ", ".join(f"NULL::{kind} AS {quoted(name)}" for name, kind in table.columns.items())
        parts = [f"SELECT {none} WHERE false"]
        parts += [f"SELECT * FROM {alias}.{table.name}" for alias in self.hot]
        chosen = [file for file in self.files.get(table.name, ()) if overlaps(file, start, end)]
        if chosen:
            parts.append(f"SELECT * FROM {parquet(chosen)}")
        return "(" + " UNION ALL BY NAME ".join(parts) + ")"


def overlaps(file: RawFile, start: int | None, end: int | None) -> bool:
    """Whether a file may hold rows of [start, end), in microseconds."""
    return (start is None or file.end >= start) and (end is None or file.start < end)


def parquet(files: Iterable[RawFile]) -> str:
    """Closed files as an SQL table expression."""
    paths = ", ".join(literal(file.path) for file in files)
    return f"read_parquet([{paths}], union_by_name = true)"
