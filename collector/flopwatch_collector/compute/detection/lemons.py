"""Nodes that keep appearing in incidents of different jobs, more often than chance explains."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp
from typing import Final

LOOKBACK_SECONDS: Final = 14 * 86_400.0
LEAST_INCIDENTS: Final = 3
LEAST_JOBS: Final = 2
CHANCE: Final = 0.01
"""Over the whole fleet: how often this many would come by chance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Incident:
    """A node was found at fault: a straggler, an XID, a lost GPU, a throttled clock."""

    node: str
    job_id: str | None
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
    by_node: dict[str, list[Incident]] = {}
    for one in recent:
        by_node.setdefault(one.node, []).append(one)
    found = [lemon for own in by_node.values() if (lemon := _lemon(own, by_node, nodes)) is not None]
    return tuple(sorted(found, key=lambda one: (-one.incidents, one.node)))


def _lemon(own: list[Incident], by_node: Mapping[str, list[Incident]], nodes: int) -> Lemon | None:
    jobs = {one.job_id for one in own if one.job_id is not None}
    if len(own) < LEAST_INCIDENTS or len(jobs) < LEAST_JOBS or nodes < 2:
        return None
    others = sum(len(each) for each in by_node.values()) - len(own)
    expected = max(others, 1) / (nodes - 1)
    if nodes * _tail(len(own), expected) > CHANCE:
        return None
    kinds = tuple(sorted({one.kind for one in own}))
    return Lemon(node=own[0].node, incidents=len(own), jobs=len(jobs), kinds=kinds, expected=expected)


def _tail(count: int, expected: float) -> float:
    """Probability of ``count`` or more where ``expected`` are usual (Poisson)."""
    term, below = exp(-expected), 0.0
    for index in range(count):
        below += term
        term *= expected / (index + 1)
    return max(0.0, 1.0 - below)
