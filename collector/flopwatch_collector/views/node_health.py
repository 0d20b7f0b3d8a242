"""The health of nodes: GPUs that are lost, throttled or have new errors, and agents that cannot tell all."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

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
Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
COUNTERS = ("ecc_uncorrected", "remapped_rows")


@dataclass(slots=True)
class Seen:
    """The counters of all GPUs as they were when first seen within the last hour; used by one thread."""

    gpu: Numbers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """In order."""
    time_seconds: Floats = field(default_factory=lambda: np.empty(0))
    values: Floats = field(default_factory=lambda: np.empty((0, len(COUNTERS))))

    def grown(self, latest: Columns, now: float) -> Floats:
        """By row of the newest samples, sorted by GPU: how much each of ``COUNTERS`` rose; NaN is not known.

        A counter that fell began anew.
        """
        gpu = latest["gpu"].astype(np.int64)
        values = np.column_stack([latest[name] for name in COUNTERS]) if gpu.size else self.values[:0]
        place = np.searchsorted(self.gpu, gpu)
        known = place < self.gpu.size
        known[known] = self.gpu[place[known]] == gpu[known]
        known[known] = now - self.time_seconds[place[known]] <= COUNTER_SECONDS
        before, times = values.copy(), np.full(gpu.size, now)
        before[known], times[known] = self.values[place[known]], self.time_seconds[place[known]]
        self.gpu, self.time_seconds, self.values = gpu, times, before
        return np.where(values >= before, values - before, np.where(np.isfinite(before), values, np.nan))


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


def healths(state: FleetState, reported: Reported, seen: Seen, now: float) -> dict[int, NodeHealth]:
    """By node number. GPUs of which nothing is to be said are left out, unless an alert is about them.

    A node that no agent has ever reported of has no health: nothing was seen of its GPUs.
    ``seen`` is kept from one evaluation to the next, and changed.
    """
    known_lemons = {one.node: one for one in reported.lemons}
    gpus = _gpus(state, reported, seen, now)
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


def _gpus(state: FleetState, reported: Reported, seen: Seen, now: float) -> dict[int, list[GpuHealth]]:
    """By node: the GPUs of which something is to be said."""
    told = {row.labels["gpu"] for row in reported.alerts if "gpu" in row.labels}
    told |= {row.labels["link"].rpartition(" ")[2] for row in reported.alerts if "link" in row.labels}
    usual, xids = usual_pcie(state.gpus.values()), _xids(reported.events)
    latest, grown = state.latest, seen.grown(state.latest, now)
    numbers = latest["gpu"].astype(np.int64)
    place = dict(zip(numbers.tolist(), range(numbers.size), strict=True))
    shown = set(numbers[_notable_rows(latest, grown)].tolist())
    found: dict[int, list[GpuHealth]] = {}
    for number, gpu in state.gpus.items():
        if gpu.to_seconds is not None:
            continue
        fatal = xids.get(number, ())
        notable = number in shown or gpu.state != "ok" or fatal or gpu.uuid in told
        home = state.nodes.get(gpu.node)
        if not (notable or is_narrow(gpu, usual)) or home is None or not home.reported:
            continue
        row = place.get(number)
        measured = {} if row is None else _measured(latest, row, grown[row])
        found.setdefault(gpu.node, []).append(
            GpuHealth(
                gpu=gpu.uuid, index=gpu.index, state=gpu.state, reason=gpu.reason, fatal_xids=fatal,
                **measured, **pcie_of(gpu, usual),
            )
        )  # fmt: skip
    return found


def _notable_rows(latest: Columns, grown: Floats) -> npt.NDArray[np.bool_]:
    """Which samples tell of throttling, of new errors, or of a recovery that is advised."""
    throttled = (np.nan_to_num(latest["clock_event_reasons"]).astype(np.int64) & THROTTLE_BITS) != 0
    return np.asarray(
        throttled | (np.nan_to_num(latest["recovery_action"]) != 0) | (np.nan_to_num(grown) != 0).any(axis=1)
    )


def _measured(latest: Columns, row: int, grown: Floats) -> Mapping[str, int | None]:
    errors, remapped = (_whole(value) for value in grown.tolist())
    return {
        "clock_event_reasons": _whole(latest["clock_event_reasons"][row]),
        "recovery_action": _whole(latest["recovery_action"][row]),
        "new_uncorrected_errors": errors,
        "new_remapped_rows": remapped,
    }


def _whole(value: float) -> int | None:
    number = known(value)
    return None if number is None else int(number)


def _xids(events: Columns) -> dict[int, tuple[int, ...]]:
    """Codes by GPU, without those that applications cause."""
    found: dict[int, tuple[int, ...]] = {}
    for index in range(events["ts"].size):
        code, gpu = events["code"][index], int(np.nan_to_num(events["gpu"][index]))
        if gpu and np.isfinite(code) and int(code) not in APPLICATION_XIDS:
            found[gpu] = (*found.get(gpu, ()), int(code))
    return found
