"""The one table of exported metrics. Names are OpenTelemetry's where it has them, else begin with ``flopwatch_``.

Base units are in the names; a name that ends in ``_total`` is a counter. Labels of jobs stand on
``flopwatch_job_gpu_info`` only: join by ``gpu_uuid``.
"""

from dataclasses import dataclass
from typing import Literal

MetricKind = Literal["gauge", "counter"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """One metric."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()


GPU = ("gpu_uuid",)
PORT = ("port",)


def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Metric:
    """A level that goes up and down."""
    return Metric(name=name, kind="gauge", help=text, labels=labels)


def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Metric:
    """A count that only grows, and restarts at 0."""
    return Metric(name=name, kind="counter", help=text, labels=labels)


GPU_SAMPLE: dict[str, Metric] = {
    "kernel_active_ratio": gauge(
        "hw_gpu_utilization_ratio",
        "Share of the driver's window with any kernel resident, as nvidia-smi says it; a waiting kernel counts.", GPU,
    ),
    "memory_busy_ratio": gauge(
        "flopwatch_gpu_memory_busy_ratio", "Share of the driver's window in which memory was read or written.", GPU
    ),
    "sm_active_ratio": gauge("flopwatch_gpu_sm_active_ratio", "Share of multiprocessors at work (GPM).", GPU),
    "sm_occupancy_ratio": gauge(
        "flopwatch_gpu_sm_occupancy_ratio", "Resident warps against the most that fit (GPM).", GPU
    ),
    "tensor_active_ratio": gauge("flopwatch_gpu_tensor_active_ratio", "Share of time of any tensor pipe (GPM).", GPU),
    "dram_active_ratio": gauge("flopwatch_gpu_dram_active_ratio", "Share of DRAM bandwidth in use (GPM).", GPU),
    "memory_used_bytes": gauge("hw_gpu_memory_usage_bytes", "Memory in use, without the driver's reserve.", GPU),
    "power_watts": gauge("hw_power_watts", "Power drawn now.", GPU),
    "energy_joules": counter("hw_energy_joules_total", "Energy since the driver was loaded.", GPU),
    "temperature_celsius": gauge("hw_temperature_celsius", "Temperature of the GPU.", GPU),
    "memory_temperature_celsius": gauge(
        "flopwatch_gpu_memory_temperature_celsius", "Temperature of the GPU's memory.", GPU
    ),
    "sm_clock_hertz": gauge("flopwatch_gpu_sm_clock_hertz", "Clock of the multiprocessors.", GPU),
    "memory_clock_hertz": gauge("flopwatch_gpu_memory_clock_hertz", "Clock of the memory.", GPU),
    "clock_event_reasons": gauge(
        "flopwatch_gpu_clock_event_reasons", "Bit mask of why clocks are held down, as NVML numbers the reasons.", GPU
    ),
    "throttle_seconds": counter(
        "flopwatch_gpu_throttle_seconds_total", "Time slowed down by heat or the power brake; overlapping reasons add.",
        GPU,
    ),
    "nvlink_transmit_bytes": counter("flopwatch_gpu_nvlink_transmit_bytes_total", "Bytes sent over NVLink.", GPU),
    "nvlink_receive_bytes": counter("flopwatch_gpu_nvlink_receive_bytes_total", "Bytes received over NVLink.", GPU),
    "ecc_corrected": counter(
        "flopwatch_gpu_ecc_corrected_errors_total", "Corrected memory errors since the driver was loaded.", GPU
    ),
    "ecc_uncorrected": counter(
        "flopwatch_gpu_ecc_uncorrected_errors_total", "Uncorrected memory errors since the driver was loaded.", GPU
    ),
    "remapped_rows": gauge("flopwatch_gpu_remapped_rows", "Memory rows that were replaced.", GPU),
    "recovery_action": gauge(
        "flopwatch_gpu_recovery_action",
        "What the driver asks for: 0 nothing, 1 reset, 2 reboot, 3 drain, 4 drain and reset, 5 recover IMEX, "
        "6 bus reset, 7 system reboot.", GPU,
    ),
    "process_count": gauge("flopwatch_gpu_processes", "Compute processes on the GPU.", GPU),
}  # fmt: skip

GPU_DETAILS: dict[str, Metric] = {
    "clock_event_seconds": counter(
        "flopwatch_gpu_clock_event_seconds_total", "Time for which clocks were held down, by reason.",
        ("gpu_uuid", "reason"),
    ),
    "average_power_watts": gauge(
        "flopwatch_gpu_average_power_watts",
        "Power over the driver's last second; module is GPU, CPU and memory of a Grace superchip.",
        ("gpu_uuid", "scope"),
    ),
    "module_power_watts": gauge(
        "flopwatch_gpu_module_power_watts", "Power of the Grace superchip's module now; its GPUs share it.", GPU
    ),
    "module_energy_joules": counter(
        "flopwatch_gpu_module_energy_joules_total", "Energy of the Grace superchip's module; its GPUs share it.", GPU
    ),
    "row_remap_pending": gauge("flopwatch_gpu_row_remap_pending", "1 while a reset would replace memory rows.", GPU),
    "row_remap_failed": gauge("flopwatch_gpu_row_remap_failed", "1 when a memory row could not be replaced.", GPU),
    "pcie_errors": counter(
        "flopwatch_gpu_pcie_errors_total", "Errors and replays of the PCIe link, by kind.", ("gpu_uuid", "kind")
    ),
    "pcie_generation": gauge(
        "flopwatch_gpu_pcie_generation", "Generation of the PCIe link; it falls while the GPU idles.",
        ("gpu_uuid", "limit"),
    ),
    "pcie_lanes": gauge("flopwatch_gpu_pcie_lanes", "Lanes of the PCIe link.", ("gpu_uuid", "limit")),
    "nvlink_errors": counter(
        "flopwatch_gpu_nvlink_errors_total", "Errors of all NVLinks of the GPU, by kind.", ("gpu_uuid", "kind")
    ),
    "persistence_mode": gauge(
        "flopwatch_gpu_persistence_mode", "1 when the driver keeps the GPU initialised while nobody uses it.", GPU
    ),
    "sm_cycles": counter(
        "flopwatch_gpu_sm_cycles_total", "Cycles of the multiprocessors: elapsed, active, and of a tensor pipe.",
        ("gpu_uuid", "state"),
    ),
}  # fmt: skip
"""What is told at ``/metrics`` only."""

GPU_XIDS = counter(
    "flopwatch_gpu_xid_errors_total", "XIDs of the GPU since the agent began.", ("gpu_uuid", "xid")
)
GPU_XID_TIME = gauge(
    "flopwatch_gpu_xid_last_timestamp_seconds",
    "When the XID was last seen, in epoch seconds.",
    ("gpu_uuid", "xid"),
)
GPU_NIC = gauge(
    "flopwatch_gpu_nic_affinity_info",
    "How near GPU and NIC are: switch, switches, root_complex, numa_node, system or unknown.",
    ("gpu_uuid", "device", "relation"),
)
GPU_INFO = gauge(
    "flopwatch_gpu_info", "Identity of a GPU.", ("gpu_uuid", "name", "slot", "index", "mig_profile")
)
GPU_UP = gauge("flopwatch_gpu_up", "1 while the GPU answers and its last sample is fresh.", GPU)
GPU_AGE = gauge("flopwatch_gpu_sample_age_seconds", "Age of the GPU's last sample.", GPU)
GPU_METRIC_AVAILABLE = gauge(
    "flopwatch_gpu_metric_available", "1 while every GPU that is read tells this value.", ("metric",)
)
GPU_MEMORY = gauge("hw_gpu_memory_limit_bytes", "Memory of the GPU.", GPU)
GPU_POWER_LIMIT = gauge("hw_power_limit_watts", "Enforced power limit.", GPU)
GPU_IO = counter(
    "hw_gpu_io_bytes_total", "Bytes over PCIe since the agent began.", ("gpu_uuid", "network_io_direction")
)
JOB_INFO = gauge(
    "flopwatch_job_gpu_info", "Which job uses a GPU.", ("gpu_uuid", "job_id", "scheduler", "user", "account")
)

PORT_IO = counter("hw_network_io_bytes_total", "Bytes over the port.", ("port", "network_io_direction"))
PORT_INFO = gauge(
    "flopwatch_port_info",
    "Which kind a port is; scope function is a virtual one's own bytes.",
    ("port", "role", "scope"),
)
PORT_UP = gauge("hw_network_up", "1 while the link is up.", PORT)
PORT_LIMIT = gauge("hw_network_bandwidth_limit_bytes_per_second", "Rate of the link.", PORT)
PORT_ERRORS = counter("flopwatch_network_errors_total", "Errors and drops of the port.", PORT)
PORT_WAITS = counter(
    "flopwatch_network_transmit_wait_ticks_total", "Ticks in which data waited for credits.", PORT
)

NODE_CPU = gauge("flopwatch_node_cpu_busy_ratio", "Share of CPU time at work.")
NODE_IO_WAIT = gauge("flopwatch_node_io_wait_ratio", "Share of CPU time waiting for storage.")
NODE_MEMORY = gauge("flopwatch_node_memory_available_bytes", "Memory that programs may still take.")
NODE_MEMORY_TOTAL = gauge("flopwatch_node_memory_total_bytes", "Memory of the node.")
NODE_PRESSURE = gauge(
    "flopwatch_node_memory_pressure_ratio", "Share of the last 10 s in which some task waited for memory."
)
NODE_CPU_PRESSURE = gauge(
    "flopwatch_node_cpu_pressure_ratio", "Share of the last 10 s in which some task waited for a core."
)
NODE_IO_PRESSURE = gauge(
    "flopwatch_node_io_pressure_ratio", "Share of the last 10 s in which some task waited for storage."
)
NODE_DISK = counter("flopwatch_node_disk_io_bytes_total", "Bytes of all whole disks.", ("direction",))

JOB_STEP = gauge("flopwatch_job_step", "Last optimizer step that was seen.", ("job_id",))
JOB_STEP_SECONDS = gauge(
    "flopwatch_job_step_seconds", "Mean duration of the last steps that were seen.", ("job_id",)
)
JOB_STEP_AGE = gauge("flopwatch_job_step_age_seconds", "Time since the last step that was seen.", ("job_id",))

JOB_HOST: dict[str, Metric] = {
    "main_thread_ratio": gauge(
        "flopwatch_job_main_thread_ratio",
        "CPU of the busiest main thread of a training process, as a share of one core.", ("job_id",),
    ),
    "training_cpu_cores": gauge(
        "flopwatch_job_training_cpu_cores", "CPU of the training processes on this node, in cores.", ("job_id",)
    ),
    "loader_cpu_cores": gauge(
        "flopwatch_job_loader_cpu_cores", "CPU of the data-loader processes on this node, in cores.", ("job_id",)
    ),
    "loader_busiest_ratio": gauge(
        "flopwatch_job_loader_busiest_ratio",
        "CPU of the busiest data-loader process, as a share of one core.", ("job_id",),
    ),
    "io_wait_ratio": gauge(
        "flopwatch_job_io_wait_ratio",
        "Share of time that the main thread or loader which waited longest for storage did so.", ("job_id",),
    ),
    "memory_used_bytes": gauge(
        "flopwatch_job_memory_usage_bytes", "Memory of the job's cgroup, without droppable file pages.", ("job_id",)
    ),
    "memory_limit_bytes": gauge(
        "flopwatch_job_memory_limit_bytes", "Memory that the job's cgroup may take.", ("job_id",)
    ),
}  # fmt: skip
"""By field of ``JobSample``."""
JOB_PRESSURE = gauge(
    "flopwatch_job_pressure_ratio",
    "Share of the last 10 s in which some task of the job's cgroup waited for the resource.",
    ("job_id", "resource"),
)
JOB_DISK = counter(
    "flopwatch_job_disk_io_bytes_total", "Bytes of whole disks by the job's cgroup.", ("job_id", "direction")
)
JOB_FAULTS = counter(
    "flopwatch_job_major_faults_total", "Page faults of the job's cgroup that needed storage.", ("job_id",)
)
JOB_REFAULTS = counter(
    "flopwatch_job_cache_refaults_total",
    "File pages of the job's cgroup that were read again soon after they were dropped.",
    ("job_id",),
)

LOG_LAG = gauge("flopwatch_log_lag_bytes", "Bytes of followed logs not yet read.", ("job_id",))
AGENT_INFO = gauge(
    "flopwatch_agent_info", "Version of the agent and of the driver.", ("version", "driver_version")
)
NVML_UP = gauge("flopwatch_nvml_up", "1 while NVML works.")
GPUS_EXPECTED = gauge("flopwatch_gpus_expected", "NVIDIA GPUs that the PCI bus lists.")
GPUS_SEEN = gauge("flopwatch_gpus_seen", "GPUs that NVML lists.")
SOURCE_SUCCESS = gauge("flopwatch_source_success", "1 when the source's last read went well.", ("source",))
SOURCE_SECONDS = gauge(
    "flopwatch_source_duration_seconds", "Duration of the source's last read.", ("source",)
)
SOURCE_AGE = gauge("flopwatch_source_age_seconds", "Time since the source's last read.", ("source",))
SOURCE_ERRORS = counter("flopwatch_source_errors_total", "Reads of the source that failed.", ("source",))

AGENT_COUNTERS: dict[str, Metric] = {
    "branch_unknown": gauge(
        "flopwatch_nvml_branch_unknown",
        "1 when the driver is newer than all whose field numbers are known; the newest known ones are used.",
    ),
    "resident_bytes": gauge("flopwatch_agent_resident_bytes", "Memory of the agent."),
    "open_files": gauge("flopwatch_agent_open_files", "Open descriptors of the agent."),
    "counter_resets": counter(
        "flopwatch_hardware_count_resets_total", "Counters of GPUs and NIC ports that began anew."
    ),
    "counter_leaps": counter(
        "flopwatch_hardware_count_leaps_total",
        "Leaps of counters beyond what the link or the GPU can do; they are left out of the counter.",
    ),
    "spool_waiting_batches": gauge("flopwatch_spool_waiting_batches", "Batches that wait to be sent."),
    "spool_waiting_bytes": gauge("flopwatch_spool_waiting_bytes", "Their size on disk."),
    "spool_dropped": counter(
        "flopwatch_spool_dropped_batches_total", "Batches given up because the spool was full."
    ),
    "spool_failed": counter(
        "flopwatch_spool_failed_writes_total", "Batches that could not be written to disk."
    ),
    "push_sent": counter("flopwatch_push_sent_batches_total", "Batches that the collector took."),
    "push_rejected": counter(
        "flopwatch_push_rejected_batches_total", "Batches that the collector refused for good."
    ),
    "push_failed": counter("flopwatch_push_failed_attempts_total", "Attempts that are tried again."),
    "sdk_malformed": counter(
        "flopwatch_sdk_malformed_messages_total", "SDK messages that were not understood."
    ),
    "sdk_claims": counter(
        "flopwatch_sdk_ignored_claims_total", "Claims of identity in SDK messages, ignored."
    ),
    "sdk_refused_rate": counter(
        "flopwatch_sdk_rate_limited_messages_total", "SDK messages over a sender's rate."
    ),
    "sdk_refused_size": counter(
        "flopwatch_sdk_oversized_messages_total", "SDK messages over the size limit."
    ),
    "sdk_unattributed": counter(
        "flopwatch_sdk_unattributed_messages_total", "SDK messages whose sender was gone."
    ),
    "series_dropped": counter("flopwatch_series_dropped_total", "Series left out because of the limit."),
}

ALL: tuple[Metric, ...] = (
    *GPU_SAMPLE.values(), *GPU_DETAILS.values(), GPU_XIDS, GPU_XID_TIME, GPU_NIC,
    GPU_INFO, GPU_UP, GPU_AGE, GPU_METRIC_AVAILABLE, GPU_MEMORY, GPU_POWER_LIMIT, GPU_IO, JOB_INFO,
    PORT_INFO, PORT_IO, PORT_UP, PORT_LIMIT, PORT_ERRORS, PORT_WAITS,
    NODE_CPU, NODE_IO_WAIT, NODE_MEMORY, NODE_MEMORY_TOTAL, NODE_PRESSURE,
    NODE_CPU_PRESSURE, NODE_IO_PRESSURE, NODE_DISK, *JOB_HOST.values(), JOB_PRESSURE, JOB_DISK, JOB_FAULTS,
    JOB_REFAULTS, JOB_STEP, JOB_STEP_SECONDS, JOB_STEP_AGE, LOG_LAG, AGENT_INFO, NVML_UP, GPUS_EXPECTED, GPUS_SEEN,
    SOURCE_SUCCESS, SOURCE_SECONDS, SOURCE_AGE, SOURCE_ERRORS, *AGENT_COUNTERS.values(),
)  # fmt: skip
"""Every metric that the agent exports."""
