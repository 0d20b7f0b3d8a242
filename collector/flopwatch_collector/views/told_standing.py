"""What events that were pushed say of whole nodes now: maintenance, drains, faults, spares. Pure."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from flopwatch_collector.facts import NodeStanding
from flopwatch_collector.model import Columns, FleetState

TRACKS: Final[Mapping[str, str]] = {
    "maintenance": "maintenance", "drain": "faulty", "health": "faulty", "spare": "spare",
}  # fmt: skip
"""A drain and a fault are one track: the end of either ends both, as in the ledger."""
BEGINS: Final = frozenset(("begin", "faulty"))
ENDS: Final = frozenset(("end", "ok"))
STANDINGS: Final[Mapping[str, NodeStanding]] = {
    "maintenance": "out", "drain": "out", "health": "down", "spare": "spare",
}  # fmt: skip
PRECEDENCE: Final = ("maintenance", "drain", "health", "spare")
Target = tuple[int, int]
"""Node and GPU; GPU 0 is the whole node."""


def told(events: Columns, state: FleetState) -> dict[int, str]:
    """By node number: the kind of the event that holds of the whole node, or of each of its GPUs.

    Kinds are ``maintenance``, ``drain``, ``health`` (faulty) and ``spare``; where several hold the first of these.
    """
    open_: dict[tuple[str, Target], str] = {}
    for row in np.argsort(events["ts"], kind="stable").tolist():
        kind, value = str(events["kind"][row]), str(events["value"][row])
        if kind not in TRACKS:
            continue
        key = (TRACKS[kind], _target(events, row))
        if value in BEGINS:
            open_[key] = kind
        elif value in ENDS:
            open_.pop(key, None)
    return _of_nodes(open_, state) if open_ else {}


def _target(events: Columns, row: int) -> Target:
    return int(np.nan_to_num(events["node"][row])), int(np.nan_to_num(events["gpu"][row]))


def _of_nodes(open_: Mapping[tuple[str, Target], str], state: FleetState) -> dict[int, str]:
    held: dict[tuple[int, str], set[int]] = {}
    for (_, (node, gpu)), kind in open_.items():
        home = state.gpus[gpu].node if gpu in state.gpus else node
        held.setdefault((home, kind), set()).add(gpu)
    present: dict[int, set[int]] = {}
    for number, one in state.gpus.items():
        if one.to_seconds is None:
            present.setdefault(one.node, set()).add(number)
    found: dict[int, str] = {}
    for kind in reversed(PRECEDENCE):
        for (node, own), gpus in held.items():
            whole = 0 in gpus or (bool(present.get(node)) and present[node] <= gpus)
            if own == kind and whole and node in state.nodes:
                found[node] = kind
    return found
