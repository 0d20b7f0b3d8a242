"""What the agent costs: CPU of a real process over the fake library, and the SDK's time a step."""

import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from tests.fixtures_nvml import FakeNvml, fake_nvml, fake_nvml_library
from tests.integration.agent.kernel_files import write

__all__ = ["fake_nvml", "fake_nvml_library"]

WARM_UP_SECONDS = 6.0
MEASURED_SECONDS = 30.0
TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def cost(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """CPU seconds a minute, and MiB resident."""
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(WARM_UP_SECONDS)
        before = cpu_seconds(process.pid)
        time.sleep(MEASURED_SECONDS)
        used = cpu_seconds(process.pid) - before
        return used * 60 / MEASURED_SECONDS, memory_mib(process.pid)
    finally:
        process.terminate()
        process.wait(15)


def workers(fake_nvml: FakeNvml) -> list["subprocess.Popen[bytes]"]:
    """Eight processes on eight GPUs."""
    started = [subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL) for _ in range(8)]
    fake_nvml.write("gpus 8", *(f"proc {index} {process.pid} 50000" for index, process in enumerate(started)))
    return started


def ports(root: Path) -> Path:
    """Eight InfiniBand ports."""
    for index in range(8):
        folder = f"class/infiniband/mlx5_{index}/ports/1"
        for name in ("port_xmit_data", "port_rcv_data", "port_xmit_wait", "symbol_error", "link_downed"):
            write(root, f"{folder}/counters/{name}", "1000")
        write(root, f"{folder}/state", "4: ACTIVE")
        write(root, f"{folder}/rate", "400 Gb/sec (4X NDR)")
    return root


@pytest.mark.parametrize("interval", [1, 10])
def test_cpu_and_memory_of_the_agent(fake_nvml: FakeNvml, tmp_path: Path, interval: int) -> None:
    started = workers(fake_nvml)
    settings = {
        "INTERVAL_SECONDS": str(interval), "PORT": "0", "DATA_DIR": str(tmp_path / "data"), "SDK_SOCKET": "off",
        "SYS_ROOT": str(ports(tmp_path / "sys")), "COLLECTOR_URL": "http://127.0.0.1:9",
    }  # fmt: skip
    environment = {
        f"FLOPWATCH_AGENT_{name}": value for name, value in settings.items()
    } | fake_nvml.environment
    try:
        cpu, memory = cost([sys.executable, "-m", "flopwatch_agent"], environment)
        print(f"\nagent, {interval} s interval: {cpu:.2f} CPU-s a minute, {memory:.1f} MiB")
        assert cpu <= (0.5 if interval == 1 else 0.12)
        assert memory <= 60
    finally:
        for process in started:
            process.kill()
            process.wait(5)


PEERS = os.environ.get("FLOPWATCH_PEERS_PYTHON")
"""A Python that has nvitop-exporter and gpustat installed."""
SCRAPE_SECONDS = 15.0


def started(command: list[str], environment: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
    with log.open("wb") as sink:
        return subprocess.Popen(command, env={**os.environ, **environment}, stdout=sink, stderr=sink)


@pytest.mark.skipif(
    PEERS is None, reason="FLOPWATCH_PEERS_PYTHON names no Python with nvitop-exporter and gpustat"
)
def test_agent_and_peers_over_the_same_library_in_the_same_minute(
    fake_nvml: FakeNvml, tmp_path: Path
) -> None:
    trained = workers(fake_nvml)
    settings = {
        "INTERVAL_SECONDS": "1", "PORT": "0", "HOST": "127.0.0.1", "DATA_DIR": str(tmp_path / "data"),
        "SDK_SOCKET": "off", "SYS_ROOT": str(ports(tmp_path / "sys")), "COLLECTOR_URL": "http://127.0.0.1:9",
    }  # fmt: skip
    own = {f"FLOPWATCH_AGENT_{name}": value for name, value in settings.items()}
    commands = {
        "flopwatch agent": [sys.executable, "-m", "flopwatch_agent"],
        "nvitop-exporter": [str(PEERS), "-m", "nvitop_exporter", "--port", "19881", "--interval", "1"],
        "gpustat": [str(PEERS), "-m", "gpustat", "-i", "1", "-a"],
    }
    logs = {name: tmp_path / f"{number}.log" for number, name in enumerate(commands)}
    running = {
        name: started(command, fake_nvml.environment | own, logs[name]) for name, command in commands.items()
    }
    try:
        time.sleep(WARM_UP_SECONDS)
        port = re.findall(r"metrics at [\d.]+:(\d+)", logs["flopwatch agent"].read_text())[0]
        before = {name: cpu_seconds(process.pid) for name, process in running.items()}
        for _ in range(4):
            for page in (port, "19881"):
                urllib.request.urlopen(f"http://127.0.0.1:{page}/metrics", timeout=5).read()
            time.sleep(SCRAPE_SECONDS)
        used = {name: cpu_seconds(process.pid) - before[name] for name, process in running.items()}
        for name, process in running.items():
            print(f"\n{name}: {used[name]:.2f} CPU-s a minute, {memory_mib(process.pid):.1f} MiB", end="")
        print()
    finally:
        for process in (*running.values(), *trained):
            process.kill()
            process.wait(15)
    assert used["flopwatch agent"] < used["nvitop-exporter"]


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
