"""Batches as columns of the raw tables, many batches at once: a small table costs more than its rows do."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from flopwatch.wire import Batch, StepRecord
from flopwatch_collector.ingest.place import Place
from flopwatch_collector.ingest.queues import events_of
from flopwatch_collector.ingest.steps import step_columns
from flopwatch_collector.model import (
    GPU_METRICS,
    HOST_COLUMNS,
    NO_JOB,
    NODE_COLUMNS,
    PHASE_KINDS,
    PORT_COLUMNS,
    Columns,
    RawRows,
)

LONGEST_INTERVAL_SECONDS = 86_400.0
_NODE_METRICS = NODE_COLUMNS[2:]
_HOST_METRICS = HOST_COLUMNS[3:]
_PORT_NUMBERS = PORT_COLUMNS[4:]
Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """A batch whose names are resolved to numbers."""

    batch: Batch
    place: Place
    gpus: dict[str, int | None]
    """By UUID; ``None`` for a GPU that this node does not report."""
    jobs: dict[str, int]
    steps: tuple[StepRecord, ...] = ()
    """Those that nobody has reported before."""
    step_launches: tuple[int, ...] = ()
    phase_launches: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Extent:
    """How much of a group is of one batch."""

    rows: int
    first_seconds: float | None
    """Event time of the earliest row that figures are made from; ``None`` without any."""
    last_seconds: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Rows of batches in one set of tables."""

    rows: RawRows
    batches: int
    owners: dict[str, Array] = field(default_factory=dict)
    """By table with rows: the position of each row's batch."""

    def extents(self) -> list[Extent]:
        """One a batch."""
        counts = np.zeros(self.batches, dtype=np.int64)
        first, last = np.full(self.batches, np.inf), np.full(self.batches, -np.inf)
        for name, owners in self.owners.items():
            counts += np.bincount(owners, minlength=self.batches)
            at, times = _event_times(name, owners, getattr(self.rows, name))
            np.minimum.at(first, at, times)
            np.maximum.at(last, at, times)
        return [
            Extent(rows=count, first_seconds=early, last_seconds=late)
            if early <= late
            else Extent(rows=count, first_seconds=None, last_seconds=None)
            for count, early, late in zip(counts.tolist(), first.tolist(), last.tolist(), strict=True)
        ]


def _event_times(name: str, owners: Array, table: Columns) -> tuple[Array, Array]:
    """Times that figures of the past may change from; a phase that still lasts is sent again and again."""
    if name in ("node", "port", "host"):
        return owners[:0], table["ts"][:0]
    if name == "phase":
        over = ~np.isnan(table["end"])
        return owners[over], table["ts"][over]
    return owners, table["ts"]


def together(batches: Sequence[Taken]) -> Group:
    """The rows of all batches, which ``decode`` has checked."""
    tables: dict[str, Columns] = {}
    owners: dict[str, Array] = {}
    for name, (rows_of, made) in _TABLES.items():
        stretch = _Stretch(batches, [len(rows_of(each)) for each in batches])
        if not stretch.count:
            continue
        columns = made(stretch, [row for each in batches for row in rows_of(each)])
        mine = stretch.owners
        if name == "gpu" and not (own := columns["gpu"] > 0).all():
            columns, mine = {key: values[own] for key, values in columns.items()}, mine[own]
        tables[name], owners[name] = columns, mine
    return Group(rows=RawRows(**tables), owners=owners, batches=len(batches))


class _Stretch:
    """Which of the rows below each other are of which batch."""

    def __init__(self, batches: Sequence[Taken], lengths: list[int]) -> None:
        self.batches = batches
        self._lengths = lengths
        self.count = sum(lengths)

    @property
    def owners(self) -> Array:
        """The position of each row's batch."""
        return np.repeat(np.arange(len(self.batches)), self._lengths)

    def each(self, value: Callable[[Place], float], kind: type = np.float64) -> Array:
        """A value of the batch's place at each of its rows."""
        return np.repeat(np.array([value(each.place) for each in self.batches], dtype=kind), self._lengths)

    def nodes(self) -> Array:
        """The number of each row's node."""
        return self.each(lambda place: place.node, np.int64)

    def times(self, seconds: Iterable[float]) -> Array:
        """Event times on the collector's clock; none is later than its batch's arrival."""
        times = np.array(list(seconds), dtype=np.float64) + self.each(lambda place: place.offset_seconds)
        earliest = self.each(lambda place: place.earliest_seconds)
        return np.clip(times, earliest, self.each(lambda place: place.latest_seconds))


def _gpu_rows(stretch: _Stretch, rows: Sequence[Any]) -> Columns:
    """``GPU_COLUMNS``; GPU 0 where another node reports the GPU."""
    table = _numbers(rows, ("interval_seconds", *GPU_METRICS))
    intervals = table[0]
    unknown = ~((intervals > 0.0) & (intervals <= LONGEST_INTERVAL_SECONDS))
    intervals[unknown] = stretch.each(lambda place: place.interval_seconds)[unknown]
    numbers = [each.gpus[row.gpu] or 0 for each in stretch.batches for row in each.batch.gpu_samples]
    jobs = [
        NO_JOB if row.job is None else each.jobs[row.job]
        for each in stretch.batches
        for row in each.batch.gpu_samples
    ]
    return {
        "ts": stretch.times(row.time_seconds for row in rows),
        "gpu": np.array(numbers, dtype=np.int64),
        "node": stretch.nodes(),
        "job": np.array(jobs, dtype=np.int64),
        "interval_seconds": intervals,
        **dict(zip(GPU_METRICS, table[1:], strict=True)),
    }


def _node_rows(stretch: _Stretch, rows: Sequence[Any]) -> Columns:
    """``NODE_COLUMNS`` of host samples."""
    table = _numbers(rows, _NODE_METRICS)
    return {
        "ts": stretch.times(row.time_seconds for row in rows),
        "node": stretch.nodes(),
        **dict(zip(_NODE_METRICS, table, strict=True)),
    }


def _port_rows(stretch: _Stretch, rows: Sequence[Any]) -> Columns:
    """``PORT_COLUMNS`` of NIC samples."""
    table = _numbers(rows, _PORT_NUMBERS)
    return {
        "ts": stretch.times(row.time_seconds for row in rows),
        "node": stretch.nodes(),
        "port": _texts(row.port for row in rows),
        "role": _texts(row.role for row in rows),
        **dict(zip(_PORT_NUMBERS, table, strict=True)),
    }


def _host_rows(stretch: _Stretch, rows: Sequence[Any]) -> Columns:
    """``HOST_COLUMNS`` of the host's part of jobs."""
    table = _numbers(rows, _HOST_METRICS)
    jobs = [each.jobs[row.job] for each in stretch.batches for row in each.batch.job_samples]
    return {
        "ts": stretch.times(row.time_seconds for row in rows),
        "node": stretch.nodes(),
        "job": np.array(jobs, dtype=np.int64),
        **dict(zip(_HOST_METRICS, table, strict=True)),
    }


def _step_rows(stretch: _Stretch, rows: Sequence[Any]) -> Columns:
    """``STEP_COLUMNS`` of step records."""
    jobs = [each.jobs[row.job] for each in stretch.batches for row in each.steps]
    return {
        "ts": stretch.times(row.end_time_seconds for row in rows),
        "job": np.array(jobs, dtype=np.int64),
        "node": stretch.nodes(),
        "launch": np.array(
            [launch for each in stretch.batches for launch in each.step_launches], dtype=np.int64
        ),
        **step_columns(rows),
    }


def _phase_rows(stretch: _Stretch, rows: Sequence[Any]) -> Columns:
    """``PHASE_COLUMNS`` of phases."""
    begins = stretch.times(phase.begin_seconds for phase in rows)
    ends = stretch.times(np.nan if phase.end_seconds is None else phase.end_seconds for phase in rows)
    jobs = [each.jobs[phase.job] for each in stretch.batches for phase in each.batch.phases]
    return {
        "ts": begins,
        "end": np.maximum(ends, begins),
        "job": np.array(jobs, dtype=np.int64),
        "launch": np.array(
            [launch for each in stretch.batches for launch in each.phase_launches], dtype=np.int64
        ),
        "kind": np.array([PHASE_KINDS.index(phase.kind) for phase in rows], dtype=np.int64),
        "step": np.array([-1 if phase.step is None else phase.step for phase in rows], dtype=np.int64),
        "blocking": np.array([float(phase.blocking) for phase in rows]),
        "committed": np.array([phase.committed for phase in rows], dtype=np.float64),
    }


def _event_rows(stretch: _Stretch, rows: Sequence[Any]) -> Columns:
    """``EVENT_COLUMNS`` of events; GPU 0 is the node itself."""
    gpus = [
        each.gpus[event.gpu] or 0 if event.gpu else 0
        for each in stretch.batches
        for event in events_of(each.batch)
    ]
    return {
        "ts": stretch.times(event.time_seconds for event in rows),
        "kind": _texts(event.kind for event in rows),
        "node": stretch.nodes(),
        "gpu": np.array(gpus, dtype=np.int64),
        "code": np.array([event.code for event in rows], dtype=np.float64),
        "value": _texts(event.value for event in rows),
        "text": _texts(event.text for event in rows),
    }


_TABLES: dict[str, tuple[Callable[[Taken], Sequence[Any]], Callable[[_Stretch, Sequence[Any]], Columns]]] = {
    "gpu": (attrgetter("batch.gpu_samples"), _gpu_rows),
    "node": (attrgetter("batch.node_samples"), _node_rows),
    "port": (attrgetter("batch.port_samples"), _port_rows),
    "step": (attrgetter("steps"), _step_rows),
    "phase": (attrgetter("batch.phases"), _phase_rows),
    "host": (attrgetter("batch.job_samples"), _host_rows),
    "event": (lambda taken: events_of(taken.batch), _event_rows),
}


def _numbers(rows: Sequence[object], names: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """One row a name, one column a sample; NaN where a value is not known."""
    read = attrgetter(*names)
    return np.array([read(row) for row in rows], dtype=np.float64).T.copy()


def _texts(values: Iterable[str | None]) -> Array:
    return np.array(list(values), dtype=object)
