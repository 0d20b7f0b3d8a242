"""The exposition of a snapshot, against one text, and the table of metrics against its own rules."""

import re
from dataclasses import replace

from prometheus_client.exposition import generate_latest
from prometheus_client.registry import CollectorRegistry

from flopwatch import metrics
from flopwatch.wire import GpuDevice, GpuSample, JobSample, JobSighting, NodeSample, PortSample, StepRecord
from flopwatch_agent.sinks.exposition import MAX_SERIES, SnapshotCollector
from flopwatch_agent.source import Inventory, Snapshot, SourceHealth

SNAPSHOT = Snapshot(
    now=1000.0,
    interval_seconds=10.0,
    inventory=Inventory(
        nvml="ok",
        driver_version="580.1",
        gpus=(
            GpuDevice(uuid="GPU-a", slot="0000:1b:00.0", name="NVIDIA H100 80GB HBM3", index=0, memory_total_bytes=100),
            GpuDevice(uuid="GPU-b", slot="0000:2b:00.0", name="NVIDIA H100 80GB HBM3", state="lost"),
        ),
    ),
    gpu_samples=(
        GpuSample(time_seconds=998.0, gpu="GPU-a", kernel_active_ratio=0.5, energy_joules=7.0, pcie_transmit_bytes=9),
        GpuSample(time_seconds=969.0, gpu="GPU-b", kernel_active_ratio=0.9),
    ),
    port_samples=(PortSample(time_seconds=998.0, port="mlx5_0/1", transmit_bytes=4, link_rate_bits_per_second=8e9),),
    node_sample=NodeSample(time_seconds=998.0, cpu_busy_ratio=0.25, io_pressure_ratio=0.5),
    job_samples=(
        JobSample(time_seconds=998.0, job="slurm:7", main_thread_ratio=0.75, io_pressure_ratio=0.1, disk_read_bytes=6),
        JobSample(time_seconds=998.0, job="gone", main_thread_ratio=0.5),
    ),
    jobs=(JobSighting(ref="slurm:7", scheduler="slurm", scheduler_job_id="7", user="ann", gpus=("GPU-a",)),),
    last_steps=(
        StepRecord(
            job="slurm:7", source="log", source_id="f", step=40, end_time_seconds=990.0, seconds=5, steps_covered=10
        ),
        StepRecord(job="gone", source="log", source_id="f", step=1, end_time_seconds=1.0),
    ),
    health=(SourceHealth(name="host", success=True, read_seconds=998.0, duration_seconds=0.5, errors=3),),
    counters=(("spool_dropped", 2), ("gpus_expected", 2)),
)  # fmt: skip

EXPECTED = """\
flopwatch_agent_info{driver_version="580.1",version="1.0"} 1.0
flopwatch_gpu_info{gpu_uuid="GPU-a",index="0",mig_profile="",name="NVIDIA H100 80GB HBM3",slot="0000:1b:00.0"} 1.0
flopwatch_gpu_info{gpu_uuid="GPU-b",index="",mig_profile="",name="NVIDIA H100 80GB HBM3",slot="0000:2b:00.0"} 1.0
flopwatch_gpu_sample_age_seconds{gpu_uuid="GPU-a"} 2.0
flopwatch_gpu_up{gpu_uuid="GPU-a"} 1.0
flopwatch_gpu_up{gpu_uuid="GPU-b"} 0.0
flopwatch_gpus_expected 2.0
flopwatch_gpus_seen 1.0
flopwatch_job_gpu_info{account="",gpu_uuid="GPU-a",job_id="7",scheduler="slurm",user="ann"} 1.0
flopwatch_job_disk_io_bytes_total{direction="read",job_id="7"} 6.0
flopwatch_job_main_thread_ratio{job_id="7"} 0.75
flopwatch_job_pressure_ratio{job_id="7",resource="io"} 0.1
flopwatch_job_step_age_seconds{job_id="7"} 10.0
flopwatch_job_step_seconds{job_id="7"} 0.5
flopwatch_job_step{job_id="7"} 40.0
flopwatch_node_cpu_busy_ratio 0.25
flopwatch_node_io_pressure_ratio 0.5
flopwatch_nvml_up 1.0
flopwatch_port_info{port="mlx5_0/1",role="unknown",scope="port"} 1.0
flopwatch_series_dropped_total 0.0
flopwatch_source_age_seconds{source="host"} 2.0
flopwatch_source_duration_seconds{source="host"} 0.5
flopwatch_source_errors_total{source="host"} 3.0
flopwatch_source_success{source="host"} 1.0
flopwatch_spool_dropped_batches_total 2.0
hw_energy_joules_total{gpu_uuid="GPU-a"} 7.0
hw_gpu_io_bytes_total{gpu_uuid="GPU-a",network_io_direction="transmit"} 9.0
hw_gpu_memory_limit_bytes{gpu_uuid="GPU-a"} 100.0
hw_gpu_utilization_ratio{gpu_uuid="GPU-a"} 0.5
hw_network_bandwidth_limit_bytes_per_second{port="mlx5_0/1"} 1e+09
hw_network_io_bytes_total{network_io_direction="transmit",port="mlx5_0/1"} 4.0
"""


def exposed(snapshot: Snapshot | None) -> str:
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: snapshot, "1.0"))
    lines = generate_latest(registry).decode().splitlines()
    return "\n".join(sorted(line for line in lines if not line.startswith("#"))) + "\n"


TOLD = ("hw_gpu_utilization_ratio", "hw_energy_joules_total")
UNTOLD = (
    "flopwatch_gpu_memory_busy_ratio", "flopwatch_gpu_sm_active_ratio", "flopwatch_gpu_sm_occupancy_ratio",
    "flopwatch_gpu_tensor_active_ratio", "flopwatch_gpu_dram_active_ratio", "hw_gpu_memory_usage_bytes",
    "hw_power_watts", "hw_temperature_celsius", "flopwatch_gpu_memory_temperature_celsius",
    "flopwatch_gpu_sm_clock_hertz", "flopwatch_gpu_memory_clock_hertz", "flopwatch_gpu_clock_event_reasons",
    "flopwatch_gpu_throttle_seconds_total", "flopwatch_gpu_nvlink_transmit_bytes_total",
    "flopwatch_gpu_nvlink_receive_bytes_total", "flopwatch_gpu_ecc_corrected_errors_total",
    "flopwatch_gpu_ecc_uncorrected_errors_total", "flopwatch_gpu_remapped_rows", "flopwatch_gpu_recovery_action",
    "flopwatch_gpu_processes",
)  # fmt: skip


def test_a_snapshot_becomes_exactly_its_series_and_old_samples_have_none() -> None:
    available = [f'flopwatch_gpu_metric_available{{metric="{name}"}} 1.0' for name in TOLD]
    available += [f'flopwatch_gpu_metric_available{{metric="{name}"}} 0.0' for name in UNTOLD]
    assert exposed(SNAPSHOT) == "\n".join(sorted((*EXPECTED.splitlines(), *available))) + "\n"


def test_a_sample_from_a_time_that_has_not_come_is_none() -> None:
    later = GpuSample(time_seconds=1011.0, gpu="GPU-a", kernel_active_ratio=0.5)
    ahead = replace(SNAPSHOT, gpu_samples=(later,))

    assert 'flopwatch_gpu_up{gpu_uuid="GPU-a"} 0.0' in exposed(ahead)
    assert "hw_gpu_utilization_ratio{" not in exposed(ahead)


def test_before_the_first_snapshot_nothing_is_exposed() -> None:
    assert exposed(None) == "\n"


def test_series_beyond_the_limit_are_left_out_and_counted() -> None:
    ports = tuple(
        PortSample(time_seconds=1.0, port=f"p{n}", transmit_bytes=1) for n in range(MAX_SERIES + 10)
    )
    snapshot = Snapshot(now=1.0, interval_seconds=10.0, port_samples=ports)
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: snapshot, "1"))
    generate_latest(registry)

    text = generate_latest(registry).decode()

    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(lines) == MAX_SERIES
    dropped = next(line for line in lines if line.startswith("flopwatch_series_dropped_total"))
    assert float(dropped.split()[1]) > 0


def test_names_follow_the_rules_of_the_table() -> None:
    names = [metric.name for metric in metrics.ALL]

    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"(hw|flopwatch)_[a-z0-9_]+", name) for name in names)
    assert all((metric.kind == "counter") == metric.name.endswith("_total") for metric in metrics.ALL)
    assert all(metric.help.endswith(".") for metric in metrics.ALL)
    assert not [name for name in names if re.search(r"percent|milli|_ms(_|$)|_mb(_|$)", name)]
    assert all(len(metric.labels) <= 6 for metric in metrics.ALL)


def test_every_field_of_the_table_is_one_of_a_sample() -> None:
    assert set(metrics.GPU_SAMPLE) <= set(GpuSample.__slots__)
