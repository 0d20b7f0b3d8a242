"""That the agent does not grow: thousands of cycles in a process of its own, and a long run of a real agent.

``FLOPWATCH_SOAK_SECONDS`` sets how long the real agent runs (60 unless set); docs/agent.md has the figures of half
an hour.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.bench.busy_node import BusyNode, busy_node, descriptors, memory_mib, scrape, status_of
from tests.fixtures_nvml import FakeNvml, fake_nvml, fake_nvml_library
from tests.integration.agent.agent_process import eventually

__all__ = ["fake_nvml", "fake_nvml_library"]

SOAK_SECONDS = float(os.environ.get("FLOPWATCH_SOAK_SECONDS", "60"))
LOOK_SECONDS = 5.0
MAX_GROWTH_MIB = 1.0

CYCLES = """
import json, os, sys, time
from pathlib import Path
from flopwatch.encoding import encode
from flopwatch_agent import nvml
from flopwatch_agent.gpu_reader import GpuReader, describe, reads_for
from flopwatch_agent.sources.network import NetworkSource
from flopwatch_agent.sysfs import KernelTree

def kept():
    status = Path("/proc/self/status").read_text()
    rss = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return rss / 1024, len(os.listdir("/proc/self/fd"))

nvml.init()
handles = [nvml.call("nvmlDeviceGetHandleByIndex", index) for index in range(8)]
readers = [GpuReader(handle, describe(handle, index), reads_for(handle, 580, gpm=True))
           for index, handle in enumerate(handles)]
network = NetworkSource(KernelTree(Path(sys.argv[1])))
first = None
for cycle in range(10_000):
    now = 1_000_000.0 + cycle
    samples = [reader.sample(now) for reader in readers]
    encode(samples), encode(network.read(now).port_samples)
    if cycle == 1_000:
        first = kept()
print(json.dumps({"first": first, "last": kept()}))
"""
LOSSES = """
import json, os, sys, time
from pathlib import Path
from flopwatch_agent.rounds import Rounds
from flopwatch_agent.sources.gpu import GpuSource

def kept():
    status = Path("/proc/self/status").read_text()
    rss = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return rss / 1024, len(os.listdir("/proc/self/fd"))

def wait(source, want):
    end = time.monotonic() + 60
    while (source.inventory().nvml == "ok") != want:
        assert time.monotonic() < end
        time.sleep(0.001)

source = GpuSource(rounds=Rounds(0.2), gpm=True)
source.start()
first = None
for turn in range(200):
    wait(source, True)
    source.release(released=True)
    wait(source, False)
    source.release(released=False)
    if turn == 20:
        wait(source, True)
        first = kept()
wait(source, True)
print(json.dumps({"first": first, "last": kept()}))
source.stop(10)
"""


def grown(fake: FakeNvml, code: str, *arguments: str) -> tuple[float, int]:
    """MiB and descriptors that a program had more at its end than after its beginning."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **fake.environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    found = json.loads(done.stdout)
    (memory, files), (later, files_later) = found["first"], found["last"]
    print(f"\n{memory:.2f} -> {later:.2f} MiB, {files} -> {files_later} descriptors")
    return later - memory, files_later - files


def test_ten_thousand_cycles_leave_no_memory_and_no_descriptor(fake_nvml: FakeNvml, tmp_path: Path) -> None:
    ports = BusyNode(fake_nvml, tmp_path, None).ports()  # type: ignore[arg-type]  # only its files

    memory, files = grown(fake_nvml, CYCLES, str(ports))

    assert memory < MAX_GROWTH_MIB
    assert files == 0


def test_opening_and_closing_nvml_again_and_again_leaves_no_memory_and_no_descriptor(
    fake_nvml: FakeNvml,
) -> None:
    memory, files = grown(fake_nvml, LOSSES)

    assert memory < MAX_GROWTH_MIB
    assert files == 0


@pytest.mark.timeout(SOAK_SECONDS + 300.0)
def test_a_long_run_grows_neither_in_memory_nor_threads_nor_descriptors(
    fake_nvml: FakeNvml, tmp_path: Path
) -> None:
    with busy_node(fake_nvml, tmp_path) as node:
        agent = node.agent(1.0)
        eventually(node.metrics_port, 60.0)
        eventually(node.follows_the_log, 60.0)
        rows: list[tuple[float, int, int]] = []
        end, scraped = time.monotonic() + SOAK_SECONDS, float("-inf")
        while time.monotonic() < end:
            if time.monotonic() - scraped >= 15.0:
                scrape(node.metrics_port())
                scraped = time.monotonic()
            time.sleep(LOOK_SECONDS)
            rows.append((memory_mib(agent.pid), status_of(agent.pid, "Threads"), descriptors(agent.pid)))
            node.collector.requests.clear()
        part = max(1, len(rows) // 4)
        # The first quarter fills the caches that have a bound.
        early, late = rows[part : 2 * part], rows[-part:]
        growth = statistics.median(row[0] for row in late) - statistics.median(row[0] for row in early)
        print(f"\n{SOAK_SECONDS:.0f} s: {early[0][0]:.2f} -> {late[-1][0]:.2f} MiB (median {growth:+.2f}), threads "
              f"{early[0][1]} -> {late[-1][1]}, descriptors {early[0][2]} -> {late[-1][2]}")  # fmt: skip
        assert growth < MAX_GROWTH_MIB
        assert statistics.median(row[1] for row in late) <= statistics.median(row[1] for row in early)
        # One more where a look falls into a scrape or a batch.
        assert statistics.median(row[2] for row in late) <= statistics.median(row[2] for row in early)
