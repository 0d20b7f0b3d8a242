"""Questions about raw rows, in ClickHouse's SQL; each sees whole flushes only."""

from collections.abc import Iterable

import numpy as np

from flopwatch_collector.model import GPU_COLUMNS, Columns, empty
from flopwatch_collector.store.clickhouse.arrivals import Arrivals
from flopwatch_collector.store.clickhouse.http import Client, literal
from flopwatch_collector.store.clickhouse.tables import name
from flopwatch_collector.store.columns import microseconds
from flopwatch_collector.store.port import HostKind
from flopwatch_collector.store.schema import HOST_SAMPLES, TABLES, TEXT

_MEANS = (
    "kernel_active_ratio", "tensor_active_ratio", "sm_active_ratio", "power_watts", "memory_used_bytes",
    "sm_clock_hertz",
)  # fmt: skip
_JOB_SERIES = ("ts", "job", "samples", "gpus", *_MEANS)
_NODE_SERIES_COLUMNS = ("ts", "node", "transmit_bytes_per_second", "receive_bytes_per_second")
RATE_LOOKBACK_SECONDS = 300.0
"""How far before an interval the sample may lie that its first rate is measured from."""


class Questions:
    """Asked from any thread.

    Raises:
        Unavailable: ClickHouse or the control database cannot be reached.
        TooSlow: a question took longer than ``seconds``.
    """

    def __init__(self, client: Client, arrivals: Arrivals, seconds: float) -> None:
        self._client = client
        self._arrivals = arrivals
        self._seconds = seconds

    def gpu_samples(
        self, start: float, end: float, names: tuple[str, ...], gpus: Iterable[int] | None
    ) -> Columns:
        """Samples sorted by (gpu, ts)."""
        _check_columns("gpu_samples", names)
        shown = tuple(dict.fromkeys(("ts", "gpu", *names)))
        return self._rows("gpu", (start, end), shown, chosen("gpu", gpus))

    def steps(self, start: float, end: float, jobs: Iterable[int] | None) -> Columns:
        """Step rows sorted by (job, ts); one that two collectors took from two nodes is one."""
        once = (
            "LIMIT 1 BY job, launch, step, "
            "if(isNull(launch) OR isNull(step), rowNumberInAllBlocks() + 1, toUInt64(0))"
        )
        return self._rows("step", (start, end), tuple(TABLES["step"].columns), chosen("job", jobs), once)

    def events(self, start: float, end: float, kinds: Iterable[str] | None) -> Columns:
        """Events sorted by ts."""
        condition = "true" if kinds is None else among("kind", map(literal, kinds))
        return self._rows("event", (start, end), tuple(TABLES["event"].columns), condition)

    def _rows(
        self,
        table: str,
        interval: tuple[float, float],
        shown: tuple[str, ...],
        condition: str,
        once: str = "",
    ) -> Columns:
        select, order = ", ".join(map(name, shown)), ", ".join(TABLES[table].order)
        return self._asked(
            f"SELECT {select} FROM {name(table)} WHERE {within(*interval)} AND {condition} "
            f"AND {self._counting()} ORDER BY {order} {once}",
            _blank(table, shown),
        )

    def phases(self, start: float, end: float, jobs: Iterable[int] | None) -> Columns:
        """Phases that overlap the interval, each once."""
        first, last = instant(start), instant(end)
        shown = tuple(TABLES["phase"].columns)
        select = ", ".join(map(name, shown))
        return self._asked(
            f"SELECT {select} FROM (SELECT {select} FROM phase WHERE ts < {last} AND {chosen('job', jobs)} "
            f"AND {self._counting()} ORDER BY job, ts, launch, kind, `end` DESC NULLS LAST "
            "LIMIT 1 BY job, launch, kind, ts) "
            f"WHERE isNull(`end`) OR `end` > {first} OR ts >= {first} ORDER BY job, ts",
            _blank("phase", shown),
        )

    def job_series(
        self, start: float, end: float, step_seconds: float, jobs: Iterable[int] | None
    ) -> Columns:
        """Samples of jobs in buckets that are multiples of the step."""
        step = microseconds(step_seconds)
        means = ", ".join(f"avg({each}) AS mean_{each}" for each in _MEANS)
        found = self._asked(
            f"SELECT intDiv(toUnixTimestamp64Micro(ts), {step}) * {step} / 1e6 AS bucket, job, "
            f"count() AS samples, uniqExact(gpu) AS gpus, {means} FROM gpu "
            f"WHERE {within(start, end)} AND {chosen('job', jobs)} AND {self._counting()} "
            "GROUP BY job, bucket ORDER BY job, bucket",
            empty(_JOB_SERIES),
        )
        return dict(zip(_JOB_SERIES, found.values(), strict=True))

    def gpu_series(
        self, start: float, end: float, step_seconds: float, asked: tuple[tuple[str, ...], tuple[int, ...]]
    ) -> Columns:
        """Means of samples in buckets that are multiples of the step; ``asked`` is (columns, GPUs)."""
        names, gpus = asked
        _check_columns("gpu_series", names)
        step = microseconds(step_seconds)
        means = "".join(f", avg({name(each)}) AS mean_{each}" for each in names)
        found = self._asked(
            f"SELECT intDiv(toUnixTimestamp64Micro(ts), {step}) * {step} / 1e6 AS bucket, gpu{means} FROM gpu "
            f"WHERE {within(start, end)} AND {chosen('gpu', gpus)} AND {self._counting()} "
            "GROUP BY gpu, bucket ORDER BY gpu, bucket",
            empty(("ts", "gpu", *names)),
        )
        return dict(zip(("ts", "gpu", *names), found.values(), strict=True))

    def port_samples(self, start: float, end: float, nodes: tuple[int, ...]) -> Columns:
        """Samples of network ports sorted by (node, port, ts)."""
        return self._rows("port", (start, end), tuple(TABLES["port"].columns), chosen("node", nodes))

    def host_samples(self, kind: HostKind, start: float, end: float, numbers: tuple[int, ...]) -> Columns:
        """Host samples of nodes or of jobs, sorted by (node or job, ts)."""
        table = HOST_SAMPLES[kind]
        return self._rows(table, (start, end), tuple(TABLES[table].columns), chosen(kind, numbers))

    def node_series(self, start: float, end: float, step_seconds: float, nodes: Iterable[int]) -> Columns:
        """Throughput of nodes in buckets: bytes by time over each port's gaps without a reset."""
        source = (
            f"(SELECT node, port, role, ts, transmit_bytes, receive_bytes FROM port "
            f"WHERE {within(start - RATE_LOOKBACK_SECONDS, end)} AND {chosen('node', nodes)} "
            f"AND {self._counting()})"
        )
        return self._asked(
            _NODE_SERIES.format(source=source, step=microseconds(step_seconds), first=microseconds(start)),
            empty(_NODE_SERIES_COLUMNS),
        )

    def latest(self, since_flush: int, condition: str) -> Columns:
        """The newest sample of each GPU among rows of later flushes, ``GPU_COLUMNS``."""
        select = ", ".join(map(name, GPU_COLUMNS))
        return self._asked(
            f"SELECT {select} FROM gpu WHERE flush > {since_flush} AND {condition} AND {self._counting()} "
            "ORDER BY gpu, ts DESC LIMIT 1 BY gpu",
            empty(GPU_COLUMNS),
        )

    def newest_sample(self) -> float | None:
        """Event time of the newest sample."""
        found = self._asked(
            f"SELECT maxOrNull(ts) AS found FROM gpu WHERE {self._counting()}", empty(("found",))
        )
        return _known(found["found"])

    def oldest_sample(self, before: float) -> float | None:
        """Event time of the oldest sample before a time; None when there is none."""
        found = self._asked(
            f"SELECT minOrNull(ts) AS found FROM gpu WHERE ts < {instant(before)} AND {self._counting()}",
            empty(("found",)),
        )
        return _known(found["found"])

    def _counting(self) -> str:
        return self._arrivals.snapshot().condition

    def _asked(self, sql: str, blank: Columns) -> Columns:
        """The answer with numbers as float64; the blank table where it has no row."""
        found = self._client.ask(sql, self._seconds)
        if not found or not len(next(iter(found.values()))):
            return blank
        return {
            column: values if values.dtype.kind == "O" else values.astype(np.float64)
            for column, values in found.items()
        }


def _known(values: "np.typing.NDArray[np.float64]") -> float | None:
    return None if not len(values) or np.isnan(values[0]) else float(values[0])


def _blank(table: str, shown: tuple[str, ...]) -> Columns:
    kinds = TABLES[table].columns
    return {column: np.empty(0, dtype=object if kinds[column] == TEXT else np.float64) for column in shown}


def _check_columns(question: str, names: tuple[str, ...]) -> None:
    unknown = [each for each in names if each not in GPU_COLUMNS]
    if unknown:
        raise ValueError(f"{question}: no such column {unknown[0]!r}; known: {', '.join(GPU_COLUMNS)}")


def instant(seconds: float) -> str:
    """A time as SQL wants it."""
    return f"fromUnixTimestamp64Micro({microseconds(seconds)}, 'UTC')"


def within(start: float, end: float) -> str:
    """The condition that a row is of [start, end)."""
    return f"ts >= {instant(start)} AND ts < {instant(end)}"


def chosen(column: str, numbers: Iterable[int] | None) -> str:
    """The condition that a column is one of these numbers; None is any."""
    return "true" if numbers is None else among(column, (str(int(number)) for number in numbers))


def among(column: str, literals: Iterable[str]) -> str:
    """The condition that a column is one of these literals."""
    listed = ", ".join(literals)
    return f"{name(column)} IN ({listed})" if listed else "false"


_NODE_SERIES = """
WITH used AS (
  SELECT p.* FROM {source} AS p
  WHERE role = if(node IN (SELECT node FROM {source} WHERE role = 'rdma'), 'rdma', 'ethernet')
), gaps AS (
  SELECT node, port, toUnixTimestamp64Micro(ts) AS instant,
    (toUnixTimestamp64Micro(ts) - lagInFrame(toNullable(toUnixTimestamp64Micro(ts))) OVER w) / 1e6 AS seconds,
    transmit_bytes - lagInFrame(transmit_bytes) OVER w AS sent,
    receive_bytes - lagInFrame(receive_bytes) OVER w AS received
  FROM used WINDOW w AS (PARTITION BY node, port ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
), ports AS (
  SELECT node, port, intDiv(instant, {step}) * {step} AS bucket,
    sum(if(sent >= 0, sent, NULL)) / sum(if(sent >= 0, seconds, NULL)) AS transmit,
    sum(if(received >= 0, received, NULL)) / sum(if(received >= 0, seconds, NULL)) AS receive
  FROM gaps WHERE instant >= {first} AND seconds > 0 GROUP BY node, port, bucket
)
SELECT bucket / 1e6 AS ts, node, sum(transmit) AS transmit_bytes_per_second,
  sum(receive) AS receive_bytes_per_second
FROM ports GROUP BY node, bucket ORDER BY node, bucket
"""
