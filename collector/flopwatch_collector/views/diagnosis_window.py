"""The samples of five minutes that diagnoses are made from: read for many runs at once, put together by run."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from flopwatch_collector.compute.detection.peers import LOCAL_EXCESS, GpuSignal, LinkSignal
from flopwatch_collector.compute.diagnosis import nvlink, ports, window
from flopwatch_collector.compute.diagnosis.evidence import Counters, Host, Pipeline
from flopwatch_collector.compute.diagnosis.window import Floats, RankTime
from flopwatch_collector.compute.layout import take
from flopwatch_collector.model import (
    HOST_COLUMNS,
    NODE_COLUMNS,
    PHASE_COLUMNS,
    PHASE_KINDS,
    STEP_COLUMNS,
    Columns,
    FleetState,
    JobRecord,
    empty,
)
from flopwatch_collector.store.port import Store
from flopwatch_collector.views.pace import Pace, paces_of
from flopwatch_collector.views.present import JobNow

WINDOW_SECONDS = 300.0
THIRDS = 3
LEAST_RANKS = 3
GPU_READ = (
    "node", "kernel_active_ratio", "memory_used_bytes", "power_watts", "clock_event_reasons", "pcie_receive_bytes",
    "nvlink_transmit_bytes", "nvlink_receive_bytes", "ecc_uncorrected",
)  # fmt: skip
COUNTERS = ("pcie_receive_bytes", "nvlink_transmit_bytes", "nvlink_receive_bytes", "ecc_uncorrected")
COMMUNICATION = PHASE_KINDS.index("communication")


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """What was seen of one run in the window; tables without rows where nothing was."""

    start: float
    end: float
    gpus: Mapping[int, Columns] = field(default_factory=dict)
    """Samples by GPU, in time order."""
    growths: Mapping[str, Mapping[int, window.Growth]] = field(default_factory=dict)
    """By counter and GPU, of all GPUs that were read."""
    hosts: Columns = field(default_factory=lambda: empty(HOST_COLUMNS))
    nodes: Columns = field(default_factory=lambda: empty(NODE_COLUMNS))
    links: Mapping[int, ports.NodeLinks] = field(default_factory=dict)
    steps: Columns = field(default_factory=lambda: empty(STEP_COLUMNS))
    waits: Columns = field(default_factory=lambda: empty(PHASE_COLUMNS))
    pace: Pace = field(default_factory=Pace)
    """Over two hours: dips come back too seldom for the window."""


def nothing(now: float) -> Window:
    """A window in which nothing was seen."""
    return Window(start=now - WINDOW_SECONDS, end=now)


def windows_of(store: Store, jobs: Mapping[int, JobNow], now: float) -> dict[int, Window]:
    """The window of each run that ends now."""
    start, numbers = now - WINDOW_SECONDS, sorted(jobs)
    held = {number: gpus_of(job.record) for number, job in jobs.items()}
    places = {number: {part.node for part in job.record.parts} for number, job in jobs.items()}
    gpus, nodes = sorted(set().union(*held.values())), sorted(set().union(*places.values()))
    table = store.gpu_samples(start, now, GPU_READ, gpus=gpus) if gpus else empty(("ts", "gpu", *GPU_READ))
    samples = window.by_key(table, "gpu")
    growths = {name: window.growth(table, name) for name in COUNTERS}
    machines = window.by_key(store.host_samples("node", start, now, nodes), "node") if nodes else {}
    links = ports.of_nodes(ports.windows(store.port_samples(start, now, nodes))) if nodes else {}
    hosts = window.by_key(store.host_samples("job", start, now, numbers), "job")
    steps = window.by_key(store.steps(start, now, jobs=numbers), "job")
    phases = store.phases(start, now, jobs=numbers)
    waits = window.by_key(take(phases, phases["kind"] == COMMUNICATION), "job")
    blank, paces = nothing(now), paces_of(store, jobs, now)
    return {
        number: Window(
            start=start,
            end=now,
            gpus={gpu: samples[gpu] for gpu in sorted(held[number]) if gpu in samples},
            growths=growths,
            hosts=hosts.get(number, blank.hosts),
            nodes=_of(machines, places[number], blank.nodes),
            links={node: links[node] for node in places[number] if node in links},
            steps=steps.get(number, blank.steps),
            waits=waits.get(number, blank.waits),
            pace=paces.get(number, blank.pace),
        )
        for number in numbers
    }


def _of(tables: Mapping[int, Columns], numbers: Iterable[int], blank: Columns) -> Columns:
    """The rows of some devices, one device below the other."""
    parts = [tables[number] for number in sorted(numbers) if number in tables]
    if not parts:
        return blank
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def gpus_of(record: JobRecord) -> set[int]:
    """The GPUs that a job uses, else those that it was given."""
    return {gpu for part in record.parts for gpu in (part.gpus or part.leased_gpus or ())}


def counters_of(state: FleetState, seen: Window, known: Counters) -> Counters:
    """``known`` with what the window says of the run's GPUs and network."""
    devices = seen.gpus
    gpus = {number: state.gpus.get(number) for number in devices}
    limits = {number: gpu.power_limit_watts if gpu is not None else None for number, gpu in gpus.items()}
    totals = memory_totals(state, seen)
    nvlinks = rates(seen, "nvlink_transmit_bytes", "nvlink_receive_bytes")
    lines = {number: nvlink.line_rate(gpu.name) for number, gpu in gpus.items() if gpu is not None}
    used = {number: rate / line for number, rate in nvlinks.items() if (line := lines.get(number))}
    power = window.shares_of(devices, "power_watts", limits)
    memory = window.shares_of(devices, "memory_used_bytes", totals)
    nics = {node: one.line_ratio for node, one in seen.links.items() if one.line_ratio is not None}
    capped = window.power_cap_share(window.column(devices, "clock_event_reasons"))
    return replace(
        known,
        nvlink_ratio=window.mean_over(used, devices),
        nic_ratio=window.mean_over(nics, seen.links),
        pcie_receive_bytes_per_second=window.mean_over(rates(seen, "pcie_receive_bytes"), devices),
        power_limit_ratio=_together(power, devices, window.mean_of),
        power_cap_share=known.power_cap_share if capped is None else capped,
        spread_ratio=window.spread(devices, seen.end),
        kernel_p95_ratio=window.percentile_95(window.column(devices, "kernel_active_ratio")),
        memory_p95_ratio=_together(memory, devices, window.percentile_95),
    )


def rates(seen: Window, *names: str) -> dict[int, float]:
    """By GPU of the run: the sum of the counters' rates; GPUs of which one is not known are left out."""
    found = {}
    for number in seen.gpus:
        each = [seen.growths.get(name, {}).get(number) for name in names]
        known = [one.rate for one in each if one is not None]
        if len(known) == len(each):
            found[number] = sum(known)
    return found


def _together(
    shares: Mapping[int, Floats], devices: Mapping[int, Columns], figure: Callable[[Floats], float | None]
) -> float | None:
    """A figure over the samples of all devices; None where one's limit is not known."""
    return figure(np.concatenate(list(shares.values()))) if shares and len(shares) == len(devices) else None


def memory_totals(state: FleetState, seen: Window) -> dict[int, float | None]:
    """The memory of each GPU."""
    return {
        number: gpu.memory_total_bytes if (gpu := state.gpus.get(number)) is not None else None
        for number in seen.gpus
    }


def host_of(seen: Window) -> Host:
    """The hosts: the busiest decides, because a synchronous run goes at its pace."""
    hosts, machines = window.by_key(seen.hosts, "node"), window.by_key(seen.nodes, "node")

    def own(name: str) -> float | None:
        found = window.highest_mean(hosts, name)
        return window.highest_mean(machines, name) if found is None and name in NODE_COLUMNS else found

    return Host(
        cpu_busy_ratio=window.highest_mean(machines, "cpu_busy_ratio"),
        cpu_p95_ratio=window.percentile_95(seen.nodes["cpu_busy_ratio"]),
        main_thread_ratio=own("main_thread_ratio"),
        loader_ratio=own("loader_busiest_ratio"),
        io_wait_ratio=own("io_wait_ratio"),
        cpu_pressure_ratio=own("cpu_pressure_ratio"),
        memory_pressure_ratio=own("memory_pressure_ratio"),
        io_pressure_ratio=own("io_pressure_ratio"),
    )


def signals_of(
    state: FleetState, job: JobNow, seen: Window, newest: tuple[GpuSignal, ...], pipeline: int | None
) -> tuple[GpuSignal, ...]:
    """The GPUs' newest signals with what the window adds: shares of time, new errors, links, ranks and their times."""
    times = {one.rank: one for one in window.rank_times(seen.steps, seen.waits, seen.start, seen.end)}
    ranks = {gpu: rank for part in job.record.parts for gpu, rank in part.gpu_ranks}
    numbers = {_place(state, number): number for number in gpus_of(job.record)}
    world = job.basis.run.world_size or job.record.world_size
    found, told = [], set[int]()
    for signal in newest:
        number = numbers.get((signal.node, signal.gpu))
        rank = ranks.get(number) if number is not None else None
        rows = seen.gpus.get(number) if number is not None else None
        told |= {rank} if rank is not None else set()
        share = window.throttle_share(rows["clock_event_reasons"]) if rows is not None else None
        found.append(
            replace(
                signal,
                rank=rank,
                stage=stage_of(rank, world, pipeline),
                local_compute_seconds=times[rank].seconds if rank in times else None,
                throttle_share=signal.throttle_share if share is None else share,
                ecc_errors=new_errors(seen, number),
                pcie_degraded=degraded(state, number),
            )
        )
    rest = [one for rank, one in times.items() if rank not in told]
    return (*found, *(_of_rank(state, one, stage_of(one.rank, world, pipeline)) for one in rest))


def _place(state: FleetState, number: int) -> tuple[str, str | None]:
    gpu = state.gpus.get(number)
    node = None if gpu is None else state.nodes.get(gpu.node)
    name = str(number) if gpu is None else str(gpu.index) if gpu.index is not None else gpu.uuid
    return (node.name if node is not None else "", name)


def _of_rank(state: FleetState, time: RankTime, stage: int | None) -> GpuSignal:
    """A rank of which it is not known which GPU it has."""
    node = state.nodes.get(time.node)
    name = node.name if node is not None else f"node {time.node}"
    return GpuSignal(node=name, gpu=None, rank=time.rank, stage=stage, local_compute_seconds=time.seconds)


def stage_of(rank: int | None, world: int | None, pipeline: int | None) -> int | None:
    """The pipeline stage of a rank: Megatron-LM, DeepSpeed and torchtitan all give a stage consecutive ranks."""
    if rank is None or not world or not pipeline or pipeline < 2 or world % pipeline:
        return None
    return rank // (world // pipeline)


def new_errors(seen: Window, number: int | None) -> int | None:
    """A GPU's uncorrected memory errors within the window."""
    found = None if number is None else seen.growths.get("ecc_uncorrected", {}).get(number)
    return None if found is None else int(found.grown)


def degraded(state: FleetState, number: int | None) -> bool | None:
    """Whether a GPU's PCIe link is narrower, or at work slower, than it could be; None where that is not known."""
    gpu = state.gpus.get(number) if number is not None else None
    if gpu is None:
        return None
    pairs = ((gpu.pcie_width, gpu.pcie_width_maximum), (gpu.pcie_generation, gpu.pcie_generation_maximum))
    known = [now < most for now, most in pairs if now is not None and most is not None]
    return any(known) if known else None


def links_of(state: FleetState, seen: Window) -> tuple[LinkSignal, ...]:
    """The nodes' networks."""
    return tuple(
        LinkSignal(
            node=state.nodes[node].name,
            bytes_per_second=one.bytes_per_second,
            errors=one.errors,
            link_up=one.link_up,
        )
        for node, one in sorted(seen.links.items())
        if node in state.nodes
    )


def rotates(seen: Window) -> bool | None:
    """Whether another rank is the slow one in each third of the window; None where one third has none."""
    edges = np.linspace(seen.start, seen.end, THIRDS + 1).tolist()
    slow = []
    for first, last in itertools.pairwise(edges):
        own = take(seen.steps, (seen.steps["ts"] >= first) & (seen.steps["ts"] < last))
        times = window.rank_times(own, seen.waits, first, last)
        if len(times) < LEAST_RANKS:
            return None
        usual = float(np.median([one.seconds for one in times]))
        worst = max(times, key=lambda one: one.seconds)
        if usual <= 0.0 or worst.seconds < LOCAL_EXCESS * usual:
            return None
        slow.append(worst.rank)
    return len(set(slow)) == THIRDS


def pipeline_of(job: JobNow, stages: int | None) -> Pipeline | None:
    """The pipeline's schedule; None without one, or where the number of micro batches is not known."""
    if stages is None or stages < 2:
        return None
    micro = next((one.micro_batches for one in job.record.runs if one.micro_batches), None)
    chunks = next((one.pipeline_chunks for one in job.record.runs if one.pipeline_chunks), None)
    return None if micro is None else Pipeline(stages=stages, micro_batches=micro, chunks=chunks or 1)
