"""Questions about raw rows, answered from open and closed files together."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import duckdb
import numpy as np

from flopwatch_collector.model import GPU_COLUMNS, Columns
from flopwatch_collector.store import columns, healing
from flopwatch_collector.store.catalogue import Catalogue, parquet
from flopwatch_collector.store.closing import OPEN_PHASES
from flopwatch_collector.store.columns import microseconds
from flopwatch_collector.store.ground import Ground
from flopwatch_collector.store.port import HostKind
from flopwatch_collector.store.rollup_query import among
from flopwatch_collector.store.schema import HOST_SAMPLES, TABLES, quoted

_MEANS = (
    "kernel_active_ratio", "tensor_active_ratio", "sm_active_ratio", "power_watts", "memory_used_bytes",
    "sm_clock_hertz",
)  # fmt: skip

RATE_LOOKBACK_SECONDS = 300.0
"""How far before an interval the sample may lie that its first rate is measured from."""


class Questions:
    """Asked from any thread; each answer is one consistent view."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def gpu_samples(
        self, start: float, end: float, names: tuple[str, ...], gpus: Iterable[int] | None
    ) -> Columns:
        """Samples sorted by (gpu, ts)."""
        _check_columns("gpu_samples", names)
        shown = tuple(dict.fromkeys(("ts", "gpu", *names)))
        return self._rows("gpu", (start, end), shown, _chosen("gpu", gpus))

    def steps(self, start: float, end: float, jobs: Iterable[int] | None) -> Columns:
        """Step rows sorted by (job, ts)."""
        return self._rows("step", (start, end), tuple(TABLES["step"].columns), _chosen("job", jobs))

    def events(self, start: float, end: float, kinds: Iterable[str] | None) -> Columns:
        """Events sorted by ts."""
        condition, values = "true", []
        if kinds is not None:
            condition, values = "kind IN (SELECT unnest(?::VARCHAR[]))", [list(kinds)]
        return self._rows("event", (start, end), tuple(TABLES["event"].columns), condition, values)

    def _rows(
        self,
        name: str,
        interval: tuple[float, float],
        shown: tuple[str, ...],
        condition: str,
        values: Iterable[object] = (),
    ) -> Columns:
        table = TABLES[name]
        start, end = (microseconds(time) for time in interval)
        select = ", ".join(columns.shown(column, table.columns[column]) for column in shown)
        order = ", ".join(f"t.{quoted(column)}" for column in table.order)
        return self._answered(
            lambda catalogue: (
                f"SELECT {select} FROM {catalogue.source(table, start, end)} AS t "
                f"WHERE {_within(start, end)} AND {condition} ORDER BY {order}"
            ),
            list(values),
        )

    def phases(self, start: float, end: float, jobs: Iterable[int] | None) -> Columns:
        """Phases that overlap the interval, each once."""
        table = TABLES["phase"]
        first, last = microseconds(start), microseconds(end)
        select = ", ".join(columns.shown(name, kind) for name, kind in table.columns.items())
        chosen = _chosen("job", jobs)

        def statement(catalogue: Catalogue) -> str:
            said = _said_phases(catalogue, first, last, self._oldest_open(catalogue))
            source = f"({said} WHERE ts < make_timestamp({last}) AND {chosen})"
            return _PHASES.format(select=select, source=source, first=first)

        return self._answered(statement)

    def _oldest_open(self, catalogue: Catalogue) -> int | None:
        """Begin of the oldest phase without an end in the open files that no closed hour's summary knows."""
        files = catalogue.files.get(OPEN_PHASES, ())
        known = f"(SELECT job, launch, kind, ts FROM {parquet(files)})" if files else _NO_PHASES
        hot = replace(catalogue, files={}).source(TABLES["phase"])
        found = self._fetched(_OLDEST_OPEN.format(hot=hot, known=known))["oldest"]
        return None if np.isnan(found).any() else int(found[0])

    def job_series(
        self, start: float, end: float, step_seconds: float, jobs: Iterable[int] | None
    ) -> Columns:
        """Samples of jobs in buckets that are multiples of the step."""
        table = TABLES["gpu"]
        first, last, step = (microseconds(value) for value in (start, end, step_seconds))
        means = ", ".join(f"avg({name}) AS {name}" for name in _MEANS)
        chosen = _chosen("job", jobs)
        return self._answered(
            lambda catalogue: (
                f"SELECT bucket / 1e6 AS ts, job::DOUBLE AS job, count(*)::DOUBLE AS samples, "
                f"count(DISTINCT gpu)::DOUBLE AS gpus, {means} FROM ("
                f"SELECT *, epoch_us(ts) // {step} * {step} AS bucket FROM {catalogue.source(table, first, last)} "
                f"WHERE {_within(first, last)} AND {chosen}) GROUP BY job, bucket ORDER BY 2, 1"
            )
        )

    def gpu_series(
        self, start: float, end: float, step_seconds: float, asked: tuple[tuple[str, ...], tuple[int, ...]]
    ) -> Columns:
        """Means of samples in buckets that are multiples of the step; ``asked`` is (columns, GPUs)."""
        names, gpus = asked
        _check_columns("gpu_series", names)
        table = TABLES["gpu"]
        first, last, step = (microseconds(value) for value in (start, end, step_seconds))
        means = "".join(f", avg({quoted(name)}) AS {quoted(name)}" for name in names)
        return self._answered(
            lambda catalogue: (
                f"SELECT bucket / 1e6 AS ts, gpu::DOUBLE AS gpu{means} FROM ("
                f"SELECT *, epoch_us(ts) // {step} * {step} AS bucket FROM {catalogue.source(table, first, last)} "
                f"WHERE {_within(first, last)} AND {among('gpu', gpus)}) GROUP BY gpu, bucket ORDER BY 2, 1"
            )
        )

    def port_samples(self, start: float, end: float, nodes: Iterable[int]) -> Columns:
        """Samples of network ports sorted by (node, port, ts)."""
        return self._rows("port", (start, end), tuple(TABLES["port"].columns), _chosen("node", nodes))

    def host_samples(self, kind: HostKind, start: float, end: float, numbers: tuple[int, ...]) -> Columns:
        """Host samples of nodes or of jobs, sorted by (node or job, ts)."""
        name = HOST_SAMPLES[kind]
        return self._rows(name, (start, end), tuple(TABLES[name].columns), _chosen(kind, numbers))

    def node_series(self, start: float, end: float, step_seconds: float, nodes: Iterable[int]) -> Columns:
        """Throughput of nodes in buckets: bytes by time over each port's gaps without a reset."""
        table = TABLES["port"]
        first, last, step = (microseconds(value) for value in (start, end, step_seconds))
        back = first - microseconds(RATE_LOOKBACK_SECONDS)
        chosen = _chosen("node", nodes)

        def statement(catalogue: Catalogue) -> str:
            rows = f"SELECT * FROM {catalogue.source(table, back, last)} WHERE {_within(back, last)} AND {chosen}"
            return _NODE_SERIES.format(source=f"({rows})", step=step, first=first)

        return self._answered(statement)

    def _answered(self, statement: Callable[[Catalogue], str], values: list[object] | None = None) -> Columns:
        """The answer; a closed file that cannot be read is set aside, and what is left answers."""
        sql = ""
        try:
            with self._ground.catalogue.borrowed() as catalogue:
                sql = statement(catalogue)
                return self._fetched(sql, values)
        except duckdb.Error as problem:
            if not healing.is_damage(problem) or not healing.without_unreadable(self._ground, sql):
                raise
        with self._ground.catalogue.borrowed() as catalogue:
            return self._fetched(statement(catalogue), values)

    def _fetched(self, sql: str, values: list[object] | None = None) -> Columns:
        return self._ground.database.answer(lambda: self._once(sql, values))

    def _once(self, sql: str, values: list[object] | None) -> Columns:
        """The answer; a database that turns out to be dead is reopened, for another try."""
        try:
            with self._ground.database.reader() as cursor:
                return columns.plain(cursor.execute(sql, values or []).fetchnumpy())
        except duckdb.Error:
            self._ground.revive()
            raise


def _check_columns(question: str, names: tuple[str, ...]) -> None:
    unknown = [name for name in names if name not in GPU_COLUMNS]
    if unknown:
        raise ValueError(f"{question}: no such column {unknown[0]!r}; known: {', '.join(GPU_COLUMNS)}")


def _within(start: int, end: int) -> str:
    return f"ts >= make_timestamp({start}) AND ts < make_timestamp({end})"


def _said_phases(catalogue: Catalogue, first: int, last: int, oldest_open: int | None) -> str:
    """What was said of phases: by closed files with ends in the interval, by the summary, and by open files.

    A closed file's row without an end does not count: its end may be in a file that is not read.
    """
    table, summary = TABLES["phase"], catalogue.files.get(OPEN_PHASES, ())
    if not summary:
        return f"SELECT * FROM {catalogue.source(table, end=last)}"
    begin = first if oldest_open is None else min(first, oldest_open)
    closed = replace(catalogue, hot=()).source(table, begin, last)
    hot = replace(catalogue, files={}).source(table)
    return (
        f'SELECT * FROM (SELECT * FROM {closed} WHERE "end" IS NOT NULL '
        f"UNION ALL BY NAME SELECT * FROM {parquet(summary)} UNION ALL BY NAME SELECT * FROM {hot})"
    )


def _chosen(column: str, numbers: Iterable[int] | None) -> str:
    return "true" if numbers is None else among(column, numbers)


_NO_PHASES = "(SELECT NULL AS job, NULL AS launch, NULL AS kind, NULL AS ts WHERE false)"
_OLDEST_OPEN = """
SELECT epoch_us(min(ts))::DOUBLE AS oldest FROM (
  SELECT job, launch, kind, ts FROM {hot} WHERE "end" IS NULL EXCEPT SELECT job, launch, kind, ts FROM {known}
)
"""

_PHASES = """
WITH last_said AS (
  SELECT * FROM {source} AS p
  QUALIFY row_number() OVER (PARTITION BY job, launch, kind, ts ORDER BY "end" DESC NULLS LAST) = 1
)
SELECT {select} FROM last_said AS t
WHERE t."end" IS NULL OR t."end" > make_timestamp({first}) OR t.ts >= make_timestamp({first})
ORDER BY t.job, t.ts
"""

_NODE_SERIES = """
WITH used AS (
  SELECT * FROM {source} AS p QUALIFY role = CASE WHEN bool_or(role = 'rdma') OVER (PARTITION BY node)
    THEN 'rdma' ELSE 'ethernet' END
), gaps AS (
  SELECT node, port, epoch_us(ts) AS instant, (epoch_us(ts) - epoch_us(lag(ts) OVER w)) / 1e6 AS seconds,
    transmit_bytes - lag(transmit_bytes) OVER w AS sent, receive_bytes - lag(receive_bytes) OVER w AS received
  FROM used WINDOW w AS (PARTITION BY node, port ORDER BY ts)
), ports AS (
  SELECT node, port, instant // {step} * {step} AS bucket,
    sum(sent) FILTER (sent >= 0) / sum(seconds) FILTER (sent >= 0) AS transmit,
    sum(received) FILTER (received >= 0) / sum(seconds) FILTER (received >= 0) AS receive
  FROM gaps WHERE instant >= {first} AND seconds > 0 GROUP BY ALL
)
SELECT bucket / 1e6 AS ts, node::DOUBLE AS node, sum(transmit) AS transmit_bytes_per_second,
  sum(receive) AS receive_bytes_per_second
FROM ports GROUP BY node, bucket ORDER BY node, bucket
"""
