"""Courses over time and node by node, aggregated by the server."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from flopwatch.query import NodeInfo, Series
from flopwatch_collector.prometheus.dialect import (
    KERNEL,
    MEMORY_FREE,
    MEMORY_USED,
    MODEL_LABELS,
    NODE_LABELS,
    NVLINK_RECEIVED,
    NVLINK_SENT,
    POWER,
    SM_CLOCK,
    TENSOR,
    Scope,
    Signal,
)
from flopwatch_collector.prometheus.estimate import Activity, estimate
from flopwatch_collector.prometheus.identity import model_of, node_of
from flopwatch_collector.prometheus.promql import Course, Span
from flopwatch_collector.prometheus.site import Site

Column = tuple[float | None, ...]
Way = Literal["transmit", "receive"]
WAYS: tuple[Way, ...] = ("transmit", "receive")
INFINIBAND: Mapping[Way, str] = {
    "transmit": "node_infiniband_port_data_transmitted_bytes_total",
    "receive": "node_infiniband_port_data_received_bytes_total",
}
INTERFACES: Mapping[Way, str] = {
    "transmit": "node_network_transmit_bytes_total",
    "receive": "node_network_receive_bytes_total",
}
VIRTUAL = "lo|veth.*|docker.*|br-.*|cali.*|cilium.*|flannel.*|cni.*|virbr.*|tun.*|tap.*|bond.*"
"""Interfaces that carry what another one counts already."""


def fleet_series(site: Site, span: Span, scope: Scope) -> Series:
    """Kernel and tensor activity of all GPUs, and the hardware estimate as ``hardware``; never an MFU."""
    columns = {
        "kernel_active": _one(site, "avg", KERNEL, scope, span),
        "tensor_active": _one(site, "avg", TENSOR, scope, span),
        "mfu": tuple(None for _ in span.times()),
        "hardware": hardware_column(site, scope, span),
    }
    return series_of(span, columns)


def hardware_column(site: Site, scope: Scope, span: Span) -> Column:
    """The hardware estimate over time; models are weighted by the GPUs that report now.

    Unknown where a model's clock is not known, and while a model reported that does so no more.
    """
    clocked = site.dialect.product((TENSOR, SM_CLOCK), scope)
    if clocked is None:
        return tuple(None for _ in span.times())
    clocked, by = site.dialect.once(clocked, MODEL_LABELS), ", ".join(MODEL_LABELS)
    gpus = {model_of(row.labels): row.value for row in site.ask(f"count by ({by}) ({clocked})")}
    courses = {
        model_of(course.labels): course.values for course in site.course(f"avg by ({by}) ({clocked})", span)
    }
    return tuple(_estimate_at(time, gpus, courses) for time in span.times())


def _estimate_at(
    time: float, gpus: Mapping[str | None, float], courses: Mapping[str | None, Mapping[float, float]]
) -> float | None:
    """From means of tensor activity x SM clock: what matters is their product, so activity stands as 1."""
    parts = [
        Activity(
            model=model, gpus=gpus.get(model, 0.0), tensor_active_ratio=1.0, tensor_clock_hertz=values[time]
        )
        for model, values in courses.items()
        if time in values
    ]
    return estimate(parts) if parts else None


def job_series(site: Site, span: Span, scope: Scope, nodes: Sequence[str]) -> Series:
    """A job's courses; what it has no MFU for is unknown."""
    columns = {
        "mfu": tuple(None for _ in span.times()),
        "kernel_active": _one(site, "avg", KERNEL, scope, span),
        "tensor_active": _one(site, "avg", TENSOR, scope, span),
        "power_watts": _one(site, "avg", POWER, scope, span),
        "memory_used_ratio": _memory(site, scope, span),
        "nic_bytes_per_second": node_network(site, span, nodes),
        "nvlink_bytes_per_second": _links(site, scope, span),
        "hardware": hardware_column(site, scope, span),
    }
    return series_of(span, columns)


def series_of(span: Span, columns: Mapping[str, Column]) -> Series:
    """Columns over the span."""
    return Series(
        level="prometheus", step_seconds=span.step, time_seconds=span.times(), columns=dict(columns)
    )


def nodes_of(site: Site, scope: Scope) -> tuple[NodeInfo, ...]:
    """The job's nodes, to be set beside each other."""
    by = ", ".join(NODE_LABELS)
    found: dict[str, dict[str, float]] = {}
    for name, operator, signal in (
        ("gpus", "count", KERNEL), ("kernel", "avg", KERNEL), ("tensor", "avg", TENSOR), ("power", "avg", POWER),
        ("clock", "avg", SM_CLOCK),
    ):  # fmt: skip
        gpus = site.dialect.gpus(signal, scope)
        each = None if gpus is None else site.dialect.once(gpus, NODE_LABELS)
        for row in site.ask(None if each is None else f"{operator} by ({by}) ({each})"):
            found.setdefault(node_of(row.labels) or "", {})[name] = row.value
    return tuple(
        NodeInfo(
            node=node,
            gpus=round(values.get("gpus", 0)),
            kernel_active_ratio=values.get("kernel"),
            tensor_active_ratio=values.get("tensor"),
            power_watts=values.get("power"),
            sm_clock_hertz=values.get("clock"),
            reporting=True,
            log_problem=None,
        )
        for node, values in sorted(found.items())
    )


def column_of(courses: Sequence[Course], span: Span) -> Column:
    """The only series as a column; unknown where there is none."""
    values = courses[0].values if courses else {}
    return tuple(values.get(time) for time in span.times())


def _one(site: Site, operator: str, signal: Signal, scope: Scope, span: Span) -> Column:
    gpus = site.dialect.gpus(signal, scope, window(span))
    each = None if gpus is None else site.dialect.once(gpus)
    return column_of(site.course(None if each is None else f"{operator} ({each})", span), span)


def _memory(site: Site, scope: Scope, span: Span) -> Column:
    own = site.dialect.own_gpus(MEMORY_USED, scope)
    if own is not None:
        limit = own.replace("hw_gpu_memory_usage_bytes", "hw_gpu_memory_limit_bytes")
        used, whole = (f"sum ({site.dialect.once(part)})" for part in (own, limit))
        return column_of(site.course(f"{used} / {whole}", span), span)
    parts = [site.dialect.dcgm_gpus(signal, scope) for signal in (MEMORY_USED, MEMORY_FREE)]
    sums = [f"sum ({site.dialect.once(part)})" for part in parts if part is not None]
    if len(sums) < len(parts):
        return tuple(None for _ in span.times())
    return column_of(site.course(f"{sums[0]} / ({sums[0]} + {sums[1]})", span), span)


def _links(site: Site, scope: Scope, span: Span) -> Column:
    parts = [site.dialect.gpus(signal, scope, window(span)) for signal in (NVLINK_SENT, NVLINK_RECEIVED)]
    known = [f"sum ({site.dialect.once(part)})" for part in parts if part is not None]
    expression = " + ".join(known) if len(known) == len(parts) else None
    return column_of(site.course(expression, span), span)


def node_network(site: Site, span: Span, nodes: Sequence[str], ways: Sequence[Way] = WAYS) -> Column:
    """Bytes over the nodes' ports: of our agents, else InfiniBand's, else of real interfaces.

    Of an agent's ports the RDMA ones, Ethernet on a node that has none.
    """
    if not nodes:
        return tuple(None for _ in span.times())
    where, within = node_matcher(nodes), window(span)

    def agents(way: Way) -> str:
        moved = f'rate(hw_network_io_bytes_total{{{where},network_io_direction="{way}"}}[{within}])'
        each = f"max by (instance, port) ({moved})"
        return f"sum ({each} and on (instance, port) ({_PORTS}))"

    def rate(names: Mapping[Way, str], way: Way, more: str = "") -> str:
        return f"sum (rate({names[way]}{{{where}{more}}}[{within}]))"

    real = f',device!~"{VIRTUAL}"'
    sources: tuple[Callable[[Way], str], ...] = (
        agents,
        lambda way: rate(INFINIBAND, way),
        lambda way: rate(INTERFACES, way, real),
    )
    expression = " or ".join(f"({' + '.join(map(source, ways))})" for source in sources)
    return column_of(site.course(expression, span), span)


_PORTS = (
    'flopwatch_port_info{role="rdma"} or '
    '(flopwatch_port_info{role="ethernet"} unless on (instance) flopwatch_port_info{role="rdma"})'
)
"""An agent's ports that carry a job's traffic."""


def node_matcher(nodes: Sequence[str]) -> str:
    """Series of these nodes, whose exporters are known by ``instance`` with or without a port."""
    names = "|".join(sorted(node.replace(".", "\\\\.") for node in nodes))
    return f'instance=~"({names})(:[0-9]+)?"'


def window(span: Span) -> str:
    """Over how long a rate is made: at least four scrapes of the slowest usual interval."""
    return f"{max(300.0, span.step * 2):.0f}s"
