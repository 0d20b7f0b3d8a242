"""The hardware rows of a batch: GPUs and their samples, ports, the host, and the host's part of jobs."""

from dataclasses import dataclass
from typing import Literal

from flopwatch.encoding import require_finite

GpuState = Literal["ok", "lost", "reset_required", "unreadable"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuDevice:
    """One GPU or MIG instance in its slot: the inventory that capacity and peaks are made from."""

    uuid: str
    slot: str
    """PCI address such as ``0000:1b:00.0``; for a MIG instance the parent's address."""
    name: str
    """The exact NVML product name, without a MIG suffix."""
    index: int | None = None
    minor: int | None = None
    state: GpuState = "ok"
    reason: str | None = None
    """The NVML error, in words."""
    memory_total_bytes: int | None = None
    power_limit_watts: float | None = None
    pcie_width: int | None = None
    """Lanes of the PCIe link now."""
    pcie_width_maximum: int | None = None
    """Lanes that the GPU and its slot could have."""
    pcie_generation: int | None = None
    """Generation of the link now; it falls while the GPU idles."""
    pcie_generation_maximum: int | None = None
    mig_profile: str | None = None
    mig_parent_uuid: str | None = None
    mig_instance_id: int | None = None
    """NVML's id of the GPU instance that a MIG instance lies in."""
    sm_count: int | None = None
    max_sm_clock_hertz: float | None = None
    ib_guid: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuSample:
    """One GPU at one instant."""

    time_seconds: float
    gpu: str
    """The GPU's UUID."""
    interval_seconds: float | None = None
    """How much time this sample stands for; the batch's interval when not given."""
    kernel_active_ratio: float | None = None
    """Share of the driver's window with any kernel resident: what ``nvidia-smi`` calls utilisation."""
    memory_busy_ratio: float | None = None
    sm_active_ratio: float | None = None
    sm_occupancy_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None
    memory_used_bytes: int | None = None
    power_watts: float | None = None
    energy_joules: float | None = None  # cumulative since driver load
    temperature_celsius: float | None = None
    memory_temperature_celsius: float | None = None
    sm_clock_hertz: float | None = None
    memory_clock_hertz: float | None = None
    clock_event_reasons: int | None = None
    throttle_seconds: float | None = None
    """Cumulative time with a thermal or power-brake clock event."""
    pcie_transmit_bytes: int | None = None
    pcie_receive_bytes: int | None = None
    nvlink_transmit_bytes: int | None = None
    nvlink_receive_bytes: int | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    remapped_rows: int | None = None
    recovery_action: int | None = None
    process_count: int | None = None
    """Compute processes seen on the GPU; ``None`` when they could not be listed."""
    job: str | None = None
    """``JobSighting.ref`` of the job that holds the GPU."""

    def __post_init__(self) -> None:
        require_finite(self.time_seconds, "gpu_samples.time_seconds")
        for field in _RATIOS:
            value = getattr(self, field)
            if value is not None and not 0.0 <= value <= 1.0:
                raise ValueError(f"gpu_samples.{field} is {value!r}; allowed: 0 to 1, or absent")


_RATIOS = (
    "kernel_active_ratio", "memory_busy_ratio", "sm_active_ratio", "sm_occupancy_ratio",
    "tensor_active_ratio", "dram_active_ratio",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class PortSample:
    """One NIC port at one instant; counters are cumulative."""

    time_seconds: float
    port: str
    """``mlx5_0/1`` or a network device's name."""
    role: Literal["rdma", "ethernet", "management", "unknown"] = "unknown"
    scope: Literal["function"] | None = None
    """``function``: a virtual function's own bytes, others of the same link are not in them."""
    transmit_bytes: int | None = None
    receive_bytes: int | None = None
    errors: int | None = None
    waits: int | None = None
    link_up: bool | None = None
    link_rate_bits_per_second: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeSample:
    """Host signals of one node at one instant."""

    time_seconds: float
    cpu_busy_ratio: float | None = None
    io_wait_ratio: float | None = None
    memory_available_bytes: int | None = None
    memory_total_bytes: int | None = None
    memory_pressure_ratio: float | None = None
    disk_read_bytes: int | None = None
    disk_write_bytes: int | None = None
    cpu_pressure_ratio: float | None = None
    """Share of the last 10 seconds in which some task waited for a core."""
    io_pressure_ratio: float | None = None
    """Share of the last 10 seconds in which some task waited for storage."""
    major_faults: int | None = None  # cumulative since boot
    cache_refaults: int | None = None
    """File pages read again soon after they were dropped, cumulative: the page cache is too small."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobSample:
    """What a job's processes and its cgroup did on one node. Shares are of ``interval_seconds`` before the sample."""

    time_seconds: float
    job: str
    """``JobSighting.ref``."""
    interval_seconds: float | None = None
    training_processes: int | None = None
    main_thread_ratio: float | None = None
    """CPU of the busiest main thread of a training process, as a share of one core."""
    training_cpu_cores: float | None = None
    """CPU of all threads of the training processes, in cores."""
    loader_processes: int | None = None
    loader_cpu_cores: float | None = None
    """CPU of the data-loader processes, in cores."""
    loader_busiest_ratio: float | None = None
    """CPU of the busiest data-loader process, as a share of one core."""
    io_wait_ratio: float | None = None
    """Share of time in which the main thread or loader that waited longest for storage did so."""
    cpu_pressure_ratio: float | None = None
    memory_pressure_ratio: float | None = None
    io_pressure_ratio: float | None = None
    """Of the job's cgroup: share of the last 10 seconds in which some of its tasks waited."""
    memory_used_bytes: int | None = None
    """Of the job's cgroup, without file pages that may be dropped."""
    memory_limit_bytes: int | None = None
    disk_read_bytes: int | None = None
    disk_write_bytes: int | None = None
    major_faults: int | None = None
    cache_refaults: int | None = None
    """Of the job's cgroup, cumulative, as those of ``NodeSample``."""
