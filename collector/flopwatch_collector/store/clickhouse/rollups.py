"""Rollups and the ledger: rows carry a revision, and a last small insert says which revision of a window counts."""

import threading
from collections.abc import Iterable

import numpy as np

from flopwatch_collector.model import Columns
from flopwatch_collector.store import columns
from flopwatch_collector.store.clickhouse.arrivals import Arrivals
from flopwatch_collector.store.clickhouse.http import Client, StatementFailed, literal
from flopwatch_collector.store.clickhouse.questions import among, chosen, instant, within
from flopwatch_collector.store.clickhouse.tables import INSTANT, REVISION, WINDOWS, Layout, name
from flopwatch_collector.store.port import Overloaded, RollupKind, Unavailable

ORPHAN_REVISIONS = 100
"""Rows of a revision so far back that no window counts were never finished."""
_WINDOW_TYPES = {"kind": "String", "ts": INSTANT, REVISION: "UInt64"}
_OWN = ("ts", REVISION)
Types = dict[str, str]


class Rollups:
    """The windows of all kinds. Any thread may ask; putting is one collector's at a time."""

    def __init__(self, client: Client, arrivals: Arrivals, layout: Layout, seconds: float) -> None:
        self._client = client
        self._arrivals = arrivals
        self._layout = layout
        self._seconds = seconds
        self._lock = threading.Lock()

    def put(self, kind: RollupKind, windows: Iterable[float], rows: Columns) -> None:
        """Replace the rows of these windows, durably and in one step.

        Raises:
            ValueError: a row is of no named window, or columns differ in length or hold neither numbers nor text.
            Unavailable: they cannot be written.
        """
        named = np.array(sorted({columns.microseconds(window) for window in windows}), dtype=np.int64)
        table = _incoming(kind, frozenset(named.tolist()), rows)
        if not len(named):
            return
        with self._lock:
            revision = self._arrivals.next_number(REVISION)
            try:
                self._insert(kind, table, named, revision)
            except (StatementFailed, Overloaded) as problem:
                raise Unavailable(f"{kind} windows cannot be written: {problem}") from problem

    def _insert(
        self, kind: RollupKind, table: Columns, windows: "np.typing.NDArray[np.int64]", revision: int
    ) -> None:
        if len(table["ts"]):
            types = self._widened(kind, table)
            full = {**table, REVISION: np.full(len(table["ts"]), revision, dtype=np.uint64)}
            self._client.insert(name(kind), full, types, f"{kind}-{revision}")
        counted = {
            "kind": np.full(len(windows), kind, dtype=object),
            "ts": windows.view("datetime64[us]"),
            REVISION: np.full(len(windows), revision, dtype=np.uint64),
        }
        self._client.insert(name(WINDOWS), counted, _WINDOW_TYPES, f"{kind}-{revision}-windows")

    def _widened(self, kind: RollupKind, table: Columns) -> Types:
        """The types to insert as, after the table has got what columns it lacks."""
        known = self.types(kind)
        types: Types = {"ts": INSTANT, REVISION: "UInt64"}
        for column, values in table.items():
            if column == "ts":
                continue
            types[column] = _wider(known.get(column), _type_of(values))
            if known.get(column) == types[column]:
                continue
            how = "ADD COLUMN IF NOT EXISTS" if column not in known else "MODIFY COLUMN"
            self._client.run(
                f"ALTER TABLE {name(kind)}{self._layout.everywhere} {how} "
                f"{name(column)} {types[column]} CODEC(ZSTD(1))",
                {"alter_sync": "2"},
            )
        return types

    def types(self, kind: RollupKind) -> Types:
        """The columns that rows of this kind have so far, in the order they came, with their types."""
        found = self._client.ask(
            "SELECT name, type FROM system.columns WHERE database = currentDatabase() "
            f"AND table = {literal(kind)} ORDER BY position",
            self._seconds,
        )
        return dict(zip(found.get("name", ()), found.get("type", ()), strict=True))

    def rows(self, kind: RollupKind, start: float, end: float, jobs: Iterable[int] | None) -> Columns:
        """The newest rows of windows that start in [start, end), sorted by ts (and job, where there is one)."""
        known = self.types(kind)
        shown = [column for column in known if column != REVISION] or ["ts"]
        condition = "true" if jobs is None else chosen("job", jobs) if "job" in known else "false"
        keys = ", ".join(column for column in ("ts", "job") if column in known)
        found = self._client.ask(
            f"SELECT {', '.join(map(name, shown))} FROM {name(kind)} WHERE {within(start, end)} "
            f"AND {condition} AND (ts, {REVISION}) IN ({_newest(kind, start, end)}) ORDER BY {keys}",
            self._seconds,
        )
        return found or {column: _none(known[column]) for column in shown}

    def done(self, kind: RollupKind, start: float, end: float) -> frozenset[float]:
        """Starts of windows in [start, end) that have been put."""
        found = self._client.ask(
            f"SELECT DISTINCT ts FROM {WINDOWS} WHERE kind = {literal(kind)} AND {within(start, end)}",
            self._seconds,
        )
        return frozenset(found["ts"].tolist()) if found else frozenset()

    def oldest(self) -> float | None:
        """The earliest window of any kind."""
        found = self._client.ask(f"SELECT minOrNull(ts) AS found FROM {WINDOWS}", self._seconds)
        return None if not found or np.isnan(found["found"][0]) else float(found["found"][0])

    def drop(self, kind: RollupKind, before: float) -> None:
        """Forget windows that start before a time."""
        old = f"ts < {instant(before)}"
        if self._any(WINDOWS, f"kind = {literal(kind)} AND {old}"):
            self._mutate(WINDOWS, f"kind = {literal(kind)} AND {old}")
        if self._any(kind, old):
            self._mutate(kind, old)

    def _any(self, table: str, condition: str) -> bool:
        """Whether a table has such rows; looking costs less than a mutation that finds none."""
        found = self._client.ask(f"SELECT toInt64(count()) AS rows FROM {name(table)} WHERE {condition}")
        return bool(found["rows"][0])

    def drop_superseded(self) -> None:
        """Remove rows that a later put replaced, and those of puts that were never finished."""
        found = self._client.ask(
            f"SELECT kind, ts, {REVISION} FROM {WINDOWS} WHERE (kind, ts, {REVISION}) NOT IN "
            f"(SELECT kind, ts, max({REVISION}) FROM {WINDOWS} GROUP BY kind, ts) LIMIT 100000"
        )
        for kind in np.unique(found["kind"].astype(str)).tolist() if found else ():
            mine = found["kind"] == kind
            pairs = [
                f"({instant(ts)}, {int(revision)})"
                for ts, revision in zip(found["ts"][mine], found[REVISION][mine], strict=True)
            ]
            for at in range(0, len(pairs), 2_000):
                listed = f"(ts, {REVISION}) IN ({', '.join(pairs[at : at + 2_000])})"
                self._mutate(kind, listed)
                self._mutate(WINDOWS, f"kind = {literal(kind)} AND {listed}")

    def drop_unfinished(self, kind: RollupKind) -> None:
        """Remove rows of puts that were begun long ago and never finished."""
        newest = self._arrivals.next_number(REVISION)
        found = self._client.ask(
            f"SELECT DISTINCT {REVISION} FROM {name(kind)} WHERE {REVISION} < {max(0, newest - ORPHAN_REVISIONS)} "
            f"AND {REVISION} NOT IN (SELECT {REVISION} FROM {WINDOWS} WHERE kind = {literal(kind)})"
        )
        if found and len(found[REVISION]):
            self._mutate(kind, among(REVISION, (str(int(each)) for each in found[REVISION])))

    def _mutate(self, table: str, condition: str) -> None:
        self._client.run(
            f"ALTER TABLE {name(table)}{self._layout.everywhere} DELETE WHERE {condition}",
            {"mutations_sync": "2"},
        )


def _newest(kind: RollupKind, start: float, end: float) -> str:
    return (
        f"SELECT ts, max({REVISION}) FROM {WINDOWS} "
        f"WHERE kind = {literal(kind)} AND {within(start, end)} GROUP BY ts"
    )


def _incoming(kind: str, windows: frozenset[int], rows: Columns) -> Columns:
    """The rows as they are inserted, with ``ts`` in any case."""
    seconds = np.asarray(rows.get("ts", np.empty(0)), dtype=np.float64)
    for column, values in rows.items():
        if len(values) != len(seconds):
            raise ValueError(f"{kind}.{column}: {len(values)} values for {len(seconds)} rows")
    stamps = columns.times(seconds)
    strange = set(np.unique(stamps.view(np.int64)).tolist()) - windows
    if strange:
        raise ValueError(f"{kind}: rows of window {min(strange) / 1e6:g}, which is not among the windows put")
    others = {
        column: _plain(f"{kind}.{column}", np.asarray(values))
        for column, values in rows.items()
        if column != "ts"
    }
    return {"ts": stamps, **others}


def _plain(where: str, values: columns.Array) -> columns.Array:
    if values.dtype.kind in "OU":
        return columns.texts(where, values)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"{where} holds {values.dtype}; allowed: numbers or strings")
    return values


def _type_of(values: columns.Array) -> str:
    return {"f": "Nullable(Float64)", "O": "Nullable(String)"}.get(values.dtype.kind, "Nullable(Int64)")


def _wider(known: str | None, wanted: str) -> str:
    """The type that holds values of both: text above real numbers above whole ones."""
    order = ("Nullable(Int64)", "Nullable(Float64)", "Nullable(String)")
    return wanted if known is None else max(known, wanted, key=order.index)


def _none(type_: str) -> columns.Array:
    return np.empty(0, dtype=object if "String" in type_ else np.float64)
