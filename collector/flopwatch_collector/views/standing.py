"""What is said of whole nodes, from all that is declared of nodes and GPUs. Pure."""

from collections.abc import Iterable

from flopwatch_collector.facts import NodeStanding
from flopwatch_collector.model import FleetState
from flopwatch_collector.schedulers.declared import Standing

OF_PEOPLE = frozenset(("operator", "settings"))
PRECEDENCE: tuple[NodeStanding, ...] = ("out", "down", "spare")


def standings(declared: Iterable[Standing], state: FleetState) -> dict[int, NodeStanding]:
    """By node number: what holds of the node, or of each of its GPUs. Nodes of which nothing holds are left out."""
    numbers = {(node.cluster, node.name): number for number, node in state.nodes.items()}
    whole: set[tuple[int, NodeStanding]] = set()
    single: dict[tuple[int, NodeStanding], set[str]] = {}
    for each in declared:
        number = numbers.get((each.cluster, each.node))
        if number is None:
            continue
        key = (number, _kind(each))
        if each.gpu is None:
            whole.add(key)
        else:
            single.setdefault(key, set()).add(each.gpu)
    if single:
        present = _present(state)
        whole |= {key for key, gpus in single.items() if present.get(key[0], set()) <= gpus}
    return {number: kind for kind in reversed(PRECEDENCE) for number, held in whole if held == kind}


def in_maintenance(declared: Iterable[Standing], state: FleetState) -> set[int]:
    """Numbers of the nodes of which all is in maintenance."""
    only = [each for each in declared if each.declaration == "maintenance"]
    return set(standings(only, state))


def _kind(standing: Standing) -> NodeStanding:
    """Out of order by a scheduler's word is news; by that of people, or of a node that was drained, it is known."""
    if standing.declaration == "spare":
        return "spare"
    known = standing.source in OF_PEOPLE or standing.drained
    return "down" if standing.declaration == "faulty" and not known else "out"


def _present(state: FleetState) -> dict[int, set[str]]:
    """By node: the UUIDs of the GPUs in its slots."""
    found: dict[int, set[str]] = {}
    for gpu in state.gpus.values():
        if gpu.to_seconds is None:
            found.setdefault(gpu.node, set()).add(gpu.uuid)
    return found
