"""The hosts of simulated nodes: what a run's processes do on the CPU and the disks, as each stretch of it asks."""

from collections.abc import Mapping

import numpy as np

from flopwatch.wire import JobSample, NodeSample
from flopwatch_deploy.simulation.cluster import DAY, Cluster
from flopwatch_deploy.simulation.course import GIB, Array, Course, noisy, piecewise
from flopwatch_deploy.simulation.runs import GPUS_PER_NODE, Run
from flopwatch_deploy.simulation.segments import Life, Segment

CORES = 128
MEMORY_BYTES = int(2014 * GIB)
MEMORY_LIMIT_BYTES = int(1900 * GIB)
SYSTEM_MEMORY_BYTES = int(61 * GIB)
"""What the system itself holds of a node's memory."""

LEVELS = (
    "trainers", "main", "trainer_cores", "loaders", "loader_cores", "loader", "io_wait", "cpu_stall", "io_stall",
    "memory", "read", "write", "copied", "faults", "refaults", "job",
)  # fmt: skip
"""Counts, shares of a core or of time, cores, bytes; and a second: bytes read, written, copied to the GPUs, faults."""

_FREE = (0.0,) * len(LEVELS)


def host_course(cluster: Cluster, node: int) -> Course:
    """The course of a node's host from the cluster's start to its horizon."""
    return piecewise(cluster, node, LEVELS, _FREE, _levels)


def _levels(item: Life, segment: Segment, _node: int) -> tuple[float, ...]:
    """Levels of one segment, the same on every node of the run."""
    run = item.run
    job = float(run.number)
    if run.kind == "interactive":
        return (1.0, *_INTERACTIVE[segment.kind], job)
    if segment.kind in ("steps", "eval") and run.data_wait_ratio > 0.0:
        return (GPUS_PER_NODE, *_STARVED, job)
    return (GPUS_PER_NODE, *_BY_KIND[segment.kind], job)


_BY_KIND: dict[str, tuple[float, ...]] = {
    # The main threads load the model or the checkpoint from storage.
    "startup": (0.91, 21.0, 0.0, 0.0, 0.0, 0.24, 0.02, 0.27, 96 * GIB, 1.6e9, 3e5, 1.5e9, 38.0, 210.0),
    "steps": (0.62, 9.4, 32.0, 2.6, 0.21, 0.01, 0.01, 0.008, 310 * GIB, 9e7, 2e5, 6e7, 0.02, 0.5),
    "eval": (0.58, 9.0, 32.0, 2.2, 0.18, 0.01, 0.01, 0.008, 310 * GIB, 8e7, 2e5, 6e7, 0.02, 0.5),
    # Copies of the state go to the host's memory and from there to its disks.
    "checkpoint": (0.93, 14.2, 32.0, 0.1, 0.01, 0.46, 0.03, 0.53, 420 * GIB, 2e6, 2.2e9, 1e6, 0.4, 40.0),
    # A thread that waits in a collective spins.
    "hang": (1.0, 8.3, 32.0, 0.02, 0.0, 0.0, 0.0, 0.0, 310 * GIB, 0.0, 0.0, 0.0, 0.0, 0.0),
    "recovery": (0.34, 3.1, 0.0, 0.0, 0.0, 0.12, 0.01, 0.14, 70 * GIB, 3e8, 2e5, 2e7, 12.0, 30.0),
    "idle": (0.0, 0.03, 32.0, 0.01, 0.0, 0.0, 0.0, 0.0, 290 * GIB, 0.0, 0.0, 0.0, 0.0, 0.0),
    "busy": (0.71, 9.8, 16.0, 7.4, 0.55, 0.02, 0.02, 0.02, 180 * GIB, 2.2e8, 3e5, 2e8, 0.1, 2.0),
}
_STARVED = (0.34, 4.6, 32.0, 31.4, 0.99, 0.07, 0.05, 0.06, 520 * GIB, 1.4e9, 2e5, 9e8, 0.3, 5200.0)
"""Every data loader is at the limit of its core, decoding images, while the main threads wait for batches."""
_INTERACTIVE: dict[str, tuple[float, ...]] = {
    "busy": (0.83, 1.2, 0.0, 0.0, 0.0, 0.01, 0.0, 0.01, 34 * GIB, 2e7, 1e6, 4e7, 0.1, 1.0),
    "idle": (0.0, 0.004, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 31 * GIB, 0.0, 2e3, 0.0, 0.0, 0.0),
}


def job_samples(
    host: Course, runs: Mapping[int, Run], times: Array, rng: np.random.Generator, seconds: float
) -> tuple[JobSample, ...]:
    """A sample of the run that the node has at each time; ``seconds`` is their distance."""
    levels = host.at(times)
    shares = {name: np.round(noisy(levels[name], 0.04, rng, top=1.0), 4) for name in _SHARES}
    cores = {name: np.round(noisy(levels[name], 0.04, rng), 3) for name in ("trainer_cores", "loader_cores")}
    counters = {name: host.integral(name, times) for name in _COUNTERS}
    found = []
    for place, number in enumerate(levels["job"].astype(np.int64).tolist()):
        run = runs.get(number)
        if run is None:
            continue
        begin = np.array([run.start_seconds])
        grown = {name: int(counters[name][place] - host.integral(name, begin)[0]) for name in _COUNTERS}
        found.append(
            JobSample(
                time_seconds=float(times[place]),
                job=f"slurm:{number}",
                interval_seconds=seconds,
                training_processes=int(levels["trainers"][place]),
                training_cpu_cores=float(cores["trainer_cores"][place]),
                loader_processes=int(levels["loaders"][place]),
                loader_cpu_cores=float(cores["loader_cores"][place]) if levels["loaders"][place] else None,
                loader_busiest_ratio=float(shares["loader"][place]) if levels["loaders"][place] else None,
                main_thread_ratio=float(shares["main"][place]),
                io_wait_ratio=float(shares["io_wait"][place]),
                cpu_pressure_ratio=float(shares["cpu_stall"][place]),
                memory_pressure_ratio=0.0,
                io_pressure_ratio=float(shares["io_stall"][place]),
                memory_used_bytes=int(levels["memory"][place]),
                memory_limit_bytes=MEMORY_LIMIT_BYTES,
                disk_read_bytes=grown["read"],
                disk_write_bytes=grown["write"],
                major_faults=grown["faults"],
                cache_refaults=grown["refaults"],
            )
        )
    return tuple(found)


_SHARES = ("main", "loader", "io_wait", "cpu_stall", "io_stall")
_COUNTERS = ("read", "write", "faults", "refaults")


def node_samples(host: Course, times: Array) -> tuple[NodeSample, ...]:
    """The host at each time: its run's part and the system's own."""
    levels = host.at(times)
    counters = {name: host.integral(name, times) for name in _COUNTERS}
    own = 0.012 + 0.004 * np.sin(2.0 * np.pi * times / DAY)
    busy = own + (levels["trainer_cores"] + levels["loader_cores"]) / CORES
    waiting = 0.001 + levels["io_wait"] * levels["trainers"] / CORES
    free = MEMORY_BYTES - SYSTEM_MEMORY_BYTES - levels["memory"]
    begun = times - host.edges[0]
    return tuple(
        NodeSample(
            time_seconds=time,
            cpu_busy_ratio=round(float(busy[place]), 4),
            io_wait_ratio=round(float(waiting[place]), 4),
            memory_available_bytes=int(free[place]),
            memory_total_bytes=MEMORY_BYTES,
            memory_pressure_ratio=0.0,
            cpu_pressure_ratio=float(levels["cpu_stall"][place]),
            io_pressure_ratio=float(levels["io_stall"][place]),
            disk_read_bytes=int(counters["read"][place] + 4e4 * begun[place]),
            disk_write_bytes=int(counters["write"][place] + 3e5 * begun[place]),
            major_faults=int(counters["faults"][place]),
            cache_refaults=int(counters["refaults"][place]),
        )
        for place, time in enumerate(times.tolist())
    )
