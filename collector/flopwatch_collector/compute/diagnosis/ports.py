"""A run's network ports over a window: what they carry of their line rate, new errors, and links that went down."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.diagnosis.window import Floats, growth
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
    """Every port of ``PORT_COLUMNS``, all at once: a large run has thousands."""
    if not rows["ts"].size:
        return ()
    names: dict[str, int] = {}
    port = np.array([names.setdefault(name, len(names)) for name in rows["port"].tolist()])
    device = rows["node"].astype(np.int64) * len(names) + port
    order = np.lexsort((rows["ts"], device))
    own = {name: values[order] for name, values in {**rows, "device": device}.items()}
    first = np.flatnonzero(np.diff(own["device"], prepend=own["device"][0] - 1))
    sent, taken, errors = (
        growth(own, name, "device") for name in ("transmit_bytes", "receive_bytes", "errors")
    )
    speeds, ups = (_last(own[name], first) for name in ("link_rate_bits_per_second", "link_up"))
    best = _known(np.fmax.reduceat(own["link_rate_bits_per_second"], first))
    was_up = np.logical_or.reduceat(own["link_up"] > 0, first).tolist()
    newest = np.append(first[1:], order.size) - 1
    return tuple(
        PortWindow(
            node=number // len(names),
            port=own["port"][row],
            role=own["role"][row],
            transmit_bytes_per_second=sent[number].rate if number in sent else None,
            receive_bytes_per_second=taken[number].rate if number in taken else None,
            line_bytes_per_second=speed / 8.0 if speed is not None and speed > 0 else None,
            best_bits_per_second=best[at],
            new_errors=int(errors[number].grown) if number in errors else None,
            link_up=None if up is None else up > 0,
            was_up=was_up[at],
        )
        for at, (number, row, speed, up) in enumerate(
            zip(own["device"][first].tolist(), newest.tolist(), speeds, ups, strict=True)
        )
    )


def _last(values: Floats, first: npt.NDArray[np.int64]) -> list[float | None]:
    """By stretch of rows: its last value that is known."""
    known = np.where(np.isfinite(values), np.arange(values.size), -1)
    place = np.maximum.reduceat(known, first)
    return _known(np.where(place >= 0, values[place], np.nan))


def _known(values: Floats) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


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
