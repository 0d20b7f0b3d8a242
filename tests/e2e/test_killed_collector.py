"""The collector is killed again and again while nodes push: what it acknowledged is there, once."""

import random
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
from tests.e2e.processes import Process, Processes, get_json, until
from tests.fixtures_nvml import FakeNvml
from tests.ports import free_port

from flopwatch import wire
from flopwatch.encoding import encode
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings

KILLS = 10
NODES = 4
FIRST = time.time() // 60 * 60 - 7_200.0


class Node(threading.Thread):
    """Pushes batches like an agent: one at a time, each again until it is acknowledged."""

    def __init__(self, name: str, url: str) -> None:
        super().__init__(daemon=True)
        self.node = name
        self.url = url
        self.acknowledged: list[float] = []
        self.ending = threading.Event()

    def run(self) -> None:
        sequence = 0
        while not self.ending.is_set():
            stamp = FIRST + sequence
            if self._push(self._batch(sequence, stamp)):
                self.acknowledged.append(stamp)
                sequence += 1
            else:
                time.sleep(0.05)

    def _batch(self, sequence: int, stamp: float) -> bytes:
        uuid = f"GPU-{self.node}"
        return encode(
            wire.Batch(
                version=1, node=self.node, cluster="c", spool="s", sequence=sequence, boot_id="b",
                sampled_at_seconds=stamp, monotonic_seconds=stamp, interval_seconds=1.0, agent_version="test",
                gpus=(wire.GpuDevice(uuid=uuid, slot="0000:1b:00.0", name="NVIDIA H100 80GB HBM3"),),
                gpu_samples=(wire.GpuSample(time_seconds=stamp, gpu=uuid, kernel_active_ratio=0.5),),
            )
        )  # fmt: skip

    def _push(self, body: bytes) -> bool:
        request = urllib.request.Request(
            f"{self.url}/api/v1/ingest", body, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status == 200
        except (OSError, urllib.error.URLError):
            return False


def test_every_acknowledged_batch_is_there_once_after_ten_kills(
    processes: Processes, fake_nvml: FakeNvml, tmp_path: Path
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    data = tmp_path / "collector"
    collector = start(processes, port, data)
    agent = start_agent(processes, fake_nvml, url, tmp_path)
    nodes = [Node(f"n{index}", url) for index in range(NODES)]
    for node in nodes:
        node.start()

    chance = random.Random(5)  # noqa: S311 - a test's pauses
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.7, 1.5))
        collector.kill()
        collector = start(processes, port, data)
    time.sleep(1.0)
    for node in nodes:
        node.ending.set()
        node.join(10)
    spool = tmp_path / "agent" / "spool"
    until(lambda: len(list(spool.glob("*.json.gz"))) < 3, 120, "the agent's spool is sent")
    agent.stop()
    assert collector.stop() == 0

    check_stored(data, nodes)
    assert not list((tmp_path / "agent").rglob("rejected/*"))


def check_stored(data: Path, nodes: list[Node]) -> None:
    """Each acknowledged time is there exactly once; beyond them at most the one under way."""
    store = EmbeddedStore(StoreSettings(folder=data))
    try:
        rows = store.gpu_samples(FIRST, FIRST + 3_600.0, ("node",))
        recent = store.gpu_samples(time.time() - 900.0, time.time() + 60.0, ("node",))
    finally:
        store.close()
    stored = sorted(np.unique(rows["gpu"]).tolist())
    assert len(stored) == NODES
    counts = sorted(int((rows["gpu"] == gpu).sum()) for gpu in stored)
    acknowledged = sorted(len(node.acknowledged) for node in nodes)
    assert min(acknowledged) > 10
    for gpu in stored:
        times = rows["ts"][rows["gpu"] == gpu]
        assert np.unique(times).size == times.size
        assert np.array_equal(times, FIRST + np.arange(times.size))
    assert all(0 <= there - known <= 1 for there, known in zip(counts, acknowledged, strict=True))
    check_agent(recent["ts"], recent["gpu"])


def check_agent(times: "np.ndarray", gpus: "np.ndarray") -> None:
    """The real agent's samples, one a second over all the kills: none twice, no hole of more than two."""
    assert np.unique(gpus).size == 2
    for gpu in np.unique(gpus):
        own = np.sort(times[gpus == gpu])
        assert np.unique(own).size == own.size
        assert np.diff(own).max() < 3.0


def start(processes: Processes, port: int, data: Path) -> Process:
    started = processes.flopwatch("collector", "--port", str(port), "--data-dir", str(data))
    until(lambda: get_json(f"http://127.0.0.1:{port}/healthz"), 30, "the collector answers")
    return started


def start_agent(processes: Processes, fake: FakeNvml, url: str, folder: Path) -> Process:
    fake.write("gpus 2")
    return processes.flopwatch(
        "agent",
        env={
            **fake.environment, "FLOPWATCH_AGENT_COLLECTOR_URL": url, "FLOPWATCH_AGENT_PORT": "0",
            "FLOPWATCH_AGENT_HOST": "127.0.0.1", "FLOPWATCH_AGENT_DATA_DIR": str(folder / "agent"),
            "FLOPWATCH_AGENT_INTERVAL_SECONDS": "1",
        },
    )  # fmt: skip
