"""The Nodes page: every GPU with the newest of each signal, its bucket, health and job; columns, not rows."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from flopwatch.answers.nodes import GPU_VALUES, HEALTHS, GpuColumns, Health, JobRef, NodeRow, Nodes
from flopwatch.query import Status
from flopwatch_collector.compute.buckets import BUCKETS
from flopwatch_collector.compute.classes import CLASS_OF
from flopwatch_collector.model import Columns, FleetState, Gpu, Node
from flopwatch_collector.views import gpu_now
from flopwatch_collector.views.gpu_now import Floats, Now, Told
from flopwatch_collector.views.sources import Moment, Sources

NIC_SECONDS = 60.0
"""Network throughput of a node is the mean of so long."""
SAMPLED = (
    "kernel_active_ratio", "tensor_active_ratio", "sm_active_ratio", "power_watts", "temperature_celsius",
    "sm_clock_hertz",
)  # fmt: skip
DIGITS = {"power_watts": 0, "temperature_celsius": 0, "sm_clock_hertz": -6, "nic_bytes_per_second": -5}
"""Decimals that are kept; ratios keep three."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arranged:
    """Nodes in their order, and their GPUs one after the other."""

    nodes: tuple[Node, ...]
    gpus: list[Gpu]
    place: list[int]
    """Of each GPU its node's place."""


def arranged(state: FleetState, cluster: str | None) -> Arranged:
    """Nodes of a cluster, or all, by cluster and name; those without a GPU are left out."""
    found = gpu_now.present_gpus(state, cluster)
    known = [state.nodes[number] for number in found if number in state.nodes]
    nodes = tuple(sorted(known, key=lambda node: (node.cluster, gpu_now.natural(node.name))))
    gpus, place = [], []
    for at, node in enumerate(nodes):
        gpus += found[node.number]
        place += [at] * len(found[node.number])
    return Arranged(nodes=nodes, gpus=gpus, place=place)


def nodes_of(sources: Sources, moment: Moment, status: Status, traffic: Mapping[int, float]) -> Nodes:
    """The page; ``traffic`` is bytes a second by node, sent and received."""
    told = gpu_now.told_of(sources, moment.now)
    order = arranged(moment.state, moment.asked.cluster)
    now = gpu_now.now_of(moment, order.gpus)
    problems = _problems(moment, order, now, told)
    health = [gpu_now.health_of(problems.get(at, ())) for at in range(len(order.gpus))]
    numbers, job = np.unique(now.job, return_inverse=True)
    refs, shift = _jobs(moment.state, numbers.tolist())
    columns = GpuColumns(
        node=tuple(order.place),
        index=_indexes(order),
        bucket=tuple(gpu_now.buckets_of(sources, order.gpus, now, told, moment.state).tolist()),
        health=tuple(HEALTHS.index(each) for each in health),
        job=tuple((job - shift).tolist()),
        reporting=tuple(now.reporting.tolist()),
        values=_values(sources, moment, order, now, traffic),
    )
    return Nodes(
        status=status,
        nodes=_rows(sources, order, now, told, _by_node(order, problems, health)),
        gpus=columns,
        buckets=BUCKETS,
        classes=tuple(CLASS_OF[name] for name in BUCKETS),
        jobs=refs,
    )


def _indexes(order: Arranged) -> tuple[int, ...]:
    """The GPU's index on its node; where several share one, or none is known, its place there."""
    result: list[int] = []
    for at, gpu in enumerate(order.gpus):
        first = at == 0 or order.place[at - 1] != order.place[at]
        above = -1 if first else result[-1]
        result.append(gpu.index if gpu.index is not None and gpu.index > above else above + 1)
    return tuple(result)


def _jobs(state: FleetState, numbers: list[int]) -> tuple[tuple[JobRef, ...], int]:
    """The jobs by place, and by how much places are shifted: *no job* comes first where there is any."""
    shift = 1 if numbers and numbers[0] == 0 else 0
    return tuple(job_ref(state, number) for number in numbers[shift:]), shift


def job_ref(state: FleetState, number: int) -> JobRef:
    """A job by its number."""
    record = state.jobs.get(number)
    if record is None:
        return JobRef(job_id="", name="")
    return JobRef(job_id=record.job_id, name=record.name, account=record.account)


def _problems(moment: Moment, order: Arranged, now: Now, told: Told) -> dict[int, tuple[str, ...]]:
    """What is wrong, by place; of the many GPUs that are well nothing."""
    latest = moment.state.latest
    found = {}
    for at in np.flatnonzero(gpu_now.suspicious(moment, order.gpus, now, told)).tolist():
        row = int(now.rows[at])
        names = ("clock_event_reasons", "recovery_action") if row >= 0 else ()
        sample = {name: float(latest[name][row]) for name in names}
        found[at] = gpu_now.problems_of(order.gpus[at], bool(now.reporting[at]), sample, told)
    return found


def _by_node(
    order: Arranged, problems: Mapping[int, tuple[str, ...]], health: list[Health]
) -> dict[int, tuple[set[str], set[Health]]]:
    found: dict[int, tuple[set[str], set[Health]]] = {}
    for at, codes in problems.items():
        words, healths = found.setdefault(order.place[at], (set(), set()))
        words.update(codes)
        healths.add(health[at])
    return found


def _rows(
    sources: Sources,
    order: Arranged,
    now: Now,
    told: Told,
    found: Mapping[int, tuple[set[str], set[Health]]],
) -> tuple[NodeRow, ...]:
    place = np.array(order.place, dtype=np.int64)
    counts = np.bincount(place, minlength=len(order.nodes))
    alive = np.bincount(place, weights=now.reporting, minlength=len(order.nodes))
    first = np.searchsorted(place, np.arange(len(order.nodes)))
    racks = rack_pattern(sources.settings.collector.rack_pattern)
    rows = []
    for at, node in enumerate(order.nodes):
        words, healths = found.get(at, (set(), set()))
        row = node_row(node, racks, told, (words, healths))
        model = order.gpus[int(first[at])].name
        rows.append((row, model, int(counts[at]), int(alive[at])))
    return tuple(
        NodeRow(
            node=row.node, cluster=row.cluster, rack=row.rack, gpu_model=model, gpus=count, gpus_reporting=alive,
            last_seen_seconds=row.last_seen_seconds, health=row.health, problems=row.problems, declared=row.declared,
        )
        for row, model, count, alive in rows
    )  # fmt: skip


def node_row(
    node: Node,
    racks: re.Pattern[str] | None,
    told: Told,
    found: tuple[set[str], set[Health]],
) -> NodeRow:
    """A node without its counts; ``found`` are problems and healths of its GPUs."""
    words, healths = set(found[0]), set(found[1])
    if node.name in told.alerts:
        words.add(f"alert_{told.alerts[node.name]}")
        healths.add(told.alerts[node.name])
    told_gaps = ("agent",) if node.permission_gaps else ()
    declared = told.declared.get((node.cluster, node.name), ())
    return NodeRow(
        node=node.name,
        cluster=node.cluster,
        rack=rack_of(node.name, racks),
        gpu_model=None,
        gpus=0,
        gpus_reporting=0,
        last_seen_seconds=node.last_seen_seconds if node.reported and node.last_seen_seconds > 0 else None,
        health=gpu_now.worst(healths),
        problems=(*(code for code in gpu_now.PROBLEM_HEALTH if code in words), *told_gaps),
        declared=tuple(dict.fromkeys(each.declaration for each in declared)),
    )


def rack_pattern(pattern: str | None) -> re.Pattern[str] | None:
    """The site's pattern, ready to use."""
    return re.compile(pattern) if pattern else None


def rack_of(name: str, pattern: re.Pattern[str] | None) -> str | None:
    """What the pattern's first group takes of a node's name."""
    found = pattern.search(name) if pattern is not None else None
    return found.group(1) if found is not None else None


def _values(
    sources: Sources, moment: Moment, order: Arranged, now: Now, traffic: Mapping[int, float]
) -> dict[str, tuple[float | None, ...]]:
    latest = moment.state.latest
    found = {name: gpu_now.column(latest, name, now.rows) for name in SAMPLED}
    found["memory_used_ratio"] = memory_ratio(latest, order.gpus, now)
    found["nic_bytes_per_second"] = np.array(
        [traffic.get(gpu.node, np.nan) for gpu in order.gpus], dtype=float
    )
    figures = sources.accounting.figures()
    ratios = {
        job: figure.measured_ratio for job, figure in figures.items() if figure.measured_ratio is not None
    }
    found["mfu_ratio"] = np.array([ratios.get(job, np.nan) for job in now.job.tolist()], dtype=float)
    return {name: rounded(found[name], DIGITS.get(name, 3)) for name in GPU_VALUES}


def memory_ratio(latest: Columns, gpus: list[Gpu], now: Now) -> Floats:
    """Memory in use over what the GPU has."""
    total = np.array([gpu.memory_total_bytes or np.nan for gpu in gpus], dtype=np.float64)
    share: Floats = gpu_now.column(latest, "memory_used_bytes", now.rows) / total
    return share


def rounded(values: Floats, digits: int) -> tuple[float | None, ...]:
    """Values with no more decimals than a page shows; what is not a number is unknown."""
    kept: list[float | None] = np.round(values, digits).tolist()
    for at in np.flatnonzero(~np.isfinite(values)).tolist():
        kept[at] = None
    return tuple(kept)


def traffic_of(sources: Sources, state: FleetState, now: float) -> dict[int, float]:
    """Bytes a second of every node, sent and received, over all ports that count."""
    found = sources.store.node_series(
        now - NIC_SECONDS, now + NIC_SECONDS, 4.0 * NIC_SECONDS, sorted(state.nodes)
    )
    rates = found["transmit_bytes_per_second"] + found["receive_bytes_per_second"]
    return {int(node): float(rate) for node, rate in zip(found["node"], rates, strict=True)}
