"""One node and one GPU: what they do now, what was said of them, who used them, and their courses over time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from flopwatch.answers.ledger import Ledger
from flopwatch.answers.nodes import (
    DeclaredRow,
    GpuPage,
    GpuRow,
    HealthEvent,
    LemonInfo,
    NodePage,
    NodeRow,
    RanHere,
)
from flopwatch.query import AlertRow, Status
from flopwatch_collector.compute.buckets import BUCKETS
from flopwatch_collector.compute.classes import to_answer
from flopwatch_collector.compute.detection.lemons import LOOKBACK_SECONDS, lemons
from flopwatch_collector.compute.layout import take
from flopwatch_collector.model import GPU_METRICS, Columns, FleetState, Gpu, JobPart, Node
from flopwatch_collector.views import gpu_now, node_series, nodes_page
from flopwatch_collector.views.gpu_now import Now, Told
from flopwatch_collector.views.node_health import incidents_of
from flopwatch_collector.views.node_ports import ports_of
from flopwatch_collector.views.sources import Moment, Sources

MOST_EVENTS = 200
SHOWN_EVENTS = ("xid", "health", "drain", "maintenance", "spare", "stranded", "counter_reset")
MEMORY = "memory_used_ratio"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Here:
    """A node's GPUs as they are."""

    node: Node
    gpus: list[Gpu]
    now: Now
    told: Told


def find_node(state: FleetState, name: str, cluster: str | None) -> Node | None:
    """The node of that name, of the cluster where one is given."""
    found = [each for each in state.nodes.values() if each.name == name and cluster in (None, each.cluster)]
    return min(found, key=lambda node: node.cluster, default=None)


def find_gpu(state: FleetState, uuid: str) -> Gpu | None:
    """The GPU of that UUID: where it is now, else where it was last."""
    found = [gpu for gpu in state.gpus.values() if gpu.uuid == uuid]
    return max(found, key=lambda gpu: (gpu.to_seconds is None, gpu.from_seconds), default=None)


def node_page(sources: Sources, moment: Moment, status: Status, node: Node) -> NodePage:
    """The page of one node: what it is now, and its past up to the end of the range."""
    past = moment.at_end()
    here = _here(sources, moment, node, None)
    rows = gpu_rows(sources, moment, here)
    numbers = [gpu.number for gpu in here.gpus]
    history = (*sources.alerts.active(), *sources.alerts.history(moment.now - LOOKBACK_SECONDS))
    return NodePage(
        status=status,
        range_seconds=moment.asked.seconds,
        row=_row(sources, here, rows),
        gpus=rows,
        series=node_series.of_node(sources, past, node.number, numbers),
        ports=ports_of(sources.store, node.number, moment.now),
        events=_events(sources, past, {node.number}, set(_all_gpus(moment.state, node.number))),
        jobs=ran_here(past, node.number, None),
        declared=_declared(here, None),
        alerts=_alerts(history, moment, lambda row: row.labels.get("node") == node.name),
        lemon=_lemon(history, node, len(moment.state.nodes), moment.now),
        ledger=_ledger(sources, past, node.number),
        facts=_facts(node),
        agent_problems=node.permission_gaps,
    )


def gpu_page(sources: Sources, moment: Moment, status: Status, gpu: Gpu) -> GpuPage | None:
    """The page of one GPU; None where its node is not known any more."""
    state, past = moment.state, moment.at_end()
    node = state.nodes.get(gpu.node)
    if node is None:
        return None
    here = _here(sources, moment, node, gpu)
    own = {each.number for each in state.gpus.values() if each.uuid == gpu.uuid}
    slots = [each for each in state.gpus.values() if each.node == gpu.node and each.slot == gpu.slot]
    active = (*sources.alerts.active(), *sources.alerts.history(moment.start))
    return GpuPage(
        status=status,
        range_seconds=moment.asked.seconds,
        row=gpu_rows(sources, moment, here)[0],
        cluster=gpu.cluster,
        series=node_series.of_gpu(sources, past, gpu),
        events=_events(sources, past, set(), own),
        jobs=ran_here(past, gpu.node, own),
        alerts=_alerts(active, moment, lambda row: row.labels.get("gpu") == gpu.uuid),
        slot_history=tuple(
            (each.uuid, each.from_seconds, each.to_seconds)
            for each in sorted(slots, key=lambda each: -each.from_seconds)
        ),
    )


def _here(sources: Sources, moment: Moment, node: Node, only: Gpu | None) -> _Here:
    gpus = [only] if only is not None else gpu_now.present_gpus(moment.state, None).get(node.number, [])
    return _Here(
        node=node, gpus=gpus, now=gpu_now.now_of(moment, gpus), told=gpu_now.told_of(sources, moment.now)
    )


def _row(sources: Sources, here: _Here, rows: Sequence[GpuRow]) -> NodeRow:
    problems = {code for row in rows for code in row.problems}
    racks = nodes_page.rack_pattern(sources.settings.collector.rack_pattern)
    found = nodes_page.node_row(here.node, racks, here.told, (problems, {row.health for row in rows}))
    return replace(
        found,
        gpu_model=here.gpus[0].name if here.gpus else None,
        gpus=len(rows),
        gpus_reporting=sum(row.reporting for row in rows),
    )


def gpu_rows(sources: Sources, moment: Moment, here: _Here) -> tuple[GpuRow, ...]:
    """GPUs with all that their newest sample holds."""
    state, now = moment.state, here.now
    buckets = gpu_now.buckets_of(sources, here.gpus, now, here.told, state)
    figures = sources.accounting.figures()
    result = []
    for at, gpu in enumerate(here.gpus):
        row, job = int(now.rows[at]), int(now.job[at])
        sample = {name: float(state.latest[name][row]) for name in GPU_METRICS} if row >= 0 else {}
        values = {name: _known_value(value) for name, value in sample.items()}
        values[MEMORY] = _share(values.get("memory_used_bytes"), gpu.memory_total_bytes)
        values["mfu_ratio"] = figures[job].measured_ratio if job in figures else None
        reporting = bool(now.reporting[at])
        problems = gpu_now.problems_of(gpu, reporting, sample, here.told)
        result.append(
            GpuRow(
                uuid=gpu.uuid, node=here.node.name, slot=gpu.slot, index=gpu.index, model=gpu.name, state=gpu.state,
                reason=gpu.reason, bucket=BUCKETS[int(buckets[at])],
                job=nodes_page.job_ref(state, job) if job else None, health=gpu_now.health_of(problems),
                problems=problems, reporting=reporting,
                sample_seconds=float(state.latest["ts"][row]) if row >= 0 else None, values=values,
                throttles=gpu_now.throttles_of(sample.get("clock_event_reasons")) if reporting else (),
                memory_total_bytes=gpu.memory_total_bytes, max_sm_clock_hertz=gpu.max_sm_clock_hertz,
            )
        )  # fmt: skip
    return tuple(result)


def _known_value(value: float) -> float | None:
    """A measured value, or None where it is not known."""
    return value if np.isfinite(value) else None


def _share(used: float | None, total: int | None) -> float | None:
    return used / total if used is not None and total else None


def _all_gpus(state: FleetState, node: int) -> Iterable[int]:
    """GPUs that are or were on the node."""
    return (gpu.number for gpu in state.gpus.values() if gpu.node == node)


def _events(sources: Sources, moment: Moment, nodes: set[int], gpus: set[int]) -> tuple[HealthEvent, ...]:
    """What was said of the nodes and GPUs within the range, the newest first."""
    found = sources.store.events(moment.start, moment.now + 60.0, SHOWN_EVENTS)
    node, gpu = np.nan_to_num(found["node"]), np.nan_to_num(found["gpu"])
    own = np.isin(gpu, sorted(gpus)) | (np.isin(node, sorted(nodes)) & (gpu == 0))
    rows = take(found, np.flatnonzero(own)[::-1][:MOST_EVENTS])
    names = moment.state.gpus
    result = []
    for at in range(rows["ts"].size):
        number, code = int(np.nan_to_num(rows["gpu"][at])), rows["code"][at]
        words = " ".join(str(part) for part in (rows["value"][at], rows["text"][at]) if part)
        result.append(
            HealthEvent(
                time_seconds=float(rows["ts"][at]),
                kind=str(rows["kind"][at]),
                gpu=names[number].uuid if number in names else None,
                code=int(code) if np.isfinite(code) else None,
                text=words,
            )
        )
    return tuple(result)


def ran_here(moment: Moment, node: int, gpus: set[int] | None) -> tuple[RanHere, ...]:
    """Jobs that had GPUs of the node within the range, the newest first; ``gpus`` narrows it to these."""
    found = []
    for number, record in moment.state.jobs.items():
        for part in record.parts:
            if part.node != node:
                continue
            own = set(part.gpus or part.leased_gpus or ())
            used = own if gpus is None else own & gpus
            start, end = _span(part, record.start_seconds, record.end_seconds)
            if not used or (end is not None and end < moment.start) or (start or 0.0) > moment.now:
                continue
            found.append(
                RanHere(
                    job=nodes_page.job_ref(moment.state, number),
                    gpus=len(used),
                    start_seconds=start,
                    end_seconds=end,
                    exit_reason=part.exit_reason or record.exit_reason,
                )
            )
    return tuple(sorted(found, key=lambda each: -(each.start_seconds or 0.0)))


def _span(part: JobPart, start: float | None, end: float | None) -> tuple[float | None, float | None]:
    return (
        part.start_seconds if part.start_seconds is not None else start,
        part.end_seconds if part.end_seconds is not None else end,
    )


def _declared(here: _Here, gpu: str | None) -> tuple[DeclaredRow, ...]:
    standing = here.told.declared.get((here.node.cluster, here.node.name), ())
    return tuple(
        DeclaredRow(
            declaration=each.declaration, gpu=each.gpu, since_seconds=each.since_seconds,
            until_seconds=each.until_seconds, source=each.source, text=each.text,
        )
        for each in standing
        if gpu is None or each.gpu in (None, gpu)
    )  # fmt: skip


def _alerts(
    rows: Iterable[AlertRow], moment: Moment, about: Callable[[AlertRow], bool]
) -> tuple[AlertRow, ...]:
    """Alerts about the thing that are active, or ended within the range."""
    return tuple(
        row
        for row in rows
        if about(row) and (row.resolved_seconds is None or row.resolved_seconds >= moment.start)
    )


def _lemon(history: Iterable[AlertRow], node: Node, nodes: int, now: float) -> LemonInfo | None:
    """How often the node was at fault in two weeks; None where it never was."""
    incidents = tuple(incidents_of(history))
    own = [
        one
        for one in incidents
        if one.node == node.name and 0.0 <= now - one.time_seconds <= LOOKBACK_SECONDS
    ]
    if not own:
        return None
    worst = {one.node: one for one in lemons(incidents, nodes, now)}.get(node.name)
    return LemonInfo(
        incidents=len(own),
        jobs=len({one.job_id for one in own if one.job_id is not None}),
        kinds=tuple(sorted({one.kind for one in own})),
        keeps_appearing=worst is not None,
        expected=worst.expected if worst is not None else None,
    )


def _ledger(sources: Sources, moment: Moment, node: int) -> Ledger:
    rows: Columns = sources.accounting.ledger_rows(moment.start, moment.now)
    own = take(rows, rows["node"] == node)
    since = sources.accounting.provisional_from_seconds
    provisional = max(since, moment.start) if since is not None and since < moment.now else None
    return to_answer(own, sources.rates(), moment.start, moment.now, provisional)


def _facts(node: Node) -> dict[str, str]:
    found = {
        "driver": node.driver_version,
        "machine_id": node.machine_id,
        "nvml": node.nvml,
        "interval_seconds": f"{node.interval_seconds:g}",
        "clock_offset_seconds": f"{node.clock_offset_seconds:.1f}"
        if abs(node.clock_offset_seconds) > 2
        else None,
    }
    return {name: value for name, value in found.items() if value}
