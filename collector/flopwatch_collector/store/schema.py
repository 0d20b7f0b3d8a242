"""The raw tables as they are kept: columns, types, and the order of closed hours."""

from dataclasses import dataclass

from flopwatch_collector import model

TIME, NUMBER, INTEGER, REAL, TEXT = "TIMESTAMP", "UINTEGER", "BIGINT", "DOUBLE", "VARCHAR"

_NUMBERS = frozenset({"gpu", "node", "job"})
_TEXTS = frozenset(
    {("port", "port"), ("port", "role"), ("event", "kind"), ("event", "value"), ("event", "text")}
)
_INTEGERS = frozenset({
    "memory_used_bytes", "clock_event_reasons", "pcie_transmit_bytes", "pcie_receive_bytes",
    "nvlink_transmit_bytes", "nvlink_receive_bytes", "ecc_corrected", "ecc_uncorrected", "remapped_rows",
    "recovery_action", "process_count", "memory_available_bytes", "memory_total_bytes", "disk_read_bytes",
    "disk_write_bytes", "major_faults", "cache_refaults", "training_processes", "loader_processes",
    "memory_limit_bytes", "transmit_bytes", "receive_bytes", "errors", "waits", "link_up", "source", "launch", "rank",
    "step", "steps_covered", "skipped_steps", "steady", "basis", "kind", "blocking", "committed", "code",
})  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """One raw table: its columns with their SQL types, and the key that closed hours are sorted by."""

    name: str
    columns: dict[str, str]
    order: tuple[str, ...]
    end: str = "ts"
    """The column whose greatest value ends the time a file covers."""

    @property
    def required(self) -> frozenset[str]:
        """Columns without which a row means nothing."""
        return frozenset(self.order) - {"job"}


def _type(table: str, column: str) -> str:
    if column in {"ts", "end"}:
        return TIME
    if (table, column) in _TEXTS:
        return TEXT
    if column in _NUMBERS:
        return NUMBER
    return INTEGER if column in _INTEGERS else REAL


def _table(name: str, columns: tuple[str, ...], order: tuple[str, ...], end: str = "ts") -> Table:
    types = {column: _type(name, column) for column in columns}
    return Table(name=name, columns=types, order=order, end=end)


TABLES = {
    table.name: table
    for table in (
        _table("gpu", model.GPU_COLUMNS, ("gpu", "ts")),
        _table("node", model.NODE_COLUMNS, ("node", "ts")),
        _table("port", model.PORT_COLUMNS, ("node", "port", "ts")),
        _table("step", model.STEP_COLUMNS, ("job", "ts")),
        _table("phase", model.PHASE_COLUMNS, ("job", "ts"), end="end"),
        _table("event", model.EVENT_COLUMNS, ("ts",)),
        _table("host", model.HOST_COLUMNS, ("job", "ts")),
    )
}
"""What a batch's rows go to, by the fields of ``RawRows``."""

HOST_SAMPLES = {"node": "node", "job": "host"}
"""The tables of host samples, by the column that says whose they are."""

BATCH = Table(
    name="batch",
    columns={"node": TEXT, "spool": TEXT, "first": INTEGER, "last": INTEGER, "ts": TIME},
    order=("node", "spool", "first"),
)
"""Sequences that arrived, as runs from ``first`` to ``last``; ``ts`` is the time of arrival."""

HOT_TABLES = (*TABLES.values(), BATCH)


def quoted(name: str) -> str:
    """A column's or table's name as SQL wants it."""
    return '"' + name.replace('"', '""') + '"'
