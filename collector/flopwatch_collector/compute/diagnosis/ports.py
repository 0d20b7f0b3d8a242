"""A run's network ports over a window: what they carry of their line rate, new errors, and links that went down."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from flopwatch_collector.compute.diagnosis.window import by_key, rate
from flopwatch_collector.model import Columns


@dataclass(frozen=True, kw_only=True, slots=True)
class PortWindow:
    """One port."""

    node: int
    port: str
    role: str
    transmit_bytes_per_second: float | None
    receive_bytes_per_second: float | None
    line_bytes_per_second: float | None
    """Of the link as it was last."""
    best_bits_per_second: float | None
    """The highest link rate of the window."""
    new_errors: int | None
    link_up: bool | None
    was_up: bool
    """At some time in the window."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeLinks:
    """The ports of a node that its traffic goes over."""

    node: int
    bytes_per_second: float | None
    line_ratio: float | None
    """The busier direction over what all these ports could carry; None where a rate is not known."""
    errors: int | None
    link_up: bool | None
    """False: a port that was up in the window is down."""


def windows(rows: Columns) -> tuple[PortWindow, ...]:
    """Every port of ``PORT_COLUMNS``."""
    found = []
    for node, own in by_key(rows, "node").items():
        for port in dict.fromkeys(own["port"].tolist()):
            chosen = own["port"] == port
            found.append(_port(node, {name: values[chosen] for name, values in own.items()}))
    return tuple(found)


def _port(node: int, rows: Columns) -> PortWindow:
    speed = _last(rows["link_rate_bits_per_second"])
    up = _last(rows["link_up"])
    speeds = rows["link_rate_bits_per_second"][np.isfinite(rows["link_rate_bits_per_second"])]
    return PortWindow(
        node=node,
        port=str(rows["port"][-1]),
        role=str(rows["role"][-1]),
        transmit_bytes_per_second=rate(rows, "transmit_bytes"),
        receive_bytes_per_second=rate(rows, "receive_bytes"),
        line_bytes_per_second=None if speed is None or speed <= 0 else speed / 8.0,
        best_bits_per_second=float(speeds.max()) if speeds.size else None,
        new_errors=_grown(rows["errors"]),
        link_up=None if up is None else up > 0,
        was_up=bool((rows["link_up"] > 0).any()),
    )


def _last(values: np.ndarray) -> float | None:
    known = values[np.isfinite(values)]
    return float(known[-1]) if known.size else None


def _grown(values: np.ndarray) -> int | None:
    known = values[np.isfinite(values)]
    steps = np.diff(known)
    return int(steps[steps > 0].sum()) if known.size > 1 else None


def of_nodes(ports: Iterable[PortWindow]) -> dict[int, NodeLinks]:
    """By node: its RDMA ports, else its Ethernet ports; ports that were never up carry nothing and count nothing."""
    by_node: dict[int, list[PortWindow]] = {}
    for port in ports:
        by_node.setdefault(port.node, []).append(port)
    return {node: _links(node, own) for node, own in by_node.items()}


def _links(node: int, ports: list[PortWindow]) -> NodeLinks:
    role = "rdma" if any(port.role == "rdma" for port in ports) else "ethernet"
    used = [port for port in ports if port.role == role and (port.was_up or port.link_up is None)]
    sent = _sum([port.transmit_bytes_per_second for port in used])
    got = _sum([port.receive_bytes_per_second for port in used])
    line = _sum([port.line_bytes_per_second for port in used])
    known = sent is not None and got is not None
    states = [port.link_up for port in used if port.link_up is not None]
    return NodeLinks(
        node=node,
        bytes_per_second=sent + got if sent is not None and got is not None else None,
        line_ratio=max(sent or 0.0, got or 0.0) / line if known and line else None,
        errors=sum(errors)
        if (errors := [one.new_errors for one in used if one.new_errors is not None])
        else None,
        link_up=all(states) if states else None,
    )


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
