"""``flopwatch doctor`` over fakes: each gap is named with its remedy, and its status says whether an MFU can be had."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import eventually
from tests.integration.agent.kernel_files import write
from tests.ports import free_port

TRAIN = """
import sys
print("tokens per iteration will be: 491,520", flush=True)
for step in range(3): print(f"iter {step}: loss 3.1, time 250.00ms, mfu 40.00%", flush=True)
sys.stdin.read()
"""
SDK = """
import sys
from flopwatch import StepReporter
reporter = StepReporter()
with reporter.step(tokens=4096): pass
sys.stdin.read()
"""


def doctor(fake: FakeNvml, **settings: object) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit status, and the checks by name; of several of one name the last."""
    given = {f"FLOPWATCH_AGENT_{name.upper()}": str(value) for name, value in settings.items()}
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("FLOPWATCH_")}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from flopwatch_agent.doctor import main; sys.exit(main(['--json']))",
        ],
        env={**inherited, **fake.environment, "FLOPWATCH_AGENT_SDK_SOCKET": "off", **given},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout, done.stderr
    return done.returncode, {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def of_job(checks: dict[str, dict[str, Any]], pid: int) -> dict[str, Any]:
    """The one job that the fake's processes are of."""
    (found,) = (check for name, check in checks.items() if name.startswith("job ") and f":{pid}:" in name)
    return found


def test_a_job_whose_log_is_found_is_well(fake_nvml: FakeNvml, tmp_path: Path, processes) -> None:
    log = tmp_path / "train.log"
    with log.open("wb") as sink:
        process = processes(TRAIN, stdin=subprocess.PIPE, stdout=sink, stderr=sink)
    fake_nvml.write("gpus 1", f"proc 0 {process.pid} 100")

    status, checks = doctor(fake_nvml, port=0, data_dir=tmp_path)

    assert status == 0, checks
    assert of_job(checks, process.pid)["status"] == "ok"
    assert str(log) in of_job(checks, process.pid)["details"]["logs"]
    assert checks["NVML"]["text"].endswith("1 GPUs")


def test_a_job_without_any_output_has_no_mfu_and_the_remedy_is_named(
    fake_nvml: FakeNvml, tmp_path: Path, processes
) -> None:
    process = processes(
        TRAIN, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path
    )
    fake_nvml.write("gpus 1", f"proc 0 {process.pid} 100")

    status, checks = doctor(fake_nvml, port=0, data_dir=tmp_path)

    assert status == 1
    job = of_job(checks, process.pid)
    assert (job["status"], job["details"]["logs"]) == ("failed", [])
    assert "its MFU cannot be had" in job["text"]
    assert "flopwatch.StepReporter" in job["text"]


def test_a_job_whose_steps_the_running_agent_has_is_well_without_a_log(
    fake_nvml: FakeNvml, new_agent, tmp_path: Path, processes
) -> None:
    port, socket = free_port(), tmp_path / "steps.sock"
    agent = new_agent(port=port, sdk_socket=socket)
    eventually(socket.exists)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    process = processes(
        SDK, stdin=subprocess.PIPE, env={**os.environ, "FLOPWATCH_SOCKET": str(socket)}, **quiet
    )
    fake_nvml.write("gpus 1", f"proc 0 {process.pid} 100")
    eventually(lambda: any(name.startswith("flopwatch_job_step{") for name in agent.metrics()))

    status, checks = doctor(fake_nvml, port=port, data_dir=tmp_path)

    assert status == 0, checks
    assert "the running agent has its steps" in of_job(checks, process.pid)["text"]


def test_each_gap_is_named_with_its_remedy(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    sys_root, proc = tmp_path / "sys", tmp_path / "proc"
    for address in ("0000:1b:00.0", "0000:2b:00.0"):
        write(sys_root, f"bus/pci/devices/{address}/vendor", "0x10de")
        write(sys_root, f"bus/pci/devices/{address}/class", "0x030200")
    write(proc, "self/status", "CapEff:\t0000000000000000")
    fake_nvml.write("gpus 1", "err nvmlDeviceGetUtilizationRates 0 4")
    closed = free_port()

    status, checks = doctor(
        fake_nvml, port=0, data_dir=tmp_path / "data", sys_root=sys_root, proc_root=proc,
        collector_url=f"http://127.0.0.1:{closed}", sdk_socket=tmp_path / "none.sock",
    )  # fmt: skip

    assert status == 1
    assert {name for name, check in checks.items() if check["status"] == "failed"} == {
        "NVML",
        "collector",
        "host",
    }
    assert "0000:2b:00.0" in checks["NVML"]["text"]
    assert "kernel_active_ratio" in checks["GPU 0000:1b:00.0"]["text"]
    assert "may not be read" in checks["GPU permission"]["text"]
    assert "none was found" in checks["NIC ports"]["text"]
    assert "agent.proc_root" in checks["host"]["text"]
    assert "cannot be read; jobs of this user can" in checks["CAP_SYS_PTRACE"]["text"]
    assert "the driver's events still tell most XIDs" in checks["CAP_SYSLOG"]["text"]
    assert "no agent listens now" in checks["SDK socket"]["text"]
    assert str(closed) in checks["collector"]["text"]


def test_without_a_driver_a_node_with_gpus_fails_and_one_without_does_not(
    fake_nvml: FakeNvml, tmp_path: Path
) -> None:
    fake_nvml.write("init 9")
    write(tmp_path, "with/bus/pci/devices/0000:1b:00.0/vendor", "0x10de")
    write(tmp_path, "with/bus/pci/devices/0000:1b:00.0/class", "0x030200")
    (tmp_path / "without").mkdir()

    found = {
        name: doctor(fake_nvml, port=0, data_dir=tmp_path, sys_root=tmp_path / name)[1]["NVML"]
        for name in ("with", "without")
    }

    assert {name: check["status"] for name, check in found.items()} == {
        "with": "failed",
        "without": "warning",
    }
    assert all("the driver is not loaded" in check["text"] for check in found.values())
