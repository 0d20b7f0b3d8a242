"""GPU by GPU what a server's series say now, one node and one GPU over time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from flopwatch.answers.nodes import (
    HEALTHS,
    GpuColumns,
    GpuPage,
    GpuRow,
    JobRef,
    NodePage,
    NodeRow,
    Nodes,
)
from flopwatch.query import AlertRow, Series, Status
from flopwatch_collector.prometheus.dialect import (
    GPU_LABELS,
    KERNEL,
    MEMORY_FREE,
    MEMORY_USED,
    POWER,
    SM_CLOCK,
    TEMPERATURE,
    TENSOR,
    Scope,
    Signal,
)
from flopwatch_collector.prometheus.identity import job_of, model_of, node_of
from flopwatch_collector.prometheus.promql import Course, Span
from flopwatch_collector.prometheus.site import KNOWN_FOR, Site
from flopwatch_collector.prometheus.site_series import node_network, series_of

SIGNALS: Mapping[str, Signal] = {
    "kernel_active_ratio": KERNEL,
    "tensor_active_ratio": TENSOR,
    "power_watts": POWER,
    "temperature_celsius": TEMPERATURE,
    "sm_clock_hertz": SM_CLOCK,
    "memory_used_bytes": MEMORY_USED,
    "memory_free_bytes": MEMORY_FREE,
}
SHOWN = ("kernel_active_ratio", "tensor_active_ratio", "memory_used_ratio", "power_watts", "temperature_celsius",
         "sm_clock_hertz")  # fmt: skip
COURSES: Mapping[str, Signal] = {
    "kernel_active": KERNEL, "tensor_active": TENSOR, "power_watts": POWER, "temperature_celsius": TEMPERATURE,
    "sm_clock_hertz": SM_CLOCK,
}  # fmt: skip
UNKNOWN = HEALTHS.index("unknown")
Place = tuple[str, str, str]


@dataclass(kw_only=True)
class SeenGpu:
    """A GPU, and what its series say now."""

    cluster: str
    node: str
    uuid: str
    index: int | None = None
    model: str | None = None
    job: JobRef | None = None
    reporting: bool = False
    values: dict[str, float | None] = field(default_factory=dict)


def nodes_of_site(site: Site, status: Status, cluster: str | None) -> Nodes:
    """The Nodes page: no buckets and no health, which samples of hardware do not give."""
    gpus = seen_gpus(site, cluster)
    places = list(dict.fromkeys((gpu.cluster, gpu.node) for gpu in gpus))
    at = {place: index for index, place in enumerate(places)}
    jobs = list(dict.fromkeys(gpu.job for gpu in gpus if gpu.job is not None))
    job_at = {job: index for index, job in enumerate(jobs)}
    columns = GpuColumns(
        node=tuple(at[gpu.cluster, gpu.node] for gpu in gpus),
        index=tuple(_indexes(gpus)),
        bucket=tuple(0 for _ in gpus),
        health=tuple(UNKNOWN for _ in gpus),
        job=tuple(-1 if gpu.job is None else job_at[gpu.job] for gpu in gpus),
        reporting=tuple(gpu.reporting for gpu in gpus),
        values={
            name: tuple(gpu.values.get(name) for gpu in gpus)
            for name in SHOWN
            if any(gpu.values.get(name) is not None for gpu in gpus)
        },
    )
    rows = tuple(_node_row([gpu for gpu in gpus if (gpu.cluster, gpu.node) == place]) for place in places)
    return Nodes(status=status, nodes=rows, gpus=columns, buckets=(), classes=(), jobs=tuple(jobs))


def node_of_site(
    site: Site,
    status: Status,
    asked: tuple[str, float, Span],
    gpus: Sequence[SeenGpu],
    alerts: Iterable[AlertRow],
) -> NodePage:
    """One node, of which there are GPUs; ``asked`` is (name, seconds, span)."""
    name, seconds, span = asked
    found = {course: _over(site, gpus, signal, span) for course, signal in COURSES.items()}
    columns = {
        "kernel_active": _reduced(found["kernel_active"], span, "mean"),
        "tensor_active": _reduced(found["tensor_active"], span, "mean"),
        "node_power_watts": _reduced(found["power_watts"], span, "sum"),
        "hottest_celsius": _reduced(found["temperature_celsius"], span, "max"),
        "nic_transmit": node_network(site, span, [name], ["transmit"]),
        "nic_receive": node_network(site, span, [name], ["receive"]),
    }
    return NodePage(
        status=status,
        range_seconds=seconds,
        row=_node_row(gpus),
        gpus=tuple(_gpu_row(gpu) for gpu in gpus),
        series=series_of(span, columns),
        alerts=tuple(row for row in alerts if row.labels.get("node") == name),
    )


def gpu_of_site(
    site: Site, status: Status, asked: tuple[float, Span], gpu: SeenGpu, alerts: Iterable[AlertRow]
) -> GpuPage:
    """One GPU; ``asked`` is (seconds, span)."""
    seconds, span = asked
    columns = {
        name: _reduced(_over(site, [gpu], signal, span), span, "mean") for name, signal in COURSES.items()
    }
    series: Series = series_of(span, columns)
    return GpuPage(
        status=status,
        range_seconds=seconds,
        row=_gpu_row(gpu),
        cluster=gpu.cluster,
        series=series,
        alerts=tuple(row for row in alerts if row.labels.get("gpu") == gpu.uuid),
    )


def seen_gpus(site: Site, cluster: str | None) -> list[SeenGpu]:
    """GPUs of the last hour by cluster, node and index, with the newest value of each signal."""
    scope = site.scope(cluster)
    found: dict[str, SeenGpu] = {}
    for row in site.ask(site.dialect.present_gpus(scope, KNOWN_FOR)):
        gpu = _seen(site, row.labels)
        if gpu is not None:
            found.setdefault(gpu.uuid, gpu)
    for row in site.ask(site.dialect.present_gpus(scope)):
        if _uuid(row.labels) in found:
            found[_uuid(row.labels)].reporting = True
    _add_values(site, scope, found)
    return sorted(found.values(), key=lambda gpu: (gpu.cluster, gpu.node, _order(gpu)))


def _add_values(site: Site, scope: Scope, found: Mapping[str, SeenGpu]) -> None:
    owners = site.owners()
    for name, signal in SIGNALS.items():
        for row in site.ask(site.dialect.gpus(signal, scope)):
            gpu = found.get(_uuid(row.labels))
            if gpu is None:
                continue
            gpu.values[name] = row.value
            job = (
                job_of(row.labels, owners, row.labels.get(site.cluster_label, ""))
                if gpu.job is None
                else None
            )
            if job is not None:
                gpu.job = JobRef(job_id=job.job_id, name=job.name)
    for gpu in found.values():
        used, free = gpu.values.get("memory_used_bytes"), gpu.values.get("memory_free_bytes")
        if used is not None and free is not None and used + free > 0:
            gpu.values["memory_used_ratio"] = used / (used + free)


def _seen(site: Site, labels: Mapping[str, str]) -> SeenGpu | None:
    uuid, node = _uuid(labels), node_of(labels)
    if not uuid or node is None:
        return None
    index = labels.get("gpu", labels.get("index", ""))
    return SeenGpu(
        cluster=site.cluster_of(labels),
        node=node,
        uuid=uuid,
        index=int(index) if index.isdigit() else None,
        model=model_of(labels),
    )


def _uuid(labels: Mapping[str, str]) -> str:
    return next((labels[label] for label in GPU_LABELS if labels.get(label)), "")


def _order(gpu: SeenGpu) -> tuple[int, str]:
    return (gpu.index if gpu.index is not None else 1_000, gpu.uuid)


def _indexes(gpus: Sequence[SeenGpu]) -> Iterable[int]:
    """The index each has, else its place on its node."""
    before, place = ("", ""), 0
    for gpu in gpus:
        place = place + 1 if (gpu.cluster, gpu.node) == before else 0
        before = (gpu.cluster, gpu.node)
        yield gpu.index if gpu.index is not None else place


def _node_row(gpus: Sequence[SeenGpu]) -> NodeRow:
    return NodeRow(
        node=gpus[0].node,
        cluster=gpus[0].cluster,
        rack=None,
        gpu_model=gpus[0].model,
        gpus=len(gpus),
        gpus_reporting=sum(gpu.reporting for gpu in gpus),
        last_seen_seconds=None,
        health="unknown",
    )


def _gpu_row(gpu: SeenGpu) -> GpuRow:
    return GpuRow(
        uuid=gpu.uuid, node=gpu.node, slot=None, index=gpu.index, model=gpu.model, state="ok", reason=None, bucket=None,
        job=gpu.job, health="unknown", problems=() if gpu.reporting else ("silent",), reporting=gpu.reporting,
        sample_seconds=None, values={name: value for name, value in gpu.values.items() if name != "memory_free_bytes"},
    )  # fmt: skip


def _over(site: Site, gpus: Sequence[SeenGpu], signal: Signal, span: Span) -> list[Course]:
    """The signal of these GPUs over time, each once."""
    cluster = None if not gpus else gpus[0].cluster
    wanted = {gpu.uuid for gpu in gpus}
    courses = site.course(site.dialect.gpus(signal, site.scope(cluster)), span)
    return list({uuid: course for course in courses if (uuid := _uuid(course.labels)) in wanted}.values())


def _reduced(courses: Sequence[Course], span: Span, how: str) -> tuple[float | None, ...]:
    result: list[float | None] = []
    for time in span.times():
        values = [course.values[time] for course in courses if time in course.values]
        if not values:
            result.append(None)
        elif how == "mean":
            result.append(sum(values) / len(values))
        else:
            result.append(max(values) if how == "max" else sum(values))
    return tuple(result)
