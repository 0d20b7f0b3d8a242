"""Samples of one batch as columns of the raw tables."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from flopwatch.wire import Event, GpuSample, NodeSample, Phase, PortSample
from flopwatch_collector.ingest.decode import LARGEST_INTEGER, FieldError, MalformedBatch
from flopwatch_collector.ingest.place import Place
from flopwatch_collector.model import GPU_METRICS, NO_JOB, NODE_COLUMNS, PHASE_KINDS, PORT_COLUMNS, Columns

LONGEST_INTERVAL_SECONDS = 86_400.0
_NODE_METRICS = NODE_COLUMNS[2:]
_PORT_NUMBERS = PORT_COLUMNS[4:]


def gpu_rows(
    samples: Sequence[GpuSample], place: Place, gpus: Mapping[str, int | None], jobs: Mapping[str, int]
) -> Columns:
    """``GPU_COLUMNS`` of the samples whose GPU this node reports; other nodes' GPUs are left out."""
    if not samples:
        return {}
    table = _numbers(samples, ("interval_seconds", *GPU_METRICS), "gpu_samples")
    numbers = np.array([gpus[sample.gpu] or 0 for sample in samples], dtype=np.int64)
    intervals = table[0]
    intervals[~((intervals > 0.0) & (intervals <= LONGEST_INTERVAL_SECONDS))] = place.interval_seconds
    columns: Columns = {
        "ts": _times([sample.time_seconds for sample in samples], place),
        "gpu": numbers,
        "node": np.full(len(samples), place.node, dtype=np.int64),
        "job": np.array([_job(sample.job, jobs) for sample in samples], dtype=np.int64),
        "interval_seconds": intervals,
        **dict(zip(GPU_METRICS, table[1:], strict=True)),
    }
    own = numbers > 0
    return columns if own.all() else {name: column[own] for name, column in columns.items()}


def _job(ref: str | None, jobs: Mapping[str, int]) -> int:
    return NO_JOB if ref is None else jobs[ref]


def node_rows(samples: Sequence[NodeSample], place: Place) -> Columns:
    """``NODE_COLUMNS`` of host samples."""
    if not samples:
        return {}
    table = _numbers(samples, _NODE_METRICS, "node_samples")
    return {
        "ts": _times([sample.time_seconds for sample in samples], place),
        "node": np.full(len(samples), place.node, dtype=np.int64),
        **dict(zip(_NODE_METRICS, table, strict=True)),
    }


def port_rows(samples: Sequence[PortSample], place: Place) -> Columns:
    """``PORT_COLUMNS`` of NIC samples."""
    if not samples:
        return {}
    table = _numbers(samples, _PORT_NUMBERS, "port_samples")
    return {
        "ts": _times([sample.time_seconds for sample in samples], place),
        "node": np.full(len(samples), place.node, dtype=np.int64),
        "port": _texts([sample.port for sample in samples]),
        "role": _texts([sample.role for sample in samples]),
        **dict(zip(_PORT_NUMBERS, table, strict=True)),
    }


def phase_rows(
    phases: Sequence[Phase], place: Place, jobs: Mapping[str, int], launch: Callable[[Phase], int]
) -> Columns:
    """``PHASE_COLUMNS`` of phases."""
    if not phases:
        return {}
    begins = _times([phase.begin_seconds for phase in phases], place)
    ends = [np.nan if phase.end_seconds is None else phase.end_seconds for phase in phases]
    return {
        "ts": begins,
        "end": np.maximum(_times(ends, place), begins),
        "job": np.array([jobs[phase.job] for phase in phases], dtype=np.int64),
        "launch": np.array([launch(phase) for phase in phases], dtype=np.int64),
        "kind": np.array([PHASE_KINDS.index(phase.kind) for phase in phases], dtype=np.int64),
        "step": np.array([-1 if phase.step is None else phase.step for phase in phases], dtype=np.int64),
        "blocking": np.array([float(phase.blocking) for phase in phases]),
        "committed": np.array([phase.committed for phase in phases], dtype=np.float64),
    }


def event_rows(events: Sequence[Event], place: Place, gpus: Mapping[str, int | None]) -> Columns:
    """``EVENT_COLUMNS`` of events; GPU 0 is the node itself."""
    if not events:
        return {}
    return {
        "ts": _times([event.time_seconds for event in events], place),
        "kind": _texts([event.kind for event in events]),
        "node": np.full(len(events), place.node, dtype=np.int64),
        "gpu": np.array([gpus[event.gpu] or 0 if event.gpu else 0 for event in events], dtype=np.int64),
        "code": np.array([event.code for event in events], dtype=np.float64),
        "value": _texts([event.value for event in events]),
        "text": _texts([event.text for event in events]),
    }


def _numbers(rows: Sequence[object], names: tuple[str, ...], field: str) -> npt.NDArray[np.float64]:
    """One row a name, one column a sample; NaN where a value is not known.

    Raises:
        MalformedBatch: a number that no column can hold.
    """
    read = attrgetter(*names)
    try:
        table = np.array([read(row) for row in rows], dtype=np.float64).T.copy()
    except OverflowError as error:
        raise _too_large(field) from error
    beyond = np.abs(table) > LARGEST_INTEGER
    if beyond.any():
        raise _too_large(f"{field}.{names[int(np.argwhere(beyond)[0][0])]}")
    return table


def _too_large(field: str) -> MalformedBatch:
    return MalformedBatch(FieldError(field=field, value="a number beyond 2**62", allowed="at most 2**62"))


def _times(seconds: Sequence[float], place: Place) -> npt.NDArray[np.float64]:
    """Event times on the collector's clock; none is later than the batch's arrival."""
    times = np.array(seconds, dtype=np.float64) + place.offset_seconds
    return np.clip(times, place.earliest_seconds, place.latest_seconds)


def _texts(values: Sequence[str | None]) -> npt.NDArray[Any]:
    return np.array(values, dtype=object)
