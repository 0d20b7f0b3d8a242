"""The health of nodes: GPUs that are lost, throttled or have new errors, and agents that cannot tell all."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from flopwatch.query import AlertRow
from flopwatch_collector.compute.detection.lemons import Incident, Lemon
from flopwatch_collector.compute.liability import APPLICATION_XIDS
from flopwatch_collector.compute.throttle import THROTTLE_BITS
from flopwatch_collector.model import Columns, FleetState
from flopwatch_collector.views.link_health import is_narrow, pcie_of, usual_pcie
from flopwatch_collector.views.watching import known
from flopwatch_collector.watched import GpuHealth, NodeHealth, PortHealth

AT_FAULT = frozenset(
    ("Straggler", "GpuLost", "GpuErrors", "HwThrottle", "ThermalThrottle", "NodeDown", "LinkDegraded")
)
XID_SECONDS = 600.0
COUNTER_SECONDS = 3_600.0
"""Counters are compared with what they were at most so long ago."""
COUNTERS = ("ecc_uncorrected", "remapped_rows")


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A GPU's counters as they were when first seen within the last hour."""

    time_seconds: float
    values: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reported:
    """What was told of nodes: events of the last ten minutes, active alerts, and nodes that keep appearing."""

    events: Columns
    alerts: tuple[AlertRow, ...]
    lemons: tuple[Lemon, ...] = ()
    ports: Mapping[int, tuple[PortHealth, ...]] = field(default_factory=dict)
    """By node: its ports of which something is to be said."""


def incidents_of(history: Iterable[AlertRow]) -> Iterator[Incident]:
    """Alerts that were of a node's hardware."""
    for row in history:
        node = row.labels.get("node") or row.values.get("node")
        if row.rule in AT_FAULT and node and row.fired_seconds is not None:
            yield Incident(
                node=str(node),
                job_id=row.labels.get("job_id"),
                time_seconds=row.fired_seconds,
                kind=row.rule,
            )


def healths(
    state: FleetState, reported: Reported, seen: dict[int, Seen], now: float
) -> dict[int, NodeHealth]:
    """By node number. GPUs of which nothing is to be said are left out, unless an alert is about them.

    A node that no agent has ever reported of has no health: nothing was seen of its GPUs.
    ``seen`` is kept from one evaluation to the next, and changed.
    """
    known_lemons = {one.node: one for one in reported.lemons}
    told = {row.labels["gpu"] for row in reported.alerts if "gpu" in row.labels}
    links = {row.labels["link"].rpartition(" ")[2] for row in reported.alerts if "link" in row.labels}
    usual = usual_pcie(state.gpus.values())
    xids = _xids(reported.events)
    place = {int(number): index for index, number in enumerate(state.latest["gpu"].tolist())}
    gpus: dict[int, list[GpuHealth]] = {}
    for number, gpu in state.gpus.items():
        home = state.nodes.get(gpu.node)
        if gpu.to_seconds is not None or home is None or not home.reported:
            continue
        row = place.get(number)
        fatal = xids.get(number, ())
        found = GpuHealth(
            gpu=gpu.uuid, index=gpu.index, state=gpu.state, reason=gpu.reason, fatal_xids=fatal,
            **_measured(state.latest, row, number, seen, now), **pcie_of(gpu, usual),
        )  # fmt: skip
        if _notable(found) or gpu.uuid in told or gpu.uuid in links:
            gpus.setdefault(gpu.node, []).append(found)
    return {
        number: NodeHealth(
            gpus=tuple(gpus.get(number, ())),
            ports=reported.ports.get(number, ()),
            agent_problems=node.permission_gaps,
            incidents=lemon.incidents if (lemon := known_lemons.get(node.name)) is not None else 0,
            expected_incidents=lemon.expected if lemon is not None else None,
        )
        for number, node in state.nodes.items()
    }


def _measured(
    latest: Columns, row: int | None, number: int, seen: dict[int, Seen], now: float
) -> Mapping[str, int | None]:  # fmt: skip
    if row is None:
        return {}
    values = tuple(known(latest[name][row]) for name in COUNTERS)
    before = seen.get(number)
    if before is None or now - before.time_seconds > COUNTER_SECONDS:
        before = seen[number] = Seen(time_seconds=now, values=values)
    errors, remapped = (_new(old, new) for old, new in zip(before.values, values, strict=True))
    return {
        "clock_event_reasons": _whole(latest["clock_event_reasons"][row]),
        "recovery_action": _whole(latest["recovery_action"][row]),
        "new_uncorrected_errors": errors,
        "new_remapped_rows": remapped,
    }


def _new(old: float | None, new: float | None) -> int | None:
    """How much a counter rose; a counter that fell began anew."""
    return None if old is None or new is None else int(new - old if new >= old else new)


def _whole(value: float) -> int | None:
    number = known(value)
    return None if number is None else int(number)


def _notable(gpu: GpuHealth) -> bool:
    counts = (gpu.new_uncorrected_errors, gpu.new_remapped_rows, gpu.recovery_action)
    throttled = bool((gpu.clock_event_reasons or 0) & THROTTLE_BITS)
    return gpu.state != "ok" or bool(gpu.fatal_xids) or throttled or any(counts) or is_narrow(gpu)


def _xids(events: Columns) -> dict[int, tuple[int, ...]]:
    """Codes by GPU, without those that applications cause."""
    found: dict[int, tuple[int, ...]] = {}
    for index in range(events["ts"].size):
        code, gpu = events["code"][index], int(np.nan_to_num(events["gpu"][index]))
        if gpu and np.isfinite(code) and int(code) not in APPLICATION_XIDS:
            found[gpu] = (*found.get(gpu, ()), int(code))
    return found
