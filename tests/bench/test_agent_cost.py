"""What the agent costs: CPU of a real process over the fake library, and the SDK's time a step."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.bench.busy_node import busy_node, cpu_seconds, memory_mib, scrape
from tests.fixtures_nvml import FakeNvml, fake_nvml, fake_nvml_library
from tests.integration.agent.agent_process import eventually
from tests.ports import free_port

__all__ = ["fake_nvml", "fake_nvml_library"]

WARM_UP_SECONDS = 6.0
MEASURED_SECONDS = 30.0
SCRAPE_SECONDS = 15.0
PEERS = os.environ.get("FLOPWATCH_PEERS_PYTHON")
"""A Python that has nvitop-exporter and gpustat installed."""


def measured(running: dict[str, int], seconds: float, pages: list[int]) -> dict[str, float]:
    """CPU seconds a minute of each process over the same time, while the pages are scraped."""
    before = {name: cpu_seconds(pid) for name, pid in running.items()}
    began = time.monotonic()
    while (left := began + seconds - time.monotonic()) > 0:
        for port in pages:
            scrape(port)
        time.sleep(min(SCRAPE_SECONDS, left))
    elapsed = time.monotonic() - began
    return {name: (cpu_seconds(pid) - before[name]) * 60 / elapsed for name, pid in running.items()}


@pytest.mark.parametrize("interval", [1, 10])
def test_cpu_and_memory_of_the_agent(fake_nvml: FakeNvml, tmp_path: Path, interval: int) -> None:
    with busy_node(fake_nvml, tmp_path) as node:
        agent = node.agent(interval)
        eventually(node.follows_the_log, 60.0)
        time.sleep(WARM_UP_SECONDS)
        used = measured({"agent": agent.pid}, MEASURED_SECONDS, [node.metrics_port()])["agent"]
        memory = memory_mib(agent.pid)
    print(f"\nagent, {interval} s interval: {used:.2f} CPU-s a minute, {memory:.1f} MiB")
    assert used <= (0.4 if interval == 1 else 0.2)
    assert memory <= 48


@pytest.mark.skipif(
    PEERS is None, reason="FLOPWATCH_PEERS_PYTHON names no Python with nvitop-exporter and gpustat"
)
def test_agent_and_peers_over_the_same_library_in_the_same_minute(
    fake_nvml: FakeNvml, tmp_path: Path
) -> None:
    port = free_port()
    exporter = [
        "-m",
        "nvitop_exporter",
        "--bind-address",
        "127.0.0.1",
        "--port",
        str(port),
        "--interval",
        "1",
    ]
    with busy_node(fake_nvml, tmp_path) as node:
        programs = {
            "agent": node.agent(1.0),
            "nvitop-exporter": node.program("nvitop", [str(PEERS), *exporter]),
            "gpustat": node.program("gpustat", [str(PEERS), "-m", "gpustat", "-i", "1", "-a"]),
        }
        eventually(node.follows_the_log, 60.0)
        time.sleep(WARM_UP_SECONDS)
        pids = {name: program.pid for name, program in programs.items()}
        used = measured(pids, 2 * MEASURED_SECONDS, [node.metrics_port(), port])
        memory = {name: memory_mib(pid) for name, pid in pids.items()}
    for name, seconds in used.items():
        print(f"\n{name}: {seconds:.2f} CPU-s a minute, {memory[name]:.1f} MiB", end="")
    print(f"\nof nvitop-exporter's: {used['agent'] / used['nvitop-exporter']:.2f}")
    assert used["agent"] < used["nvitop-exporter"]


RECEIVER = """
import socket, sys
out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
out.bind(sys.argv[1])
print("ready", flush=True)
while True: out.recv(65536)
"""

REPORTER = """
import sys, time
from flopwatch import StepReporter, report
if sys.argv[1] == "sent": report.STEP_BURST = report.STEPS_A_SECOND = 1e9
reporter = StepReporter()
count = 20_000
began = time.process_time()
for _ in range(count):
    with reporter.step(tokens=4096): pass
print((time.process_time() - began) / count * 1e6)
"""


@pytest.mark.parametrize("way", ["sent", "summed"])
def test_time_of_a_step_of_the_sdk(tmp_path: Path, way: str) -> None:
    path = str(tmp_path / "s.sock")
    receiver = subprocess.Popen([sys.executable, "-c", RECEIVER, path], stdout=subprocess.PIPE)
    assert receiver.stdout is not None
    receiver.stdout.readline()
    try:
        answer = subprocess.run(
            [sys.executable, "-c", REPORTER, way],
            env={**os.environ, "FLOPWATCH_SOCKET": path},
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        receiver.kill()
        receiver.wait(5)
        receiver.stdout.close()

    microseconds = float(answer.stdout)
    print(f"\nSDK: {microseconds:.1f} µs a step that is {way}")
    assert microseconds <= 20.0
