"""Every error number, an init that hangs, GPUs that go and come: what is wrong costs only itself."""

import time

from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import eventually

UUID = "GPU-fa4e0000-0000-4000-8000-{:012x}"
CALLS = (
    "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetClockInfo",
    "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",
    "nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature", "nvmlDeviceGetFieldValues", "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetTotalEnergyConsumption", "nvmlGpmSampleGet", "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetComputeRunningProcesses_v2",
)  # fmt: skip
CODES = (1, 2, 3, 4, 6, 7, 10, 13, 15, 16, 19, 21, 25, 27, 999)


def up(index: int) -> str:
    return f'flopwatch_gpu_up{{gpu_uuid="{UUID.format(index)}"}}'


def test_every_call_failing_with_every_number_costs_the_gpus_that_fail_only(
    fake_nvml: FakeNvml, new_agent
) -> None:
    fake_nvml.write("gpus 16")
    agent = new_agent()
    eventually(lambda: all(agent.has(up(index), 1.0) for index in range(16)))
    assert len(CODES) == 15

    failing = (f"err {name} {index} {code}" for index, code in enumerate(CODES) for name in CALLS)
    fake_nvml.write("gpus 16", *failing)
    power = [f'hw_power_watts{{gpu_uuid="{UUID.format(index)}"}}' for index in range(16)]
    eventually(lambda: not any(name in agent.metrics() for name in power[:15]))
    time.sleep(1.0)
    found = agent.metrics()
    assert found[up(15)] == 1.0
    assert found[power[15]] == 655.0
    assert found['flopwatch_source_success{source="host"}'] == 1.0
    assert len(agent.output().splitlines()) < 80, "no flood of messages"

    fake_nvml.write("gpus 16")
    eventually(lambda: all(agent.has(up(index), 1.0) for index in range(16)))
    assert agent.stop() == 0


def test_an_init_that_never_returns_keeps_nothing_else_from_working(fake_nvml: FakeNvml, new_agent) -> None:
    fake_nvml.write("gpus 1", "hang nvmlInitWithFlags 1")
    agent = new_agent()

    eventually(lambda: agent.has('flopwatch_source_success{source="host"}', 1.0))
    eventually(lambda: agent.has("flopwatch_nvml_up", 0.0))
    fake_nvml.write("gpus 1")
    eventually(lambda: agent.has(up(0), 1.0))


def test_a_gpu_that_is_gone_from_the_list_is_told_and_others_keep_their_names_when_numbers_shift(
    fake_nvml: FakeNvml, new_agent
) -> None:
    fake_nvml.write("gpus 3", "lost 0 2")
    agent = new_agent()

    eventually(lambda: agent.has(up(2), 1.0))
    found = agent.metrics()
    assert found["flopwatch_gpus_seen"] == 2.0
    assert found[up(1)] == 1.0
    assert up(0) not in found
    assert found[f'hw_power_watts{{gpu_uuid="{UUID.format(1)}"}}'] == 641.0


def test_unknown_errors_of_every_gpu_open_nvml_anew(fake_nvml: FakeNvml, new_agent) -> None:
    fake_nvml.write("gpus 1")
    agent = new_agent()
    eventually(lambda: agent.has(up(0), 1.0))

    fake_nvml.write("gpus 1", *(f"err {name} any 999" for name in CALLS))
    eventually(lambda: agent.has(up(0), 0.0))
    time.sleep(0.3)
    fake_nvml.write("gpus 1", "event 0 0x4000 0", *(f"err {name} any 999" for name in CALLS))
    time.sleep(0.5)
    fake_nvml.write("gpus 1")
    eventually(lambda: agent.has(up(0), 1.0))

    assert agent.stop() == 0
    assert fake_nvml.calls()["nvmlInitWithFlags"] >= 2
