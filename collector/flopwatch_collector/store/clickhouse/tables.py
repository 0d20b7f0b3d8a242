"""The tables in ClickHouse: the raw tables of the embedded store, rollups, and which windows are newest.

On one server they are plain ``MergeTree`` tables. On a cluster raw rows lie in replicated tables of each shard
under a ``Distributed`` one, and rollups, which are small, are replicated to every node.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from flopwatch_collector.store.port import ROLLUP_KINDS, RollupKind
from flopwatch_collector.store.schema import INTEGER, NUMBER, REAL, TABLES, TEXT, TIME, Table

WINDOWS = "rollup_window"
FLUSH, REVISION = "flush", "revision"
INSTANT = "DateTime64(6, 'UTC')"
_TYPES = {TIME: INSTANT, NUMBER: "UInt32", INTEGER: "Int64", REAL: "Float64", TEXT: "String"}
_CODECS = {INSTANT: "DoubleDelta, ZSTD(1)", "UInt64": "Delta, ZSTD(1)"}
_SHARD_BY = {
    "gpu": "node",
    "node": "node",
    "port": "node",
    "step": "job",
    "phase": "job",
    "event": "flush",
    "host": "job",
}
_ADDED = {"node": ("cpu_pressure_ratio", "io_pressure_ratio", "major_faults", "cache_refaults")}
"""Columns that tables of earlier versions lack."""
LONG_KINDS: frozenset[RollupKind] = frozenset({"job1h", "ledger1d"})
"""Kinds that are kept for years."""
LONGEST_TTL_DAYS = 15_000
"""Longer ones would pass the year 2106, where the server's times begin anew."""
DEDUPLICATED_INSERTS = 1_000
"""So many inserts back a token is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Where the tables are and how long they keep what; ``cluster`` None is one server."""

    database: str
    cluster: str | None = None
    raw_days: float | None = None
    """None: rows go only when the collector drops them."""

    @property
    def everywhere(self) -> str:
        """What makes a statement run on every node."""
        return "" if self.cluster is None else f" ON CLUSTER {name(self.cluster)}"

    def stored(self, table: str) -> str:
        """The table that has a raw table's rows on each node."""
        return table if self.cluster is None else f"{table}_shard"


def name(text: str) -> str:
    """A name as SQL wants it."""
    return "`" + text.replace("\\", "\\\\").replace("`", "\\`") + "`"


def raw_types(table: Table) -> dict[str, str]:
    """Columns of a raw table with their types in ClickHouse."""
    required = {*table.order, "job"} & table.columns.keys()
    types = {
        column: _TYPES[kind] if column in required else f"Nullable({_TYPES[kind]})"
        for column, kind in table.columns.items()
    }
    return {**types, FLUSH: "UInt64"}


def statements(layout: Layout) -> Iterator[str]:
    """What makes the database and all tables that are not there yet; may be run again."""
    yield f"CREATE DATABASE IF NOT EXISTS {name(layout.database)}{layout.everywhere}"
    for table in TABLES.values():
        yield _raw(layout, table)
        if layout.cluster is not None:
            yield _distributed(layout, layout.cluster, table)
        yield from _added(layout, table)
    for kind in ROLLUP_KINDS:
        yield _rollup(layout, kind)
    yield _windows(layout)


def _raw(layout: Layout, table: Table) -> str:
    columns = [f"  {name(column)} {type_}{_codec(type_)}" for column, type_ in raw_types(table).items()]
    columns.append(f"  INDEX by_flush {FLUSH} TYPE minmax GRANULARITY 4")
    if "job" in table.columns and table.order[0] != "job":
        columns.append("  INDEX by_job job TYPE minmax GRANULARITY 4")
    return "\n".join((
        f"CREATE TABLE IF NOT EXISTS {_qualified(layout, layout.stored(table.name))}{layout.everywhere} (",
        ",\n".join(columns),
        f") ENGINE = {_engine(layout, table.name, sharded=True)}",
        "PARTITION BY toDate(ts)",
        f"ORDER BY ({', '.join(table.order)})",
        *ttl(layout),
        f"SETTINGS {_settings(layout)}, ttl_only_drop_parts = 1",
    ))  # fmt: skip


def _added(layout: Layout, table: Table) -> Iterator[str]:
    """What gives tables of earlier versions the columns that came later."""
    types = raw_types(table)
    columns = ", ".join(
        f"ADD COLUMN IF NOT EXISTS {name(column)} {types[column]}" for column in _ADDED.get(table.name, ())
    )
    for stored in dict.fromkeys((layout.stored(table.name), table.name)) if columns else ():
        yield f"ALTER TABLE {_qualified(layout, stored)}{layout.everywhere} {columns}"


def ttl(layout: Layout) -> tuple[str, ...]:
    """How long the server itself keeps raw rows."""
    if layout.raw_days is None or layout.raw_days > LONGEST_TTL_DAYS:
        return ()
    return (f"TTL toDateTime(ts) + toIntervalSecond({round(layout.raw_days * 86_400)})",)


def _distributed(layout: Layout, cluster: str, table: Table) -> str:
    columns = ", ".join(f"{name(column)} {type_}" for column, type_ in raw_types(table).items())
    parts = ", ".join((name(cluster), name(layout.database), name(layout.stored(table.name))))
    return (
        f"CREATE TABLE IF NOT EXISTS {_qualified(layout, table.name)}{layout.everywhere} ({columns})\n"
        f"ENGINE = Distributed({parts}, intHash64({_SHARD_BY[table.name]}))"
    )


def _rollup(layout: Layout, kind: RollupKind) -> str:
    return (
        f"CREATE TABLE IF NOT EXISTS {_qualified(layout, kind)}{layout.everywhere} (\n"
        f"  ts {INSTANT} CODEC(DoubleDelta, ZSTD(1)),\n  {REVISION} UInt64 CODEC(Delta, ZSTD(1))\n"
        f") ENGINE = {_engine(layout, kind, sharded=False)}\n"
        f"PARTITION BY toYYYYMM(ts)\nORDER BY (ts, {REVISION})\nSETTINGS {_settings(layout)}"
    )


def _windows(layout: Layout) -> str:
    return (
        f"CREATE TABLE IF NOT EXISTS {_qualified(layout, WINDOWS)}{layout.everywhere} (\n"
        f"  kind String,\n  ts {INSTANT},\n  {REVISION} UInt64\n"
        f") ENGINE = {_engine(layout, WINDOWS, sharded=False)}\n"
        f"ORDER BY (kind, ts, {REVISION})\nSETTINGS {_settings(layout)}"
    )


def _engine(layout: Layout, table: str, *, sharded: bool) -> str:
    if layout.cluster is None:
        return "MergeTree"
    shard, replica = ("{shard}", "{replica}") if sharded else ("all", "{shard}-{replica}")
    return f"ReplicatedMergeTree('/clickhouse/{layout.database}/{shard}/{table}', '{replica}')"


def _settings(layout: Layout) -> str:
    kind = "non_replicated" if layout.cluster is None else "replicated"
    return f"{kind}_deduplication_window = {DEDUPLICATED_INSERTS}"


def _codec(type_: str) -> str:
    inner = type_.removeprefix("Nullable(").removesuffix(")") if type_.startswith("Nullable(") else type_
    return f" CODEC({_CODECS.get(inner, 'ZSTD(1)')})"


def _qualified(layout: Layout, table: str) -> str:
    return f"{name(layout.database)}.{name(table)}"
