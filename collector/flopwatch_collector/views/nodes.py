"""Nodes side by side, from the newest sample of every GPU."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flopwatch.query import NodeInfo
from flopwatch_collector.compute.cause import NodeSignal
from flopwatch_collector.compute.layout import take
from flopwatch_collector.model import Columns, FleetState, JobRecord
from flopwatch_collector.views.status import reporting_gpus

MEANS = ("kernel_active_ratio", "tensor_active_ratio", "power_watts", "sm_clock_hertz")
NODES = 2**32
"""More than there are node numbers."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeMeans:
    """Means over the GPUs of a job on a node; not a number where no GPU gave a value."""

    node: int
    values: Mapping[str, float]


def means_by_job(latest: Columns) -> dict[int, tuple[NodeMeans, ...]]:
    """Means of the newest samples by (job, node)."""
    held = take(latest, np.nan_to_num(latest["job"]) > 0)
    keys = held["job"].astype(np.int64) * NODES + held["node"].astype(np.int64)
    pairs, inverse = np.unique(keys, return_inverse=True)
    columns = {name: _means(held[name], inverse, pairs.size) for name in MEANS}
    result: dict[int, list[NodeMeans]] = {}
    for index, (job, node) in enumerate(divmod(pair, NODES) for pair in pairs.tolist()):
        values = {name: float(column[index]) for name, column in columns.items()}
        result.setdefault(job, []).append(NodeMeans(node=node, values=values))
    return {job: tuple(nodes) for job, nodes in result.items()}


def _means(values: Floats, group: npt.NDArray[np.int64], count: int) -> Floats:
    known = np.isfinite(values)
    totals = np.bincount(group[known], weights=values[known], minlength=count)
    counts = np.bincount(group[known], minlength=count)
    result = np.full(count, np.nan)
    np.divide(totals, counts, out=result, where=counts > 0)
    return result


def signals_by_job(state: FleetState) -> dict[int, tuple[NodeSignal, ...]]:
    """What diagnosis compares nodes by."""
    return {
        job: tuple(
            NodeSignal(
                node=_name(state, means.node),
                sm_clock_hertz=_known(means.values["sm_clock_hertz"]),
                power_watts=_known(means.values["power_watts"]),
            )
            for means in nodes
        )
        for job, nodes in means_by_job(state.latest).items()
    }


def nodes_of_job(state: FleetState, record: JobRecord, now: float) -> tuple[NodeInfo, ...]:
    """The job's nodes by name."""
    means = {found.node: found.values for found in means_by_job(state.latest).get(record.number, ())}
    reporting = reporting_gpus(state, now)
    parts = {part.node: part for part in record.parts}
    result = []
    for number in sorted(set(parts) | set(means), key=lambda one: _name(state, one)):
        part, values = parts.get(number), means.get(number, {})
        used = (part.gpus or part.leased_gpus or ()) if part is not None else ()
        node = state.nodes.get(number)
        own = [gpu for gpu in used if gpu in reporting]
        fresh = bool(own) or (node is not None and not used and now - node.last_seen_seconds < 60.0)
        result.append(
            NodeInfo(
                node=_name(state, number),
                gpus=len(used),
                kernel_active_ratio=_known(values.get("kernel_active_ratio")),
                tensor_active_ratio=_known(values.get("tensor_active_ratio")),
                power_watts=_known(values.get("power_watts")),
                sm_clock_hertz=_known(values.get("sm_clock_hertz")),
                reporting=fresh,
                log_problem=part.log_problem if part is not None else None,
                log_path=part.log_path if part is not None else None,
            )
        )
    return tuple(result)


def _name(state: FleetState, number: int) -> str:
    node = state.nodes.get(number)
    return node.name if node is not None else f"node {number}"


def _known(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None
