"""What ``flopwatch run`` adds to a command: CPU to start and end, CPU a minute beside a trainer, CPU for its output."""

import ctypes
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.bench.busy_node import TRAINER, cpu_seconds, memory_mib
from tests.fixtures_nvml import FakeNvml, fake_nvml, fake_nvml_library
from tests.integration.agent.agent_process import eventually

__all__ = ["fake_nvml", "fake_nvml_library"]

RUN = (sys.executable, "-m", "flopwatch.cli", "run", "--job", "bench", "--output")
SUBREAPER = 36
WARM_UP_SECONDS, MEASURED_SECONDS = 8.0, 30.0
MEGABYTES = 200
WRITER = f"import os\nblock = b'x' * 99 + b'\\n'\nfor _ in range({MEGABYTES}): os.write(1, block * 10_000)"


@pytest.fixture
def orphans() -> None:
    """The recorder outlives its parent by a moment: this process takes it over, so that its CPU is counted."""
    assert ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0) == 0


def children(pid: int) -> list[int]:
    """Processes that a process started."""
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def spent(*command: str, **environment: str) -> float:
    """CPU seconds of a command and of everything that it started."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    while children(os.getpid()):
        os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.usefixtures("orphans")
def test_cpu_to_start_and_end_and_for_output(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    run = (*RUN, str(tmp_path / "out"), "--")
    writer = (sys.executable, "-c", WRITER)
    alone = spent("true", **fake_nvml.environment), spent(*writer, **fake_nvml.environment)
    under = spent(*run, "true", **fake_nvml.environment), spent(*run, *writer, **fake_nvml.environment)

    start = under[0] - alone[0]
    output = under[1] - alone[1] - start
    print(f"\nflopwatch run: {start:.2f} CPU-s to start and end, {output / MEGABYTES * 1000:.1f} ms of CPU "
          f"for a megabyte of output")  # fmt: skip
    assert start < 3.0
    assert output / MEGABYTES < 0.05


def test_cpu_and_memory_beside_a_trainer(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    trainer = (sys.executable, str(TRAINER), "megatron", "--startup-seconds", "0", "--step-seconds", "0.5",
               "--control", str(tmp_path / "control"))  # fmt: skip
    relay = subprocess.Popen(
        [*RUN, str(tmp_path / "out"), "--", *trainer],
        env={**os.environ, **fake_nvml.environment, "FAKE_NVML_WAIT": "5"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: list(tmp_path.glob("out/*.jsonl")) and len(children(relay.pid)) == 2, 60.0)
        own = Path(f"/proc/{relay.pid}/cmdline").read_bytes()
        recorder = next(
            pid for pid in children(relay.pid) if Path(f"/proc/{pid}/cmdline").read_bytes() == own
        )
        time.sleep(WARM_UP_SECONDS)
        pids, began = (relay.pid, recorder), time.monotonic()
        before = [cpu_seconds(pid) for pid in pids]
        time.sleep(MEASURED_SECONDS)
        minutes = (time.monotonic() - began) / 60
        relayed, recorded = (
            (cpu_seconds(pid) - used) / minutes for pid, used in zip(pids, before, strict=True)
        )
        memory = [memory_mib(pid) for pid in pids]
    finally:
        relay.terminate()
        relay.wait(30)
    print(f"\nflopwatch run: relay {relayed:.2f}, recorder {recorded:.2f} CPU-s a minute; "
          f"{memory[0]:.1f} and {memory[1]:.1f} MiB")  # fmt: skip
    assert relayed + recorded <= 0.6
