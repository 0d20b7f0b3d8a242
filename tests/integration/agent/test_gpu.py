"""The real pynvml over the fake library, in a real agent process, read at /metrics."""

import re
import time

import pytest
from tests.fixtures_nvml import FakeNvml, FakeNvmlLibraries
from tests.integration.agent.agent_process import FakeCollector, eventually

UUID = "GPU-fa4e0000-0000-4000-8000-{:012x}"


def gpu(name: str, index: int) -> str:
    return f'{name}{{gpu_uuid="{UUID.format(index)}"}}'


def test_every_signal_of_a_gpu_is_exported_in_base_units(fake_nvml: FakeNvml, new_agent) -> None:
    fake_nvml.write(
        "gpus 1", "util 0 75 30", "mem 0 81559 620 60000", "power 0 500 480", "temp 0 61 72", "clocks 0 1755 2619",
        "reasons 0 0x20", "ecc 0 3 1", "remap 0 2 1 0 0", "gpm 0 80 30 50 40", "nvlink 0 18 1024 2048",
        "pcie 0 1048576 2097152",
    )  # fmt: skip

    agent = new_agent()
    eventually(lambda: agent.has(gpu("flopwatch_gpu_tensor_active_ratio", 0)))
    found = agent.metrics()

    assert found[gpu("hw_gpu_utilization_ratio", 0)] == 0.75
    assert found[gpu("flopwatch_gpu_memory_busy_ratio", 0)] == 0.3
    assert found[gpu("hw_gpu_memory_usage_bytes", 0)] == 60000 * 2**20
    assert found[gpu("hw_gpu_memory_limit_bytes", 0)] == 81559 * 2**20
    assert found[gpu("hw_power_watts", 0)] == 500.0
    assert found[gpu("hw_temperature_celsius", 0)] == 61.0
    assert found[gpu("flopwatch_gpu_memory_temperature_celsius", 0)] == 72.0
    assert found[gpu("flopwatch_gpu_sm_clock_hertz", 0)] == 1.755e9
    assert found[gpu("flopwatch_gpu_memory_clock_hertz", 0)] == 2.619e9
    assert found[gpu("flopwatch_gpu_clock_event_reasons", 0)] == 0x20
    assert found[gpu("flopwatch_gpu_ecc_corrected_errors_total", 0)] == 3.0
    assert found[gpu("flopwatch_gpu_ecc_uncorrected_errors_total", 0)] == 1.0
    assert found[gpu("flopwatch_gpu_remapped_rows", 0)] == 3.0
    assert found[gpu("flopwatch_gpu_sm_active_ratio", 0)] == 0.8
    assert found[gpu("flopwatch_gpu_sm_occupancy_ratio", 0)] == 0.3
    assert found[gpu("flopwatch_gpu_tensor_active_ratio", 0)] == 0.5
    assert found[gpu("flopwatch_gpu_dram_active_ratio", 0)] == 0.4
    assert found[gpu("flopwatch_gpu_up", 0)] == 1.0


def test_counters_grow_as_the_rates_say(fake_nvml: FakeNvml, new_agent, collector: FakeCollector) -> None:
    fake_nvml.write("gpus 1", "power 0 500 480", "nvlink 0 18 1024 2048", "pcie 0 1048576 2097152")

    new_agent(collector_url=collector.url)
    samples = eventually(lambda: s if len(s := collector.all("gpu_samples")) >= 5 else None)
    first, last = samples[1], samples[4]
    elapsed = last["time_seconds"] - first["time_seconds"]

    assert last["energy_joules"] - first["energy_joules"] == pytest.approx(500 * elapsed, rel=0.05)
    sent = last["nvlink_transmit_bytes"] - first["nvlink_transmit_bytes"]
    assert sent == pytest.approx(1024 * 1024 * elapsed, rel=0.05)
    arrived = last["pcie_receive_bytes"] - first["pcie_receive_bytes"]
    assert arrived == pytest.approx(2 * 2**30 * elapsed, rel=0.05)


def test_the_pcie_link_is_told_as_it_is_at_work(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector
) -> None:
    fake_nvml.write("gpus 2", "util 0 75 30", "util 1 0 0", "pcie 0 1 1 3 8", "pcie 1 1 1 1 16")
    new_agent(collector_url=collector.url)

    def at_work() -> dict[str, dict[str, object]]:
        found = {item["uuid"]: item for item in collector.all("gpus")}
        return found if found.get(UUID.format(0), {}).get("pcie_generation") else {}

    busy, idle = (eventually(at_work)[UUID.format(index)] for index in (0, 1))

    assert (busy["pcie_generation"], busy["pcie_generation_maximum"]) == (3, 5)
    assert (busy["pcie_width"], busy["pcie_width_maximum"]) == (8, 16)
    assert (idle.get("pcie_generation"), idle["pcie_width"]) == (None, 16)


def test_a_lost_gpu_costs_only_itself_and_comes_back(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector
) -> None:
    fake_nvml.write("gpus 3")
    agent = new_agent(collector_url=collector.url)
    eventually(lambda: agent.has(gpu("flopwatch_gpu_up", 2), 1.0))

    fake_nvml.write("gpus 3", "lost 1 1")
    eventually(lambda: agent.has(gpu("flopwatch_gpu_up", 1), 0.0))
    eventually(lambda: gpu("hw_power_watts", 1) not in agent.metrics())
    found = agent.metrics()
    assert found[gpu("flopwatch_gpu_up", 0)] == 1.0
    assert found[gpu("flopwatch_gpu_sample_age_seconds", 2)] < 3.0
    inventory = eventually(
        lambda: [b["gpus"] for b in collector.batches if b.get("gpus") and b["gpus"][1]["state"] == "lost"]
    )
    assert "fell off the bus" in inventory[0][1]["reason"]
    assert [e["value"] for e in collector.all("events") if e["gpu"] == UUID.format(1)][:1] == ["faulty"]

    fake_nvml.write("gpus 3")
    eventually(lambda: agent.has(gpu("flopwatch_gpu_up", 1), 1.0), 30)


def test_a_call_that_never_returns_costs_one_gpu_and_not_the_shutdown(fake_nvml: FakeNvml, new_agent) -> None:
    agent = new_agent()
    eventually(lambda: agent.has(gpu("flopwatch_gpu_up", 7), 1.0))

    fake_nvml.write("gpus 8", "hang nvmlDeviceGetTemperatureV 1")
    eventually(lambda: agent.has(gpu("flopwatch_gpu_up", 0), 0.0))
    found = agent.metrics()
    assert gpu("hw_power_watts", 0) not in found
    assert found['flopwatch_source_success{source="host"}'] == 1.0

    assert agent.stop(60.0) == 0


def test_a_call_that_fails_costs_only_its_value(fake_nvml: FakeNvml, new_agent) -> None:
    failing = {0: 4, 1: 999}
    name = "nvmlDeviceGetUtilizationRates"
    fake_nvml.write("gpus 3", *(f"err {name} {index} {code}" for index, code in failing.items()))

    agent = new_agent()
    eventually(lambda: agent.has(gpu("hw_gpu_utilization_ratio", 2)))
    time.sleep(1.0)
    found = agent.metrics()

    for index in failing:
        assert gpu("hw_gpu_utilization_ratio", index) not in found
        assert found[gpu("hw_power_watts", index)] == 640.0 + index
    assert len(re.findall(name, agent.output())) <= len(failing)


def test_a_field_that_failed_is_absent_and_never_its_neighbours_value(fake_nvml: FakeNvml, new_agent) -> None:
    fields = {
        82: "flopwatch_gpu_memory_temperature_celsius", 138: "flopwatch_gpu_nvlink_transmit_bytes_total",
        230: "flopwatch_gpu_recovery_action", 3: "flopwatch_gpu_ecc_corrected_errors_total",
    }  # fmt: skip
    fake_nvml.write("gpus 5", *(f"fielderr {number} {index} 3" for index, number in enumerate(fields)))

    agent = new_agent()
    eventually(lambda: all(agent.has(gpu("hw_power_watts", index)) for index in range(5)))
    found = agent.metrics()

    for index, series in enumerate(fields.values()):
        assert gpu(series, index) not in found
        assert gpu(series, 4) in found


def test_power_and_energy_come_by_the_older_calls_when_their_fields_fail(
    fake_nvml: FakeNvml, new_agent
) -> None:
    fake_nvml.write(
        "gpus 1", "power 0 500 480", "fielderr 186 any 3", "fielderr 185 any 3", "fielderr 83 any 3"
    )

    agent = new_agent()
    eventually(lambda: agent.has(gpu("hw_power_watts", 0)))
    found = agent.metrics()

    assert found[gpu("hw_power_watts", 0)] in (480.0, 500.0)
    assert found[gpu("hw_energy_joules_total", 0)] >= 1e6


def test_a_driver_of_the_r470_era_is_read_by_the_older_calls(
    fake_nvml: FakeNvml, fake_nvml_library: FakeNvmlLibraries, new_agent
) -> None:
    fake_nvml.write("gpus 1", "driver 470.82.01", "arch 0 7", "reasons 0 0x4", "proc 0 1 100")

    agent = new_agent({"LD_LIBRARY_PATH": str(fake_nvml_library.old_driver)})
    eventually(lambda: agent.has(gpu("hw_power_watts", 0)))
    found = agent.metrics()

    assert found[gpu("hw_temperature_celsius", 0)] == 55.0
    assert found[gpu("flopwatch_gpu_clock_event_reasons", 0)] == 4.0
    assert found[gpu("hw_gpu_memory_limit_bytes", 0)] == 81559 * 2**20
    assert found[gpu("flopwatch_gpu_processes", 0)] == 1.0
    assert gpu("flopwatch_gpu_tensor_active_ratio", 0) not in found


def test_without_nvml_the_agent_says_so_once_and_serves_the_rest(
    new_agent, tmp_path, collector: FakeCollector
) -> None:
    agent = new_agent({"LD_LIBRARY_PATH": str(tmp_path)}, collector_url=collector.url)

    eventually(lambda: agent.has("flopwatch_nvml_up", 0.0))
    facts = eventually(lambda: [b["node_facts"] for b in collector.batches if "node_facts" in b])
    time.sleep(1.0)

    assert facts[-1]["nvml"] == "absent"
    assert agent.metrics()["flopwatch_node_memory_total_bytes"] > 0
    assert agent.output().count("libnvidia-ml.so.1 is not installed") == 1
    assert collector.all("node_samples")


def test_nvml_that_hangs_at_the_start_does_not_keep_the_agent_from_working(
    fake_nvml: FakeNvml, new_agent
) -> None:
    fake_nvml.write("gpus 1", "hang nvmlInitWithFlags 1")

    agent = new_agent()
    eventually(lambda: agent.has("flopwatch_nvml_up", 0.0))
    assert agent.metrics()["flopwatch_node_memory_total_bytes"] > 0

    fake_nvml.write("gpus 1")
    eventually(lambda: agent.has(gpu("flopwatch_gpu_up", 0), 1.0))


def test_one_init_few_calls_and_never_the_one_that_blocks(fake_nvml: FakeNvml, new_agent) -> None:
    fake_nvml.write("gpus 2")
    agent = new_agent()
    eventually(lambda: agent.has(gpu("flopwatch_gpu_tensor_active_ratio", 1)))
    time.sleep(1.0)
    assert agent.stop() == 0

    calls = fake_nvml.calls()
    assert calls["nvmlInitWithFlags"] == 1
    assert calls["nvmlShutdown"] == 1
    assert "nvmlDeviceGetPcieThroughput" not in calls
    cycles = calls["nvmlDeviceGetFieldValues"]
    fast = sum(count for name, count in calls.items() if cycles - 2 <= count and "Processes" not in name)
    assert fast <= 9 * cycles


def test_mig_instances_are_devices_of_their_own(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector
) -> None:
    fake_nvml.write("gpus 1", "mig 0 2")

    new_agent(collector_url=collector.url)
    inventory = eventually(lambda: [b["gpus"] for b in collector.batches if len(b.get("gpus", ())) == 3])[-1]

    parent, *instances = inventory
    assert {item["mig_parent_uuid"] for item in instances} == {parent["uuid"]}
    assert all(item["mig_profile"].startswith("1g.") and item["slot"] == parent["slot"] for item in instances)
    assert len({item["uuid"] for item in inventory}) == 3


def test_device_files_are_released_and_opened_again_on_request(fake_nvml: FakeNvml, new_agent) -> None:
    import signal

    fake_nvml.write("gpus 1")
    agent = new_agent()
    eventually(lambda: agent.has("flopwatch_nvml_up", 1.0))

    agent.popen.send_signal(signal.SIGUSR1)
    eventually(lambda: agent.has("flopwatch_nvml_up", 0.0))
    agent.popen.send_signal(signal.SIGUSR2)
    eventually(lambda: agent.has("flopwatch_nvml_up", 1.0))
