"""What depends on architecture, driver branch and kind of module, read at /metrics of a real agent."""

import os
import shutil
import subprocess
import urllib.request

import pytest
from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import Agent, FakeCollector, eventually

UUID = "GPU-fa4e0000-0000-4000-8000-{:012x}"


def of(agent: Agent, name: str, index: int, **labels: str) -> float | None:
    rest = "".join(f',{key}="{value}"' for key, value in labels.items())
    return agent.metrics().get(f'{name}{{gpu_uuid="{UUID.format(index)}"{rest}}}')


def test_blackwell_counts_nvlink_bytes_and_errors_link_by_link(fake_nvml: FakeNvml, new_agent) -> None:
    fake_nvml.write("gpus 2", "arch 0 10", "nvlink 0 4 1048576 2097152", "nvlink 1 18 1048576 2097152")
    agent = new_agent()
    name = "flopwatch_gpu_nvlink_transmit_bytes_total"
    eventually(lambda: (of(agent, name, 0) or 0) > 0 and (of(agent, name, 1) or 0) > 0)

    found = agent.metrics()
    sent, received = (
        found[f'flopwatch_gpu_nvlink_{way}_bytes_total{{gpu_uuid="{UUID.format(0)}"}}']
        for way in ("transmit", "receive")
    )
    assert received == pytest.approx(2 * sent, rel=0.1)
    assert of(agent, "flopwatch_gpu_nvlink_errors_total", 0, kind="symbol") == 1 + 2 + 3 + 4
    assert of(agent, "flopwatch_gpu_nvlink_errors_total", 1, kind="symbol") is None
    assert of(agent, "flopwatch_gpu_nvlink_errors_total", 1, kind="crc") == 0


NVLINK = "flopwatch_gpu_nvlink_transmit_bytes_total"
AVAILABLE = f'flopwatch_gpu_metric_available{{metric="{NVLINK}"}}'


def gaps(collector: FakeCollector) -> str:
    """What the node said last that it cannot tell."""
    facts = [batch["node_facts"] for batch in collector.batches if "node_facts" in batch]
    return "; ".join(facts[-1].get("permission_gaps", ())) if facts else ""


@pytest.mark.parametrize("architecture", [9, 10])
def test_nvlink_counters_that_stand_at_zero_while_gpm_tells_traffic_are_unknown_and_the_node_says_so(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, architecture: int
) -> None:
    scene = ["gpus 2", f"arch * {architecture}", "nvlink * 18 1048576 1048576"]
    fake_nvml.write(*scene, "nvlink_dead 1")
    agent = new_agent(collector_url=collector.url)

    eventually(lambda: "while GPM tells traffic" in gaps(collector))
    eventually(lambda: of(agent, NVLINK, 0) and of(agent, NVLINK, 1) is None)
    assert gaps(collector).count("GPU 0000:") == gaps(collector).count("GPU 0000:2b:00.0") == 1
    assert agent.metrics()[AVAILABLE] == 0.0

    fake_nvml.write(*scene)
    eventually(lambda: of(agent, NVLINK, 1) and agent.metrics()[AVAILABLE] == 1.0)
    eventually(lambda: "NVLink" not in gaps(collector))


def test_a_gpu_whose_links_count_nothing_while_the_others_of_its_job_are_busy_is_unknown(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes
) -> None:
    one, other = (processes("import time; time.sleep(600)") for _ in range(2))
    # Ampere has no GPM that could tell.
    links = ["arch * 8", "nvlink * 18 1048576 1048576", "nvlink_dead 2", "nvlink_dead 4"]
    held = [f"proc {index} {one.pid} 100" for index in range(3)] + [f"proc 3 {other.pid} 100"]
    fake_nvml.write("gpus 5", *links, *held)

    agent = new_agent(collector_url=collector.url)

    eventually(lambda: "its job's other GPUs are busy" in gaps(collector))
    eventually(lambda: of(agent, NVLINK, 2) is None)
    assert gaps(collector).count("GPU 0000:") == 1
    assert (of(agent, NVLINK, 0) or 0) > 0
    assert of(agent, NVLINK, 4) == 0.0, "nobody uses it"


def test_a_superchips_energy_is_the_modules_and_never_the_gpus(fake_nvml: FakeNvml, new_agent) -> None:
    fake_nvml.write("gpus 2", "module 0 900", "power * 500 480", "remap 0 0 1 1 0", "pcie 0 1 1 4 8 77")
    agent = new_agent()
    eventually(lambda: of(agent, "flopwatch_gpu_module_energy_joules_total", 0))

    assert of(agent, "flopwatch_gpu_module_power_watts", 0) == 900.0
    assert of(agent, "flopwatch_gpu_average_power_watts", 0, scope="module") == 900.0
    assert of(agent, "flopwatch_gpu_average_power_watts", 0, scope="gpu") == 480.0
    assert of(agent, "hw_power_watts", 0) == 500.0
    assert of(agent, "hw_energy_joules_total", 0) is None
    assert of(agent, "hw_energy_joules_total", 1) is not None
    assert of(agent, "flopwatch_gpu_module_power_watts", 1) is None
    assert of(agent, "flopwatch_gpu_row_remap_pending", 0) == 1.0
    assert of(agent, "flopwatch_gpu_recovery_action", 0) == 1.0
    assert of(agent, "flopwatch_gpu_pcie_errors_total", 0, kind="replay") == 77.0
    assert of(agent, "flopwatch_gpu_pcie_generation", 0, limit="current") == 4.0
    assert of(agent, "flopwatch_gpu_pcie_lanes", 0, limit="current") == 8.0
    assert of(agent, "flopwatch_gpu_pcie_lanes", 0, limit="maximum") == 16.0


@pytest.mark.parametrize("driver", ["575.51.03", "580.126.09", "999.1"])
def test_slowdown_times_have_the_numbers_of_the_drivers_branch(
    fake_nvml: FakeNvml, new_agent, driver: str
) -> None:
    fake_nvml.write("gpus 1", f"driver {driver}", "reasons 0 0x40")
    agent = new_agent(interval_seconds=0.2)
    eventually(lambda: (of(agent, "flopwatch_gpu_throttle_seconds_total", 0) or 0) > 0)

    name = "flopwatch_gpu_clock_event_seconds_total"
    assert of(agent, name, 0, reason="sw_thermal") == 0.0
    assert of(agent, name, 0, reason="hw_power_brake") == 0.0
    assert (of(agent, name, 0, reason="hw_thermal") or 0) >= 0.0
    eventually(lambda: agent.has("flopwatch_nvml_branch_unknown", float(driver == "999.1")))


def test_from_595_on_cycles_are_counters_of_the_driver(fake_nvml: FakeNvml, new_agent) -> None:
    fake_nvml.write("gpus 1", "driver 595.10", "gpm 0 80 30 50 40")
    agent = new_agent(interval_seconds=0.2)
    name = "flopwatch_gpu_sm_cycles_total"
    eventually(lambda: of(agent, name, 0, state="elapsed"))

    found = agent.metrics()
    elapsed, active, tensor = (
        found[f'{name}{{gpu_uuid="{UUID.format(0)}",state="{state}"}}']
        for state in ("elapsed", "active", "tensor")
    )
    assert active == pytest.approx(0.8 * elapsed, rel=1e-6)
    assert tensor == pytest.approx(0.5 * elapsed, rel=1e-6)


def test_pcie_bytes_of_the_driver_are_believed_only_when_they_do_not_wrap(
    fake_nvml: FakeNvml, new_agent
) -> None:
    rate = 16 << 20  # KiB a second: past 32 bits in a quarter of a second
    fake_nvml.write("gpus 2", "arch * 7", f"pcie * {rate} {rate}", "pciewide 0 1")
    agent = new_agent()
    sent = {"network_io_direction": "transmit"}

    assert eventually(lambda: of(agent, "hw_gpu_io_bytes_total", 0, **sent)) > 2**32
    assert of(agent, "hw_gpu_io_bytes_total", 1, **sent) is None


def test_mig_instances_have_activity_of_their_own_and_no_utilisation(fake_nvml: FakeNvml, new_agent) -> None:
    fake_nvml.write("gpus 1", "gpm 0 80 30 50 40")
    agent = new_agent()
    eventually(lambda: of(agent, "flopwatch_gpu_tensor_active_ratio", 0))

    fake_nvml.write("gpus 1", "gpm 0 80 30 50 40", "mig 0 2", "event 0 0x100 0")
    instance = 'flopwatch_gpu_tensor_active_ratio{gpu_uuid="MIG-fa4e0000-0001-5000-8000-000000000001"}'
    eventually(lambda: agent.has(instance, 0.5))
    found = agent.metrics()
    assert 'hw_gpu_utilization_ratio{gpu_uuid="MIG-fa4e0000-0001-5000-8000-000000000001"}' not in found
    assert 'hw_power_watts{gpu_uuid="MIG-fa4e0000-0001-5000-8000-000000000001"}' not in found

    fake_nvml.write("gpus 1", "gpm 0 80 30 50 40", "event 0 0x100 0")
    eventually(lambda: instance not in agent.metrics())
    eventually(lambda: agent.has(f'flopwatch_gpu_up{{gpu_uuid="{UUID.format(0)}"}}', 1.0))


@pytest.mark.skipif(
    shutil.which("promtool") is None and not os.environ.get("FLOPWATCH_TEST_EVERYTHING"),
    reason="promtool (Debian: prometheus) is not installed",
)
def test_promtools_linter_finds_nothing(fake_nvml: FakeNvml, new_agent) -> None:
    fake_nvml.write("gpus 3", "module 0 900", "arch 1 10", "mig 2 2")
    agent = new_agent()
    eventually(lambda: of(agent, "flopwatch_gpu_tensor_active_ratio", 0))
    fake_nvml.write("gpus 3", "module 0 900", "arch 1 10", "mig 2 2", "xid 0 79")
    eventually(lambda: of(agent, "flopwatch_gpu_xid_errors_total", 0, xid="79"))

    page = urllib.request.urlopen(f"http://127.0.0.1:{agent.port}/metrics", timeout=5).read()
    checked = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, check=False)

    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")
