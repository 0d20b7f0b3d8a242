"""What the collector knows: slots, jobs, launches, leases, and the columns of what was measured.

Identities are made here and nowhere else. A *number* is a dense integer for storage; an *id* is what people,
links and labels see. Unknown numbers in columns are NaN; job number 0 means *no job*.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from flopwatch.accelerators import Accelerator
from flopwatch.wire import RunFacts

Columns = dict[str, npt.NDArray[Any]]
"""A table: column name → array, all of one length. ``ts`` is epoch seconds (float64)."""

NO_JOB = 0

GPU_METRICS = (
    "kernel_active_ratio", "memory_busy_ratio", "sm_active_ratio", "sm_occupancy_ratio", "tensor_active_ratio",
    "dram_active_ratio", "memory_used_bytes", "power_watts", "energy_joules", "temperature_celsius",
    "memory_temperature_celsius", "sm_clock_hertz", "memory_clock_hertz", "clock_event_reasons", "throttle_seconds",
    "pcie_transmit_bytes", "pcie_receive_bytes", "nvlink_transmit_bytes", "nvlink_receive_bytes",
    "ecc_corrected", "ecc_uncorrected", "remapped_rows", "recovery_action", "process_count",
)  # fmt: skip
GPU_COLUMNS = ("ts", "gpu", "node", "job", "interval_seconds", *GPU_METRICS)
NODE_COLUMNS = (
    "ts", "node", "cpu_busy_ratio", "io_wait_ratio", "memory_available_bytes", "memory_total_bytes",
    "memory_pressure_ratio", "disk_read_bytes", "disk_write_bytes", "cpu_pressure_ratio", "io_pressure_ratio",
    "major_faults", "cache_refaults",
)  # fmt: skip
HOST_COLUMNS = (
    "ts", "node", "job", "interval_seconds", "training_processes", "main_thread_ratio", "training_cpu_cores",
    "loader_processes", "loader_cpu_cores", "loader_busiest_ratio", "io_wait_ratio", "cpu_pressure_ratio",
    "memory_pressure_ratio", "io_pressure_ratio", "memory_used_bytes", "memory_limit_bytes", "disk_read_bytes",
    "disk_write_bytes", "major_faults", "cache_refaults",
)  # fmt: skip
"""What a job's processes and cgroup did on a node."""
PORT_COLUMNS = (
    "ts", "node", "port", "role", "transmit_bytes", "receive_bytes", "errors", "waits", "link_up",
    "link_rate_bits_per_second",
)  # fmt: skip
"""``port`` and ``role`` are strings, as on the wire; byte counters are cumulative."""
STEP_COLUMNS = (
    "ts", "job", "node", "source", "launch", "rank", "step", "steps_covered", "seconds", "resolution_seconds",
    "tokens", "padded_tokens", "sum_squared_document_tokens", "loss", "skipped_steps", "steady",
    "reported_flops_per_gpu", "reported_mfu_ratio", "data_wait_seconds", "basis",
)  # fmt: skip
"""``ts`` is the end of the covered steps; ``source`` 0 SDK, 1 file, 2 log; ``launch`` is ``Launch.number``;
``rank`` -1 when unknown; ``basis`` an index into ``STEP_BASES``."""
PHASE_COLUMNS = ("ts", "end", "job", "launch", "kind", "step", "blocking", "committed")
"""``ts`` begin, ``end`` NaN while it lasts; ``kind`` an index into ``PHASE_KINDS``; ``step`` -1 when unknown."""
EVENT_COLUMNS = ("ts", "kind", "node", "gpu", "code", "value", "text")
"""``gpu`` 0 when the event is the node's; ``kind``, ``value`` and ``text`` are strings."""

SOURCE_KINDS = ("sdk", "file", "log")
PHASE_KINDS = ("startup", "data", "eval", "checkpoint", "generation", "communication")
STEP_BASES = (
    "printed", "corrected", "derived_tokens", "derived_rate", "derived_counter", "derived_timestamps",
    "derived_bar_elapsed", "derived_samples", "sum_of_micro_steps", "arrival", "none",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A node by its dense number."""

    number: int
    cluster: str
    name: str
    first_seen_seconds: float
    last_seen_seconds: float
    interval_seconds: float = 10.0
    machine_id: str | None = None
    nvml: str = "absent"
    driver_version: str | None = None
    permission_gaps: tuple[str, ...] = ()
    clock_offset_seconds: float = 0.0
    """Collector minus node at the last push; beyond 2 s times are shifted by it and labelled."""
    reported: bool = True
    """Whether its agent ever reported; else it is only told of by a scheduler or the settings."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """A GPU's tenure of a slot. A new UUID in the slot ends the old tenure, so capacity counts slots."""

    number: int
    cluster: str
    node: int
    slot: str
    uuid: str
    name: str
    from_seconds: float
    to_seconds: float | None = None
    state: str = "ok"
    reason: str | None = None
    index: int | None = None
    memory_total_bytes: int | None = None
    mig_profile: str | None = None
    sm_count: int | None = None
    max_sm_clock_hertz: float | None = None
    power_limit_watts: float | None = None
    pcie_width: int | None = None
    pcie_width_maximum: int | None = None
    pcie_generation: int | None = None
    """As the link was while the GPU was at work."""
    pcie_generation_maximum: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobPart:
    """What one node reported of a job."""

    node: int
    ref: str
    gpus: tuple[int, ...] = ()
    """Numbers of the GPUs its processes use."""
    gpu_ranks: tuple[tuple[int, int], ...] = ()
    """(GPU's number, rank whose process computes on it), where that is known."""
    leased_gpus: tuple[int, ...] | None = None
    ranks: tuple[int, ...] = ()
    start_seconds: float | None = None
    end_seconds: float | None = None
    exit_reason: str | None = None
    last_seen_seconds: float = 0.0
    waiting_for: str | None = None
    log_path: str | None = None
    log_problem: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """One launch as one source numbers it: (source id, its session index). Launches make sessions."""

    number: int
    job: int
    source: int
    source_id: str
    session: int
    begin_seconds: float | None = None
    end_seconds: float | None = None
    exit_reason: str | None = None
    restart_number: int | None = None
    resumed_from_step: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRecord:
    """A job: the scheduler's, or what stands for it, joined over its nodes."""

    number: int
    job_id: str
    key: str
    cluster: str
    name: str
    scheduler: str
    scheduler_job_id: str | None = None
    user: str | None = None
    account: str | None = None
    kind: str = "unknown"
    master: str | None = None
    world_size: int | None = None
    """As the scheduler or the environment says; the trainer's own is in ``runs``."""
    start_seconds: float | None = None
    end_seconds: float | None = None
    exit_reason: str | None = None
    last_seen_seconds: float = 0.0
    target_ratio: float | None = None
    declared_gpu_hours: float | None = None
    """What the job was declared to take."""
    tracker_url: str | None = None
    """The run on the trainer's own dashboard, as it was declared."""
    owner_contact: str | None = None
    parts: tuple[JobPart, ...] = ()
    runs: tuple[RunFacts, ...] = ()
    findings: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    """(code, text, values), one a code."""
    declared_seconds: float | None = None
    """When facts in this record were last declared; None where all were found."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredFact:
    """One fact of a job as an operator declared it; it beats what was found."""

    value: Any
    seconds: float
    """When it was declared."""
    by: str | None = None
    """Name of the access token; None on a collector that needs none."""
    origin: str = "declared"
    """Where its value is from, for people."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseRecord:
    """GPUs held for a job over a time, from a scheduler or from use."""

    lease_id: str
    job: int
    gpus: tuple[int, ...]
    source: Literal["slurm", "kubernetes", "prolog", "api", "registration", "process"]
    start_seconds: float
    end_seconds: float | None = None
    share_ratio: float = 1.0
    qos: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RawRows:
    """What one batch brings to the raw tables, as columns of their ``…_COLUMNS``."""

    gpu: Columns = field(default_factory=dict)
    node: Columns = field(default_factory=dict)
    port: Columns = field(default_factory=dict)
    step: Columns = field(default_factory=dict)
    phase: Columns = field(default_factory=dict)
    event: Columns = field(default_factory=dict)
    host: Columns = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchId:
    """(node, spool, sequence): what makes a batch countable once."""

    node: str
    spool: str
    sequence: int


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetState:
    """Everything that is known now, as one consistent view; keys are numbers (leases: their ids)."""

    generation: int
    nodes: Mapping[int, Node]
    gpus: Mapping[int, Gpu]
    jobs: Mapping[int, JobRecord]
    launches: Mapping[int, Launch]
    leases: Mapping[str, LeaseRecord]
    latest: Columns
    """The newest sample of every GPU, ``GPU_COLUMNS``."""
    simulated: bool = False
    site_accelerators: tuple[Accelerator, ...] = ()
    """GPU models with the site's own peaks; they win over the table."""


class Fleet(Protocol):
    """Where the present state of the fleet is asked for."""

    def state(self) -> FleetState:
        """The state now; cheap, and safe to keep."""
        ...


def empty(names: tuple[str, ...]) -> Columns:
    """A table of no rows with these columns (float64)."""
    return {name: np.empty(0) for name in names}
