"""A node over time: piecewise constant levels of its hardware, their integrals, and noise; exact by seed."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flopwatch_deploy.simulation.cluster import Cluster
from flopwatch_deploy.simulation.segments import Life, Segment

Array = npt.NDArray[np.float64]
LevelsOf = Callable[[Life, Segment, int], tuple[float, ...]]
"""Levels of one segment of a run on one of its nodes, in the order of their names."""

LEVELS = (
    "kernel", "sm", "tensor", "dram", "power", "memory", "clock", "nic", "nvlink", "processes", "job", "throttled",
)  # fmt: skip
"""Ratios, watts, bytes, hertz, bytes a second a node, count, run number (0: none), 1 while thermally throttled."""

GIB = 1024.0**3
ALONE = 2e5
"""What a node sends, bytes a second, whose run has no other."""
_FREE = (0.0, 0.0, 0.0, 0.0, 71.0, 0.6 * GIB, 345e6, ALONE, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """Levels of one node between ``edges``: row i holds from ``edges[i]`` to ``edges[i + 1]``."""

    names: tuple[str, ...]
    edges: Array
    levels: Array
    integrals: Array

    def at(self, times: Array) -> dict[str, Array]:
        """Every level at each time."""
        rows = self.levels[self._row(times)]
        return {name: rows[:, index] for index, name in enumerate(self.names)}

    def integral(self, name: str, times: Array) -> Array:
        """The level integrated from the first edge to each time, in its unit times seconds."""
        index = self.names.index(name)
        row = self._row(times)
        result: Array = self.integrals[row, index] + self.levels[row, index] * (times - self.edges[row])
        return result

    def _row(self, times: Array) -> npt.NDArray[np.intp]:
        return np.clip(np.searchsorted(self.edges, times, side="left") - 1, 0, len(self.levels) - 1)


def course(cluster: Cluster, node: int) -> Course:
    """The course of a node's GPUs and network from the cluster's start to its horizon."""
    return piecewise(cluster, node, LEVELS, _FREE, _levels)


def piecewise(
    cluster: Cluster, node: int, names: tuple[str, ...], free: tuple[float, ...], levels_of: LevelsOf
) -> Course:
    """The course of some levels of a node; ``free`` holds where no run does."""
    lives = cluster.lives_on(node)
    edges = [min([cluster.start_seconds, *(item.run.start_seconds for item in lives)])]
    levels: list[tuple[float, ...]] = []
    for item in lives:
        for segment in item.segments:
            if segment.begin_seconds > edges[-1]:
                levels.append(free)
                edges.append(segment.begin_seconds)
            levels.append(levels_of(item, segment, node))
            edges.append(segment.end_seconds)
    levels.append(free)
    table = np.array(levels)
    bounds = np.array(edges)
    steps = table[:-1] * np.diff(bounds)[:, None]
    integrals = np.vstack([np.zeros(len(names)), np.cumsum(steps, axis=0)])
    return Course(names=names, edges=bounds, levels=table, integrals=integrals)


def _levels(item: Life, segment: Segment, node: int) -> tuple[float, ...]:
    """Levels of one segment on one node, in the order of ``LEVELS``."""
    run = item.run
    job = float(run.number)
    if segment.kind == "steps":
        return _stepping(item, node)
    busy = 66.0 * GIB
    table = {
        "startup": (0.12, 0.05, 0.0, 0.03, 178.0, 9 * GIB, 1.755e9, 4e8, 1e8, 1.0, job, 0.0),
        "checkpoint": (0.06, 0.03, 0.0, 0.06, 236.0, busy, 1.755e9, 2.2e9, 1e9, 1.0, job, 0.0),
        "eval": (0.94, 0.78, 0.33, 0.5, 540.0, busy, 1.755e9, 9e9, 5e10, 1.0, job, 0.0),
        "hang": (1.0, 0.03, 0.0, 0.01, 168.0, busy, 1.98e9, 1e4, 0.0, 1.0, job, 0.0),
        "recovery": (0.04, 0.02, 0.0, 0.02, 130.0, 4 * GIB, 1.2e9, 2e7, 0.0, 1.0, job, 0.0),
        "idle": (0.0, 0.0, 0.0, 0.0, 79.0, 22 * GIB, 345e6, 1e5, 0.0, 1.0, job, 0.0),
        "busy": (0.73, 0.41, 0.17, 0.3, 412.0, 48 * GIB, 1.755e9, 3e9, 4e9, 1.0, job, 0.0),
    }
    return table[segment.kind]


def _stepping(item: Life, node: int) -> tuple[float, ...]:
    run = item.run
    work = 1.0 - run.data_wait_ratio
    slow = run.slow_node == node
    tensor = run.mfu_ratio * 1.27
    kernel = 0.975 - 0.9 * run.data_wait_ratio
    power = 150.0 + 520.0 * min(1.0, tensor / 0.62) * (0.75 if slow else 1.0)
    clock = 1.14e9 if slow else 1.755e9
    return (
        kernel, kernel * 0.9, tensor, 0.42 * work + 0.1, power, 67.0 * GIB, clock,
        (2.4e10 if len(run.nodes) > 1 else ALONE) * work, 1.1e11 * work, 1.0, float(run.number), 1.0 if slow else 0.0,
    )  # fmt: skip


def noisy(values: Array, spread: float, rng: np.random.Generator, *, top: float | None = None) -> Array:
    """Values with relative noise, zero where they are zero, cut at ``top``."""
    result = values * (1.0 + spread * rng.standard_normal(values.shape))
    return np.clip(result, 0.0, top) if top is not None else np.maximum(result, 0.0)
