"""Slow drivers, a clock that is moved, calls that all fail, dense MIG, PCI addresses that change, its own memory."""

import os
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import Agent, FakeCollector, eventually

UUID = "GPU-fa4e0000-0000-4000-8000-{:012x}"
CLOCK = Path(__file__).parents[2] / "fixtures" / "moved_clock.c"
DAY = 86_400
TICKS = os.sysconf("SC_CLK_TCK")
EVERY_CALL = (
    "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetClockInfo",
    "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",
    "nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature", "nvmlDeviceGetFieldValues", "nvmlDeviceGetPowerUsage",
    "nvmlDeviceGetTotalEnergyConsumption", "nvmlGpmSampleGet", "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlEventSetWait_v2",
)  # fmt: skip


def of(name: str, index: int) -> str:
    return f'{name}{{gpu_uuid="{UUID.format(index)}"}}'


def cpu_seconds(agent: Agent) -> float:
    assert agent.popen is not None
    fields = Path(f"/proc/{agent.popen.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def most_within(times: list[float], seconds: float) -> int:
    """The most samples in any span of so many seconds."""
    return max(sum(start <= other < start + seconds for other in times) for start in times)


def test_cycles_that_a_slow_call_missed_are_left_out_and_not_made_up_for(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector
) -> None:
    fake_nvml.write("gpus 1", "sleep nvmlDeviceGetUtilizationRates 700000")
    new_agent(collector_url=collector.url)
    eventually(lambda: len(collector.all("gpu_samples")) >= 4)
    fake_nvml.write("gpus 1")
    after = len(collector.all("gpu_samples"))
    samples = eventually(lambda: found if len(found := collector.all("gpu_samples")) >= after + 8 else None)

    # Every quarter of a second is four a second; twelve of the missed ones would have come at once.
    assert most_within([sample["time_seconds"] for sample in samples], 1.0) <= 8


def test_a_gpu_whose_driver_takes_over_a_second_is_left_alone_and_others_are_not(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector
) -> None:
    fake_nvml.write("gpus 1", "sleep nvmlDeviceGetUtilizationRates 1200000")
    agent = new_agent(collector_url=collector.url)

    facts = eventually(
        lambda: [
            b["node_facts"]
            for b in collector.batches
            if any("takes over a second" in gap for gap in b.get("node_facts", {}).get("permission_gaps", ()))
        ]
    )
    found = agent.metrics()

    assert any("so it is read every" in gap for gap in facts[0]["permission_gaps"])
    assert found[of("flopwatch_gpu_up", 0)] == 1.0, "its sample stands for the longer time"
    assert found['flopwatch_source_success{source="host"}'] == 1.0
    times = [batch["sampled_at_seconds"] for batch in collector.batches]
    assert agent.stop(60.0) == 0
    # A rest of ten times as long follows each call; without one there would be a call every 1.2 s.
    lived = times[-1] - times[0] + 10.0
    assert fake_nvml.calls()["nvmlDeviceGetUtilizationRates"] <= 2 + lived / 10.0


def test_seven_instances_on_each_of_eight_gpus_come_and_go(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector
) -> None:
    dense = [f"mig {index} 7" for index in range(8)]
    fake_nvml.write("gpus 8", *dense)
    agent = new_agent(collector_url=collector.url)
    told = eventually(lambda: [b["gpus"] for b in collector.batches if len(b.get("gpus", ())) == 64])[-1]

    parents = Counter(item.get("mig_parent_uuid") for item in told)
    assert parents == {None: 8, **{UUID.format(index): 7 for index in range(8)}}
    assert len({item["uuid"] for item in told}) == 64
    sampled = eventually(
        lambda: s if len(s := {x["gpu"] for x in collector.all("gpu_samples")}) == 64 else None
    )
    assert sampled == {item["uuid"] for item in told}
    found = agent.metrics()
    assert found["flopwatch_series_dropped_total"] == 0.0
    assert found["flopwatch_agent_resident_bytes"] < 64 << 20, "what a container may be limited to"

    fake_nvml.write("gpus 8", "event 0 0x100 0")
    eventually(lambda: not any("MIG-" in name for name in agent.metrics()))
    assert all(agent.metrics()[of("flopwatch_gpu_up", index)] == 1.0 for index in range(8))
    assert agent.stop(60.0) == 0


def test_two_gpus_that_change_places_on_the_bus_keep_their_names(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector
) -> None:
    fake_nvml.write("gpus 2", "power 0 111 111", "power 1 222 222")
    agent = new_agent(collector_url=collector.url)
    eventually(
        lambda: agent.has(of("hw_power_watts", 0), 111.0) and agent.has(of("hw_power_watts", 1), 222.0)
    )
    before = {
        item["uuid"]: item["slot"]
        for item in eventually(lambda: [b["gpus"] for b in collector.batches if b.get("gpus")])[-1]
    }

    swapped = ["bus 0 0000:2b:00.0", "bus 1 0000:1b:00.0"]
    fake_nvml.write("gpus 2", "power 0 111 111", "power 1 222 222", *swapped, "event 0 0x4000 0")
    moved = eventually(
        lambda: [
            found
            for b in collector.batches
            if (found := {item["uuid"]: item["slot"] for item in b.get("gpus", ())}) and found != before
        ]
    )[-1]

    assert moved == {UUID.format(0): before[UUID.format(1)], UUID.format(1): before[UUID.format(0)]}
    eventually(lambda: agent.has(of("hw_power_watts", 0), 111.0))
    eventually(lambda: agent.has(of("hw_power_watts", 1), 222.0))


def test_when_every_call_fails_the_agent_works_no_harder_and_says_little(
    fake_nvml: FakeNvml, new_agent
) -> None:
    fake_nvml.write("gpus 8")
    agent = new_agent()
    eventually(lambda: all(agent.has(of("flopwatch_gpu_up", index), 1.0) for index in range(8)))

    def used(seconds: float) -> float:
        began, before = time.monotonic(), cpu_seconds(agent)
        time.sleep(seconds)
        return (cpu_seconds(agent) - before) / (time.monotonic() - began)

    usual = used(4.0)
    fake_nvml.write("gpus 8", *(f"err {name} any 999" for name in EVERY_CALL))
    eventually(lambda: all(agent.has(of("flopwatch_gpu_up", index), 0.0) for index in range(8)))
    failing = used(4.0)

    assert failing <= usual * 2.0 + 0.25, "a retry that does not sleep takes a whole core"
    assert len(agent.output().splitlines()) < 80


def test_nvml_is_opened_by_the_process_that_uses_it_and_no_child_is_ever_made(
    fake_nvml: FakeNvml, new_agent
) -> None:
    fake_nvml.write("gpus 2", "strict_fork 1")
    agent = new_agent()
    eventually(lambda: agent.has(of("flopwatch_gpu_up", 1), 1.0))
    assert agent.popen is not None

    tasks = Path(f"/proc/{agent.popen.pid}/task")
    assert [(task / "children").read_text() for task in tasks.iterdir()] == [""] * len(list(tasks.iterdir()))
    assert agent.stop(60.0) == 0
    assert fake_nvml.calls()["nvmlInitWithFlags"] == 1


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler, so no process can be given another clock")
    library = tmp_path_factory.mktemp("clock") / "moved_clock.so"
    subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-o", str(library), str(CLOCK), "-ldl"], check=True)
    return library


def test_a_clock_that_leaps_a_day_on_and_two_back_stops_nothing_and_loses_nothing(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, clock: Path, tmp_path: Path
) -> None:
    offset = tmp_path / "offset"

    def move(seconds: int) -> None:
        temporary = tmp_path / "offset.tmp"
        temporary.write_text(str(seconds))
        temporary.replace(offset)

    def sampled_after(offset_seconds: int) -> bool:
        """Whether a GPU and the host were sampled at the moved time."""
        border = time.time() + offset_seconds - 60.0
        return all(
            any(abs(item["time_seconds"] - border) < 600.0 for item in collector.all(name))
            for name in ("gpu_samples", "node_samples")
        )

    move(0)
    fake_nvml.write("gpus 2")
    agent = new_agent({"LD_PRELOAD": str(clock), "MOVED_CLOCK": str(offset)}, collector_url=collector.url)
    eventually(lambda: agent.has(of("flopwatch_gpu_up", 1), 1.0))
    for seconds in (DAY, -DAY):
        move(seconds)
        eventually(lambda: sampled_after(seconds))  # noqa: B023 - called at once
        eventually(lambda: agent.has(of("flopwatch_gpu_up", 1), 1.0))
        eventually(lambda: 0.0 <= agent.metrics().get(of("flopwatch_gpu_sample_age_seconds", 0), -1.0) < 60.0)
        eventually(lambda: agent.has('flopwatch_source_success{source="host"}', 1.0))
    assert agent.stop(60.0) == 0

    numbers = sorted(batch["sequence"] for batch in collector.batches)
    assert numbers == list(range(len(numbers))), "every batch came, each once"
    energy = [x["energy_joules"] for x in collector.all("gpu_samples") if x["gpu"] == UUID.format(0)]
    assert energy == sorted(energy)


def test_an_agent_larger_than_it_may_be_goes_on_as_a_new_process(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector
) -> None:
    fake_nvml.write("gpus 1")
    agent = new_agent(collector_url=collector.url, max_memory_bytes=16 << 20)

    eventually(lambda: agent.output().count("metrics at") >= 2, 60.0)
    eventually(lambda: collector.batches)
    assert "more than agent.max_memory_bytes allows (16 MiB)" in agent.output()
    assert len({batch["spool"] for batch in collector.batches}) == 1
    eventually(lambda: agent.metrics().get("flopwatch_agent_resident_bytes", 0.0) > 16 << 20)
    eventually(lambda: agent.metrics().get("flopwatch_agent_open_files", 0.0) > 3)
