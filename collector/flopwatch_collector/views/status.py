"""The frame of every page: what is known, how new it is, and what a GPU-hour costs."""

import importlib.metadata
from functools import lru_cache

import numpy as np

from flopwatch.query import ClusterInfo, Status
from flopwatch_collector.bookkeeping.prices import prices_of
from flopwatch_collector.config import Settings
from flopwatch_collector.model import FleetState

REPORTING_INTERVALS = 2.5
"""A GPU reports while its newest sample is no older than this many of its node's intervals."""

TEAMS_LOOKBACK_SECONDS = 30 * 86_400.0


def status_of(
    state: FleetState, settings: Settings, now: float, generation: int, progress: float | None
) -> Status:
    """The frame at ``now``; ``progress`` is the share of older history that is filled in."""
    times = state.latest["ts"]
    price, variable = prices_of(settings.costs).mean(state.nodes, state.gpus.values())
    return Status(
        version=_version(),
        now_seconds=now,
        data_time_seconds=float(times.max()) if times.size else None,
        generation=generation,
        simulated=state.simulated,
        time_zone=settings.collector.time_zone,
        currency=settings.costs.currency,
        price_per_gpu_hour=price,
        variable_per_gpu_hour=variable,
        price_is_example=settings.costs.price_is_example,
        clusters=_clusters(state, now),
        teams=_teams(state, now),
        history_progress_ratio=progress if progress is not None and progress < 1.0 else None,
    )


def _teams(state: FleetState, now: float) -> tuple[str, ...]:
    """Accounts of jobs that run or ended lately."""
    since = now - TEAMS_LOOKBACK_SECONDS
    found = {
        job.account
        for job in state.jobs.values()
        if job.account and (job.end_seconds is None or job.end_seconds >= since)
    }
    return tuple(sorted(found))


def _clusters(state: FleetState, now: float) -> tuple[ClusterInfo, ...]:
    """Size of every cluster: nodes seen, slots that hold a GPU, and slots that reported lately."""
    reporting = reporting_gpus(state, now)
    nodes: dict[str, int] = {}
    for node in state.nodes.values():
        nodes[node.cluster] = nodes.get(node.cluster, 0) + 1
    slots: dict[str, set[tuple[int, str]]] = {name: set() for name in nodes}
    alive: dict[str, set[tuple[int, str]]] = {name: set() for name in nodes}
    for gpu in state.gpus.values():
        if gpu.to_seconds is None:
            slots.setdefault(gpu.cluster, set()).add((gpu.node, gpu.slot))
            if gpu.number in reporting:
                alive.setdefault(gpu.cluster, set()).add((gpu.node, gpu.slot))
    return tuple(
        ClusterInfo(
            name=name,
            nodes=nodes.get(name, 0),
            gpus=len(slots[name]),
            gpus_reporting=len(alive.get(name, ())),
        )
        for name in sorted(slots)
    )


def reporting_gpus(state: FleetState, now: float) -> frozenset[int]:
    """Numbers of the GPUs whose newest sample is fresh."""
    latest = state.latest
    intervals = {number: node.interval_seconds for number, node in state.nodes.items()}
    numbers, inverse = np.unique(latest["node"], return_inverse=True)
    limits = np.array([REPORTING_INTERVALS * intervals.get(int(number), 10.0) for number in numbers])
    fresh = now - latest["ts"] <= limits[inverse] if numbers.size else np.empty(0, dtype=np.bool_)
    return frozenset(latest["gpu"][fresh].astype(np.int64).tolist())


@lru_cache(maxsize=1)
def _version() -> str:
    return importlib.metadata.version("flopwatch")
