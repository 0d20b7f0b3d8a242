"""Nodes that keep appearing in incidents of different jobs, more often than chance explains."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp
from typing import Final

LOOKBACK_SECONDS: Final = 14 * 86_400.0
LEAST_INCIDENTS: Final = 3
LEAST_JOBS: Final = 2
ONE_TROUBLE_SECONDS: Final = 3_600.0
"""Alerts of a node that follow each other so closely are one incident: its eight GPUs throttle together, and the
job on them slows down."""
CHANCE: Final = 0.01
"""Over the whole fleet: how often this many would come by chance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Incident:
    """A node was found at fault: a straggler, an XID, a lost GPU, a throttled clock."""

    node: str
    job_id: str | None
    """None where it is not known whose it was."""
    time_seconds: float
    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Lemon:
    """A node that keeps appearing."""

    node: str
    incidents: int
    jobs: int
    kinds: tuple[str, ...]
    expected: float
    """Incidents a node of this fleet has in the same time."""


def lemons(incidents: Iterable[Incident], nodes: int, now: float) -> tuple[Lemon, ...]:
    """Nodes with three incidents or more, of two jobs at least, that chance does not explain; worst first."""
    recent = [one for one in incidents if 0.0 <= now - one.time_seconds <= LOOKBACK_SECONDS]
    alerts: dict[str, list[Incident]] = {}
    for one in recent:
        alerts.setdefault(one.node, []).append(one)
    by_node = {node: _troubles(own) for node, own in alerts.items()}
    found = [lemon for node in by_node if (lemon := _lemon(node, by_node, nodes)) is not None]
    return tuple(sorted(found, key=lambda one: (-one.incidents, one.node)))


Trouble = tuple[Incident, ...]
"""What belongs together."""


def _troubles(own: list[Incident]) -> list[Trouble]:
    """The incidents of one node, those that follow each other closely as one."""
    found: list[Trouble] = []
    for one in sorted(own, key=lambda each: each.time_seconds):
        if found and one.time_seconds - found[-1][-1].time_seconds < ONE_TROUBLE_SECONDS:
            found[-1] = (*found[-1], one)
        else:
            found.append((one,))
    return found


def _lemon(node: str, by_node: Mapping[str, list[Trouble]], nodes: int) -> Lemon | None:
    own = by_node[node]
    known = {one.job_id for trouble in own for one in trouble if one.job_id is not None}
    jobs = len(known) + sum(1 for trouble in own if all(one.job_id is None for one in trouble))
    if len(own) < LEAST_INCIDENTS or jobs < LEAST_JOBS or nodes < 2:
        return None
    others = sum(len(each) for each in by_node.values()) - len(own)
    expected = max(others, 1) / (nodes - 1)
    if nodes * _tail(len(own), expected) > CHANCE:
        return None
    kinds = tuple(sorted({one.kind for trouble in own for one in trouble}))
    return Lemon(node=node, incidents=len(own), jobs=jobs, kinds=kinds, expected=expected)


def _tail(count: int, expected: float) -> float:
    """Probability of ``count`` or more where ``expected`` are usual (Poisson)."""
    term, below = exp(-expected), 0.0
    for index in range(count):
        below += term
        term *= expected / (index + 1)
    return max(0.0, 1.0 - below)
