"""Which GPUs of a node a job's share is: by index, by UUID, or, where only their number is told, by evidence. Pure."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from flopwatch_collector.model import FleetState, Gpu, JobRecord, LeaseRecord, Node
from flopwatch_collector.schedulers.reading import Allocation, ScheduledNode


@dataclass(kw_only=True)
class Fleet:
    """The fleet's state by names."""

    state: FleetState
    cluster: str
    _by_node: dict[int, list[Gpu]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for gpu in self.state.gpus.values():
            if gpu.to_seconds is None:
                self._by_node.setdefault(gpu.node, []).append(gpu)
        for own in self._by_node.values():
            own.sort(key=lambda gpu: (gpu.index is None, gpu.index or 0, gpu.slot, gpu.uuid))
        nodes = [node for node in self.state.nodes.values() if node.cluster == self.cluster]
        self.nodes: Mapping[str, Node] = {node.name: node for node in nodes}
        short: dict[str, list[Node]] = {}
        for node in nodes:
            short.setdefault(node.name.partition(".")[0], []).append(node)
        self._short = {name: found[0] for name, found in short.items() if len(found) == 1}

    def name_of(self, node: ScheduledNode | str) -> str:
        """The agents' name of a scheduler's node: the same, its host name, or the same up to the first dot."""
        name, host = (node, None) if isinstance(node, str) else (node.name, node.host_name)
        for each in (name, host):
            if each is not None and each in self.nodes:
                return each
        for each in (name, host):
            found = None if each is None else self._short.get(each.partition(".")[0])
            if found is not None:
                return found.name
        return name

    def gpus(self, node: str) -> list[Gpu]:
        """The GPUs in the node's slots now, in the order of their indices."""
        known = self.nodes.get(node)
        return [] if known is None else self._by_node.get(known.number, [])


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """GPUs, and whether it is known that it is these."""

    gpus: tuple[Gpu, ...]
    known: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What is known of the GPUs of a share of which only the number is told, by number."""

    used: frozenset[int] = frozenset()
    """Those on which the node sees the job."""
    before: frozenset[int] = frozenset()
    """Those that were taken for it before."""
    held: frozenset[int] = frozenset()
    """Those that others hold."""


def chosen(share: Allocation, gpus: list[Gpu], evidence: Evidence) -> Chosen:
    """The GPUs of a share.

    Where only a number is told, the ones that the job uses come first, then those that nobody else holds, among them
    those that were taken for it before.
    """
    if share.uuids is not None:
        found = tuple(gpu for gpu in gpus if gpu.uuid in share.uuids)
        return Chosen(gpus=found, known=len(found) == len(set(share.uuids)))
    if share.indices is not None:
        by_index = _by_index(gpus)
        found = tuple(by_index[index] for index in share.indices if index in by_index)
        return Chosen(gpus=found, known=len(found) == len(share.indices))
    order = sorted(
        gpus,
        key=lambda gpu: (
            gpu.number not in evidence.used,
            gpu.number in evidence.held,
            gpu.number not in evidence.before,
        ),
    )
    taken = tuple(order[: share.gpu_count])
    evident = share.gpu_count >= len(gpus) or all(gpu.number in evidence.used for gpu in taken)
    return Chosen(gpus=taken, known=evident and len(taken) == share.gpu_count)


def _by_index(gpus: list[Gpu]) -> Mapping[int, Gpu]:
    """GPUs by their own index, or by their place where they have none or share it, as MIG instances do."""
    indices = [gpu.index for gpu in gpus]
    if None in indices or len(set(indices)) != len(indices):
        return dict(enumerate(gpus))
    return {gpu.index: gpu for gpu in gpus if gpu.index is not None}


def used_by(job: JobRecord | None, ref: str, node: int) -> frozenset[int]:
    """GPUs of the node on which its agent sees this part of the job."""
    parts = () if job is None else tuple(part for part in job.parts if (part.node, part.ref) == (node, ref))
    return frozenset(gpu for part in parts for gpu in (*part.gpus, *(part.leased_gpus or ())))


def held_by_others(
    leases: Iterable[LeaseRecord], own: Container[str], start: float, end: float | None
) -> frozenset[int]:
    """GPUs that schedulers' other leases hold at some time between; ``own`` are ids that do not count."""
    until = float("inf") if end is None else end
    return frozenset(
        gpu
        for lease in leases
        if lease.source not in ("process", "registration")
        and lease.lease_id.rpartition("@")[0] not in own
        and lease.start_seconds < until
        and (lease.end_seconds is None or lease.end_seconds > start)
        for gpu in lease.gpus
    )
