"""The links of nodes: network ports that are down or slower than they were or their peers are, and PCIe links."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from flopwatch.query import AlertRow
from flopwatch_collector.model import Columns, FleetState, Gpu, Node
from flopwatch_collector.store.port import Store
from flopwatch_collector.watched import PortHealth

READ_SECONDS = 60.0
INTERVALS = 2.5
SHORTEST_SECONDS = 30.0
BEST_SECONDS = 86_400.0
"""So long a port is held against the best rate that it had itself."""
LEAST_PEERS = 3
ROLES = ("rdma", "ethernet")


@dataclass(frozen=True, kw_only=True, slots=True)
class PortNow:
    """A port's newest sample."""

    node: int
    port: str
    link_up: bool | None
    rate_bits_per_second: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Best:
    """The best rate of a port, and when it was seen last."""

    rate_bits_per_second: float
    seen_seconds: float


@dataclass(slots=True)
class LinkBook:
    """What is remembered of ports between evaluations; used by one thread."""

    best: dict[tuple[int, str], Best] = field(default_factory=dict)
    read_seconds: float = float("-inf")
    ports: tuple[PortNow, ...] = ()
    told: frozenset[tuple[str | None, str]] = frozenset()
    """(node, link) of the alerts that were active."""
    found: dict[int, tuple[PortHealth, ...]] = field(default_factory=dict)

    def notable(
        self, store: Store, state: FleetState, alerts: Iterable[AlertRow], now: float
    ) -> dict[int, tuple[PortHealth, ...]]:
        """By node: the ports of which something is to be said, or an alert is about; read once a minute."""
        told = frozenset(
            (row.labels.get("node"), row.labels["link"]) for row in alerts if "link" in row.labels
        )
        due = not 0.0 <= now - self.read_seconds < READ_SECONDS
        if not due and told == self.told:
            return self.found
        nodes = {number: node for number, node in state.nodes.items() if node.reported}
        if due and nodes:
            self.read_seconds = now
            longest = max(node.interval_seconds for node in nodes.values())
            start = now - max(SHORTEST_SECONDS, INTERVALS * longest)
            self.ports = newest(store.port_samples(start, now, sorted(nodes)))
        self.told, self.found = told, self._found(state, nodes, told, now)
        return self.found

    def _found(
        self,
        state: FleetState,
        nodes: Mapping[int, Node],
        told: frozenset[tuple[str | None, str]],
        now: float,
    ) -> dict[int, tuple[PortHealth, ...]]:
        usual, up = peers(self.ports, state)
        found: dict[int, list[PortHealth]] = {}
        for port in self.ports:
            node = nodes.get(port.node)
            if node is None:
                continue
            key = (node.cluster, port.port)
            health = self._health(port, usual.get(key), now, peers_up=up.get(key, False))
            if is_degraded(health) or (node.name, port.port) in told:
                found.setdefault(port.node, []).append(health)
        return {number: tuple(each) for number, each in found.items()}

    def _health(self, port: PortNow, usual: float | None, now: float, *, peers_up: bool) -> PortHealth:
        """The port against the better of its own last day and its peers; down counts only where it should be up."""
        key, rate = (port.node, port.port), port.rate_bits_per_second
        own = self.best.get(key)
        if own is not None and now - own.seen_seconds > BEST_SECONDS:
            own = None
        if port.link_up is not False and rate and (own is None or rate >= own.rate_bits_per_second):
            own = self.best[key] = Best(rate_bits_per_second=rate, seen_seconds=now)
        known = [value for value in (usual, own.rate_bits_per_second if own is not None else None) if value]
        expected = own is not None or peers_up
        return PortHealth(
            port=port.port,
            link_up=None if port.link_up is False and not expected else port.link_up,
            rate_bits_per_second=rate,
            best_rate_bits_per_second=max(known, default=None),
        )


def newest(rows: Columns) -> tuple[PortNow, ...]:
    """The last sample of every data port; ``rows`` are sorted by (node, port, ts)."""
    if not rows["ts"].size:
        return ()
    last = np.ones(rows["ts"].size, dtype=np.bool_)
    last[:-1] = (rows["node"][1:] != rows["node"][:-1]) | (rows["port"][1:] != rows["port"][:-1])
    columns = (
        rows[name][last].tolist() for name in ("node", "port", "role", "link_up", "link_rate_bits_per_second")
    )
    return tuple(
        PortNow(
            node=int(node),
            port=port,
            link_up=bool(link_up) if np.isfinite(link_up) else None,
            rate_bits_per_second=rate if np.isfinite(rate) else None,
        )
        for node, port, role, link_up, rate in zip(*columns, strict=True)
        if role in ROLES
    )


def peers(
    ports: Iterable[PortNow], state: FleetState
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], bool]]:
    """By cluster and port's name: the median rate of at least three nodes, and whether most of these are up."""
    rates: dict[tuple[str, str], list[float]] = {}
    states: dict[tuple[str, str], list[bool]] = {}
    for port in ports:
        node = state.nodes.get(port.node)
        if node is None:
            continue
        key = (node.cluster, port.port)
        if port.link_up is not None:
            states.setdefault(key, []).append(port.link_up)
        if port.link_up is not False and port.rate_bits_per_second:
            rates.setdefault(key, []).append(port.rate_bits_per_second)
    usual = {key: median(values) for key, values in rates.items() if len(values) >= LEAST_PEERS}
    return usual, {
        key: 2 * sum(values) > len(values) for key, values in states.items() if len(values) >= LEAST_PEERS
    }


def is_degraded(port: PortHealth) -> bool:
    """Whether a port is down, or slower than it could be."""
    rate, best = port.rate_bits_per_second, port.best_rate_bits_per_second
    return port.link_up is False or (rate is not None and best is not None and rate < best)


@dataclass(frozen=True, kw_only=True, slots=True)
class UsualPcie:
    """What most GPUs of a model have in a cluster: lanes and generation."""

    width: Mapping[tuple[str, str], int]
    generation: Mapping[tuple[str, str], int]


def usual_pcie(gpus: Iterable[Gpu]) -> UsualPcie:
    """The commonest lanes and generations, of at least three GPUs of a model in a cluster."""
    widths: dict[tuple[str, str], Counter[int]] = {}
    generations: dict[tuple[str, str], Counter[int]] = {}
    for gpu in gpus:
        for found, value in ((widths, gpu.pcie_width), (generations, gpu.pcie_generation)):
            if value is not None and gpu.to_seconds is None:
                found.setdefault((gpu.cluster, gpu.name), Counter())[value] += 1
    return UsualPcie(width=_commonest(widths), generation=_commonest(generations))


def _commonest(found: Mapping[tuple[str, str], Counter[int]]) -> dict[tuple[str, str], int]:
    return {key: each.most_common(1)[0][0] for key, each in found.items() if each.total() >= LEAST_PEERS}


def pcie_of(gpu: Gpu, usual: UsualPcie) -> dict[str, int | None]:
    """The fields of ``GpuHealth`` on its PCIe link: held against its peers, else against the most that it could be."""
    key = (gpu.cluster, gpu.name)
    return {
        "pcie_width": gpu.pcie_width,
        "usual_pcie_width": usual.width.get(key, gpu.pcie_width_maximum),
        "pcie_generation": gpu.pcie_generation,
        "usual_pcie_generation": usual.generation.get(key, gpu.pcie_generation_maximum),
    }


def is_narrow(gpu: Gpu, usual: UsualPcie) -> bool:
    """Whether a GPU's PCIe link has fewer lanes or a lower generation than is usual."""
    key = (gpu.cluster, gpu.name)
    width = usual.width.get(key, gpu.pcie_width_maximum)
    generation = usual.generation.get(key, gpu.pcie_generation_maximum)
    pairs = ((gpu.pcie_width, width), (gpu.pcie_generation, generation))
    return any(now is not None and most is not None and now < most for now, most in pairs)
