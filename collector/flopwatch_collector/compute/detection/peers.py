"""Which GPU, node or link holds a run up: each against its peers over the same time, blamed only with evidence.

In a synchronous run all ranks have one step time. The slow one shows in the time it computes itself, in its clock or
power, or, where links are slow, in its node's traffic. Without such evidence nobody is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal

LOCAL_EXCESS: Final = 1.10
SLOW_CLOCK_RATIO: Final = 0.92
SLOW_POWER_RATIO: Final = 0.75
PEER_RATIO: Final = 0.97
POWER_PEER_RATIO: Final = 0.90
EQUAL_COMPUTE_RATIO: Final = 0.97
LINK_RATIO: Final = 0.80
LEAST_PEERS: Final = 3
THROTTLE_SHARE: Final = 0.10
Kind = Literal["compute", "link", "imbalance"]
HardwareCause = Literal[
    "throttle", "slow_clock", "low_power", "ecc", "pcie_width", "link_errors", "link_down"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuSignal:
    """What one GPU of a run shows over the window; None is not known."""

    node: str
    gpu: str | None
    """None: of the rank it is not known which GPU it has."""
    rank: int | None = None
    stage: int | None = None
    """Its pipeline stage."""
    local_compute_seconds: float | None = None
    """Time of a step in which its rank computes, waiting left out."""
    sm_clock_hertz: float | None = None
    power_watts: float | None = None
    tensor_active_ratio: float | None = None
    throttle_share: float | None = None
    """Share of samples with a hardware-slowdown, thermal or power-brake clock reason."""
    power_cap_share: float | None = None
    ecc_errors: int | None = None
    pcie_degraded: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkSignal:
    """A node's network over the window."""

    node: str
    bytes_per_second: float | None = None
    errors: int | None = None
    """Link errors or replays within the window."""
    link_up: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspect:
    """Who holds the run up, and how that is known."""

    kind: Kind
    node: str | None
    """None: one of the run's nodes, not known which."""
    gpu: str | None = None
    rank: int | None = None
    hardware: HardwareCause | None = None
    signal: str = ""
    """Which signal decided: ``local_compute``, ``sm_clock``, ``power``, ``nic_rate``, ``tensor_active``."""
    value: float | None = None
    usual: float | None = None
    also: tuple[str, ...] = ()
    """Other nodes on which parts are as slow."""

    @property
    def excess_ratio(self) -> float | None:
        """Share of the step that the suspect takes beyond its peers; None where the signal does not say."""
        if self.value is None or not self.usual or self.signal not in ("local_compute", "sm_clock"):
            return None
        slow, fast = (self.value, self.usual) if self.signal == "local_compute" else (self.usual, self.value)
        return 1.0 - fast / slow if slow > 0 else None


def suspect_of(gpus: Sequence[GpuSignal], links: Sequence[LinkSignal] = ()) -> Suspect | None:
    """The one suspect, or None where the evidence does not single one out."""
    rules = (
        _by_local_compute(gpus),
        _by_clock(gpus),
        _by_link(gpus, links),
        _by_power(gpus),
        _by_tensor(gpus),
    )
    return next((found for found in rules if found is not None), None)


def missing_signals(gpus: Sequence[GpuSignal], links: Sequence[LinkSignal]) -> tuple[str, ...]:
    """Signals that would single one out and are not there."""
    names = ("local_compute_seconds", "sm_clock_hertz", "power_watts")
    missing = [name for name in names if sum(getattr(each, name) is not None for each in gpus) < LEAST_PEERS]
    if sum(each.bytes_per_second is not None for each in links) < LEAST_PEERS:
        missing.append("nic_rate")
    return tuple(missing)


def _by_local_compute(gpus: Sequence[GpuSignal]) -> Suspect | None:
    known = [(each.local_compute_seconds, each) for each in gpus if each.local_compute_seconds]
    if len(known) < LEAST_PEERS:
        return None
    usual = median(value for value, _ in known)
    slow = [(value, each) for value, each in known if value >= LOCAL_EXCESS * usual]
    if not slow or 2 * len(slow) >= len(known):
        return None
    value, worst = max(slow, key=lambda pair: pair[0])
    if _one_stage(known, slow):
        return Suspect(kind="imbalance", node=None, signal="local_compute", value=value, usual=usual)
    alone = len({each.node for _, each in slow}) == 1
    return Suspect(
        kind="compute", node=worst.node if alone else None, gpu=worst.gpu if len(slow) == 1 else None,
        rank=worst.rank if len(slow) == 1 else None, hardware=hardware_cause(worst, gpus) if alone else None,
        signal="local_compute", value=value, usual=usual,
    )  # fmt: skip


def _one_stage(known: Sequence[tuple[float, GpuSignal]], slow: Sequence[tuple[float, GpuSignal]]) -> bool:
    """Whether exactly the ranks of one pipeline stage are slow, on more than one GPU."""
    stages = {each.stage for _, each in slow}
    if len(stages) != 1 or None in stages or len(slow) < 2:
        return False
    stage = stages.pop()
    return sum(each.stage == stage for _, each in known) == len(slow)


def hardware_cause(gpu: GpuSignal, peers: Sequence[GpuSignal]) -> HardwareCause | None:
    """What is wrong with a GPU's hardware; None where nothing is known to be."""
    clocks = [each.sm_clock_hertz for each in peers if each.sm_clock_hertz is not None]
    slow = gpu.sm_clock_hertz is not None and bool(clocks) and gpu.sm_clock_hertz < 0.95 * median(clocks)
    if (gpu.throttle_share or 0.0) >= THROTTLE_SHARE and (slow or gpu.sm_clock_hertz is None):
        return "throttle"
    if gpu.ecc_errors:
        return "ecc"
    if gpu.pcie_degraded:
        return "pcie_width"
    return "slow_clock" if slow else None


def _by_clock(gpus: Sequence[GpuSignal]) -> Suspect | None:
    known = [(each.sm_clock_hertz, each) for each in gpus if each.sm_clock_hertz is not None]
    found = _low_group(known, SLOW_CLOCK_RATIO, PEER_RATIO)
    if found is None:
        return None
    worst, alone = found.worst, found.count == 1
    return Suspect(
        kind="compute", node=worst.node, gpu=worst.gpu if alone else None, rank=worst.rank if alone else None,
        hardware=hardware_cause(worst, gpus) or "slow_clock", signal="sm_clock", value=found.value, usual=found.usual,
        also=found.also,
    )  # fmt: skip


def _by_power(gpus: Sequence[GpuSignal]) -> Suspect | None:
    """By power where clocks are not known: a GPU that draws clearly less than all its peers."""
    if any(each.sm_clock_hertz is not None for each in gpus):
        return None
    known = [(each.power_watts, each) for each in gpus if each.power_watts is not None]
    found = _low_group(known, SLOW_POWER_RATIO, POWER_PEER_RATIO)
    if found is None:
        return None
    return Suspect(
        kind="compute", node=found.worst.node, gpu=found.worst.gpu if found.count == 1 else None,
        hardware="low_power", signal="power", value=found.value, usual=found.usual, also=found.also,
    )  # fmt: skip


def _by_tensor(gpus: Sequence[GpuSignal]) -> Suspect | None:
    """A GPU whose tensor pipes are busy longer than all others' for the same work: they wait for it, or have less.

    That alone names nobody.
    """
    known = sorted(each.tensor_active_ratio for each in gpus if each.tensor_active_ratio)
    if len(known) < LEAST_PEERS + 1:
        return None
    usual, top = median(known), known[-1]
    even = known[0] >= PEER_RATIO * usual and known[-2] <= usual / PEER_RATIO
    if top < LOCAL_EXCESS * usual or not even:
        return None
    return Suspect(kind="compute", node=None, signal="tensor_active", value=top, usual=usual)


@dataclass(frozen=True, kw_only=True, slots=True)
class _LowGroup:
    """The lowest GPUs of a run, where all others are near the usual."""

    worst: GpuSignal
    """The lowest of the first node by name, so that several that are as slow do not take turns."""
    value: float
    usual: float
    count: int
    """Low GPUs on its node."""
    also: tuple[str, ...]


def _low_group(
    known: Sequence[tuple[float, GpuSignal]], slow_ratio: float, peer_ratio: float
) -> _LowGroup | None:
    """The low GPUs, if they are fewer than half and all others are near the usual."""
    if len(known) < LEAST_PEERS:
        return None
    usual = median(value for value, _ in known)
    slow = [(value, each) for value, each in known if value <= slow_ratio * usual]
    rest = [value for value, each in known if value > slow_ratio * usual]
    if not slow or 2 * len(slow) >= len(known) or min(rest) < peer_ratio * usual:
        return None
    first, *also = sorted({each.node for _, each in slow})
    own = [(value, each) for value, each in slow if each.node == first]
    value, worst = min(own, key=lambda pair: pair[0])
    return _LowGroup(worst=worst, value=value, usual=usual, count=len(own), also=tuple(also))


def _by_link(gpus: Sequence[GpuSignal], links: Sequence[LinkSignal]) -> Suspect | None:
    """A node whose link is down, or has errors and carries less, while all compute alike."""
    down = sorted(each.node for each in links if each.link_up is False)
    if down and 2 * len(down) < max(len(links), LEAST_PEERS):
        return Suspect(
            kind="link", node=down[0], hardware="link_down", signal="link_up", also=tuple(down[1:])
        )
    known = [(each.bytes_per_second, each) for each in links if each.bytes_per_second is not None]
    if len(known) < LEAST_PEERS or not _alike(gpus):
        return None
    usual = median(value for value, _ in known)
    slow = [(value, each) for value, each in known if value < LINK_RATIO * usual]
    if not slow or usual <= 0.0 or 2 * len(slow) >= len(known):
        return None
    if len(slow) > 1 and not all(each.errors for _, each in slow):
        return None  # stages of a pipeline send less than others without any fault
    value, worst = min(slow, key=lambda pair: pair[1].node)
    return Suspect(
        kind="link", node=worst.node, hardware="link_errors" if worst.errors else None, signal="nic_rate",
        value=value, usual=usual, also=tuple(sorted(each.node for _, each in slow if each is not worst)),
    )  # fmt: skip


def _alike(gpus: Sequence[GpuSignal]) -> bool:
    """Whether no GPU is known to compute more slowly than the others."""
    times = [each.local_compute_seconds for each in gpus if each.local_compute_seconds]
    clocks = [each.sm_clock_hertz for each in gpus if each.sm_clock_hertz]
    even = not times or min(times) >= EQUAL_COMPUTE_RATIO * max(times)
    return even and (not clocks or min(clocks) >= SLOW_CLOCK_RATIO * median(clocks))
