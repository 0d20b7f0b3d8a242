"""XIDs, and letting go of the device files, in a real agent process over the fake library."""

import json
import subprocess
import sys
import time
from pathlib import Path

from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import Agent, FakeCollector, eventually

UUID = "GPU-fa4e0000-0000-4000-8000-{:012x}"
RECORD = (
    "6,1042,{},-;NVRM: Xid (PCI:0000:{}): {}, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
)


def xids(index: int, number: int) -> str:
    return f'flopwatch_gpu_xid_errors_total{{gpu_uuid="{UUID.format(index)}",xid="{number}"}}'


def command(agent: Agent, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "flopwatch_agent", *words, "--json"],
        env={"FLOPWATCH_AGENT_DATA_DIR": agent.environment["FLOPWATCH_AGENT_DATA_DIR"]},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_xid_counts_also_while_the_gpu_hangs_and_one_fault_told_twice_counts_once(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, tmp_path: Path
) -> None:
    log = tmp_path / "kmsg"
    log.write_text(RECORD.format(1, "1b:00", 62))
    fake_nvml.write("gpus 3")
    agent = new_agent(collector_url=collector.url, kernel_log=log)
    eventually(lambda: agent.has("flopwatch_gpus_seen", 3.0))
    time.sleep(0.5)

    fake_nvml.write("gpus 3", "hang nvmlDeviceGetTemperatureV 1", "xid 0 31", "xid 0 31", "xid 1 79")
    with log.open("a") as kernel:
        kernel.write(RECORD.format(2, "2b:00", 79))
        kernel.write("6,1043,3,-;NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 119, pid=7, name=python\n")
        kernel.write("4,1044,4,-;NVRM: something else (PCI:0000:1b:00): 79\n continued\n")

    eventually(lambda: agent.has(xids(0, 31), 2.0))
    eventually(lambda: agent.has(xids(2, 119), 1.0))
    eventually(lambda: agent.has(xids(1, 79), 1.0))
    assert xids(0, 62) not in agent.metrics(), "what stood in the log before the agent began is not counted"
    assert xids(0, 79) not in agent.metrics()
    told = eventually(
        lambda: e if len(e := [x for x in collector.all("events") if x["kind"] == "xid"]) >= 4 else None
    )
    assert sorted((e["gpu"], e["code"]) for e in told) == [
        (UUID.format(0), 31), (UUID.format(0), 31), (UUID.format(1), 79), (UUID.format(2), 119),
    ]  # fmt: skip


def test_without_the_kernels_log_the_node_says_what_is_missing(new_agent, collector: FakeCollector) -> None:
    new_agent(collector_url=collector.url, kernel_log="/nonexistent/kmsg")

    facts = eventually(lambda: [b["node_facts"] for b in collector.batches if "node_facts" in b])

    assert any("CAP_SYSLOG" in gap for gap in facts[0]["permission_gaps"])


def test_release_closes_the_device_files_within_two_seconds_and_resume_opens_them(
    fake_nvml: FakeNvml, new_agent
) -> None:
    fake_nvml.write("gpus 2")
    agent = new_agent()
    eventually(lambda: agent.has("flopwatch_gpus_seen", 2.0))

    released = command(agent, "release")
    assert (released.returncode, json.loads(released.stdout)["done"]) == (0, True)
    eventually(lambda: agent.has("flopwatch_nvml_up", 0.0))

    assert command(agent, "resume").returncode == 0
    eventually(lambda: agent.has("flopwatch_gpus_seen", 2.0))

    assert agent.stop() == 0
    calls = fake_nvml.calls()
    assert calls["nvmlInitWithFlags"] == calls["nvmlShutdown"] == 2
    assert calls["nvmlEventSetCreate"] == calls["nvmlEventSetFree"] == 2
    late = command(agent, "release")
    assert late.returncode == 1
    assert "no agent uses" in json.loads(late.stdout)["text"]
