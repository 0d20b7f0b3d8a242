"""Rollups and the ledger: windows are put as append-only files, superseded by later puts, merged by upkeep."""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np

from flopwatch_collector.model import Columns
from flopwatch_collector.store import attaching, columns, reading
from flopwatch_collector.store.closing import COPY_OPTIONS, NotWhole
from flopwatch_collector.store.database import Cursor, Database, literal
from flopwatch_collector.store.layout import Folder, complete, drop_temporary, removed
from flopwatch_collector.store.port import RollupKind
from flopwatch_collector.store.problems import Problems
from flopwatch_collector.store.published import Published
from flopwatch_collector.store.rollup_files import (
    NOTHING,
    Order,
    RollupFile,
    RollupState,
    described,
    file_name,
    from_description,
    is_named,
)
from flopwatch_collector.store.rollup_query import Span, port_columns, rows_query
from flopwatch_collector.store.schema import INTEGER, REAL, TEXT, TIME, quoted

KINDS: tuple[RollupKind, ...] = ("job5m", "job1h", "ledger5m", "ledger1d")

MOST_FILES = 24
"""The newest day or month is merged when it has more files than this, so that a query opens few."""
MOST_CLOSED_FILES = 6
"""Likewise for older ones, where late data adds files; retention merges them to one."""


Period = Callable[[float], tuple[float, float]]
"""The day or month, as [start, end), that a time is in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """Rows to be written as a file: an SQL query, what it yields, and the windows it is all there is of."""

    query: str
    columns: Mapping[str, str]
    windows: frozenset[int]


class Rollups:
    """The windows of one kind; any thread may put, ask or merge."""

    def __init__(self, *, kind: RollupKind, folder: Folder, database: Database, problems: Problems) -> None:
        self.kind = kind
        self._root = folder
        self._problems = problems
        self._folder = folder.rollup(kind)
        self._database = database
        self._merging = threading.Lock()
        drop_temporary(self._folder)
        self.state: Published[RollupState] = Published(self._found(folder, problems))
        self._revision = max((file.order[0] for file in self.state.peek().files), default=0)
        self._putting = threading.Lock()
        self.drop_superseded()

    def _found(self, folder: Folder, problems: Problems) -> RollupState:
        state = NOTHING
        with self._database.cursor() as cursor:
            for path in filter(is_named, sorted(self._folder.glob("*.parquet"))):
                try:
                    state = state.with_file(_read_description(cursor, path))
                except (duckdb.Error, NotWhole) as problem:
                    attaching.set_aside(folder, path)
                    problems.add(f"{path} could not be read and was set aside in {folder.aside}: {problem}")
        return state

    def strays(self) -> list[Path]:
        """Files in the folder whose names are none of the store's."""
        return [path for path in sorted(self._folder.glob("*.parquet")) if not is_named(path)]

    def put(self, windows: Iterable[float], rows: Columns) -> None:
        """Replace the rows of these windows, durably and in one step.

        Raises:
            ValueError: a row is of no named window, or columns differ in length or hold neither numbers nor text.
            duckdb.Error: it cannot be written.
            OSError: likewise.
        """
        named = frozenset(columns.microseconds(window) for window in windows)
        table = _incoming(self.kind, named, rows)
        if not named:
            return
        kinds = {name: _kind(name, values) for name, values in table.items()}
        expressions = ", ".join(f"{_stored(name, kind)} AS {quoted(name)}" for name, kind in kinds.items())
        content = Content(query=f"SELECT {expressions} FROM incoming", columns=kinds, windows=named)
        with self._putting, self._database.cursor() as cursor:
            cursor.register("incoming", table)
            try:
                file = self._written(cursor, (self._revision + 1, 0), content)
            finally:
                cursor.unregister("incoming")
            self._revision += 1
            self.state.swap(lambda state: state.with_file(file))

    def _written(self, cursor: Cursor, order: Order, content: Content) -> RollupFile:
        path = self._folder / file_name(order, content.windows)
        keys = ", ".join(quoted(name) for name in ("ts", "job") if name in content.columns)
        description = described(content.windows, content.columns)
        with complete(path) as temporary:
            target = literal(temporary)
            (rows,) = cursor.execute(
                f"COPY (SELECT * FROM ({content.query}) ORDER BY {keys}) TO {target} "
                f"({COPY_OPTIONS}, KV_METADATA {{flopwatch: {literal(description)}}})"
            ).fetchall()[0]
            (found,) = cursor.execute(f"SELECT count(*) FROM read_parquet({target})").fetchall()[0]
            if found != rows:
                raise NotWhole(f"{path} has {found} rows instead of {rows}")
        return RollupFile(order=order, windows=content.windows, columns=content.columns, path=path, rows=rows)

    def merge(self, start: float, end: float) -> None:
        """Rewrite the windows of [start, end) as one file, without superseded rows.

        Raises:
            duckdb.Error: it cannot be written; everything is as it was.
            OSError: likewise.
        """
        first, last = columns.microseconds(start), columns.microseconds(end)
        with self._merging:
            with self.state.borrowed() as state, self._database.cursor() as cursor:
                inputs = state.overlapping(first, last)
                windows = frozenset(window for window in state.newest if first <= window < last)
                if len(inputs) < 2 or not windows:
                    return
                kinds = state.columns()
                query = rows_query(state, kinds, Span(start=first, end=last))
                order = (max(file.order[0] for file in inputs), 1 + max(file.order[1] for file in inputs))
                content = Content(query=query, columns=kinds, windows=windows)
                file = self._written(cursor, order, content)
            self.state.swap(lambda current: current.with_file(file))
            self.drop_superseded()

    def rows(self, start: float, end: float, jobs: Iterable[int] | None = None) -> Columns:
        """The newest rows of windows that start in [start, end), sorted by ts (and job, where there is one)."""
        span = Span(
            start=columns.microseconds(start),
            end=columns.microseconds(end),
            jobs=None if jobs is None else tuple(jobs),
        )
        try:
            return self._database.answer(lambda: self._rows(span))
        except (duckdb.OutOfMemoryException, duckdb.InterruptException):
            raise
        except duckdb.Error:
            if not self._set_aside_unreadable(span):
                raise
        return self._database.answer(lambda: self._rows(span))

    def _set_aside_unreadable(self, span: Span) -> bool:
        """Let go of files that can no longer be read: their windows count as not put; whether there were any."""
        with self._merging:
            files = self.state.peek().overlapping(span.start, span.end)
            damaged = frozenset(file for file in files if not self._readable(file))
            if not damaged:
                return False
            self.state.swap(lambda state: state.without(damaged))
            self.state.wait_for_readers()
            for file in damaged:
                kept = attaching.set_aside(self._root, file.path)
                self._problems.add(f"{file.path} can no longer be read and was set aside as {kept}")
            return True

    def _readable(self, file: RollupFile) -> bool:
        try:
            return reading.rows_of(self._database, file.path) == file.rows
        except duckdb.Error:
            return False

    def _rows(self, span: Span) -> Columns:
        with self.state.borrowed() as state, self._database.reader() as cursor:
            kinds = state.columns() or {"ts": TIME}
            keys = ", ".join(quoted(name) for name in ("ts", "job") if name in kinds)
            query = f"SELECT * FROM ({rows_query(state, kinds, span)}) ORDER BY {keys}"
            return columns.plain(cursor.execute(f"SELECT {port_columns(kinds)} FROM ({query})").fetchnumpy())

    def done(self, start: float, end: float) -> frozenset[float]:
        """Starts of windows in [start, end) that have been put."""
        first, last = columns.microseconds(start), columns.microseconds(end)
        return frozenset(window / 1e6 for window in self.state.peek().newest if first <= window < last)

    def crowded(self, period: Period, most_closed: int) -> list[tuple[float, float]]:
        """Periods of more files than a query should open: the newest may have many, older ones ``most_closed``."""
        state = self.state.peek()
        counts: dict[tuple[float, float], int] = {}
        for file in state.files:
            bounds = period(file.start / 1e6)
            if any(state.newest[window] is file for window in file.windows if window < bounds[1] * 1e6):
                counts[bounds] = counts.get(bounds, 0) + 1
        newest = max(counts, default=None)
        return [
            bounds
            for bounds, count in counts.items()
            if count > (MOST_FILES if bounds == newest else most_closed)
        ]

    def drop_superseded(self) -> None:
        """Remove files all of whose windows were put again."""
        self.drop(self.state.peek().dead_files())

    def drop(self, gone: frozenset[RollupFile]) -> int:
        """Forget files and remove them when no reader uses them; returns bytes freed."""
        if not gone:
            return 0
        self.state.swap(lambda state: state.without(gone))
        self.state.wait_for_readers()
        return removed(file.path for file in gone)


def _read_description(cursor: Cursor, path: Path) -> RollupFile:
    said = cursor.execute(
        f"SELECT value FROM parquet_kv_metadata({literal(path)}) WHERE key::VARCHAR = 'flopwatch'"
    ).fetchall()
    (rows,) = cursor.execute(f"SELECT count(*) FROM read_parquet({literal(path)})").fetchall()[0]
    try:
        return from_description(path, bytes(said[0][0]).decode(), rows)
    except (IndexError, KeyError, TypeError, ValueError) as problem:
        raise NotWhole(f"{path} does not say which windows it holds") from problem


def _incoming(kind: str, windows: frozenset[int], rows: Columns) -> Columns:
    """The rows as they are inserted, with ``ts`` in any case."""
    seconds = np.asarray(rows.get("ts", np.empty(0)), dtype=np.float64)
    for name, values in rows.items():
        if len(values) != len(seconds):
            raise ValueError(f"{kind}.{name}: {len(values)} values for {len(seconds)} rows")
    stamps = columns.times(seconds)
    strange = set(np.unique(stamps.view(np.int64)).tolist()) - windows
    if strange:
        raise ValueError(f"{kind}: rows of window {min(strange) / 1e6:g}, which is not among the windows put")
    others = {
        name: _plain(f"{kind}.{name}", np.asarray(values)) for name, values in rows.items() if name != "ts"
    }
    return {"ts": stamps, **others}


def _plain(where: str, values: columns.Array) -> columns.Array:
    if values.dtype.kind in "OU":
        return columns.texts(where, values)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{where} holds {values.dtype}; allowed: numbers or strings")
    return values


def _kind(name: str, values: columns.Array) -> str:
    if name == "ts":
        return TIME
    return {"f": REAL, "b": INTEGER, "O": TEXT}.get(values.dtype.kind, INTEGER)


def _stored(name: str, kind: str) -> str:
    return columns.stored(name, kind) if kind in {TIME, TEXT, REAL} else f"{quoted(name)}::{kind}"
