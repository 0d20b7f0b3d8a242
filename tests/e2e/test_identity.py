"""One job stays one job, however many agents see it."""

import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page
from tests.e2e.processes import Processes, get_json, until
from tests.fixtures_nvml import FakeNvml, FakeNvmlLibraries
from tests.ports import free_port

from flopwatch import wire
from flopwatch.encoding import encode

TRAINER = Path(__file__).with_name("trainer.py")
PEAK = 989.4e12
TOKEN = 6 * (32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 4096 * 128_256) + 6 * 32 * 4096 * 8192
"""Causal FLOPs a token of Llama-3-8B at 8,192."""
STEP_TOKENS = 8 * 8192


class Cluster:
    """A collector, and nodes that are each an agent with a GPU of its own."""

    def __init__(self, processes: Processes, libraries: FakeNvmlLibraries, folder: Path) -> None:
        self.processes = processes
        self.libraries = libraries
        self.folder = folder
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        processes.flopwatch("collector", "--port", str(port), "--data-dir", str(folder / "collector"))
        until(lambda: get_json(self.url + "/healthz"), 30, "the collector answers")

    def node(self, index: int, log: Path, *command: str, world: int) -> None:
        """Start rank ``index``: its process writing to ``log``, and its node's agent."""
        ranks = {
            "MASTER_ADDR": "10.20.0.1",
            "MASTER_PORT": "29517",
            "WORLD_SIZE": str(world),
            "RANK": str(index),
        }
        with log.open("ab") as sink:
            process = self.processes.start(
                f"rank{index}",
                sys.executable,
                *command,
                env={**ranks, "FLOPWATCH_JOB_NAME": "joined"},
                stdout=sink,
            )
        fake = FakeNvml(
            self.libraries.current, self.folder / f"node{index}.scenario", self.folder / f"node{index}.trace"
        )
        fake.write("gpus 1", f"uuid 0 GPU-node-{index}", f"proc 0 {process.popen.pid} 60000")
        self.processes.flopwatch(
            "agent",
            env={
                **fake.environment, "FLOPWATCH_AGENT_NODE": f"node{index}", "FLOPWATCH_AGENT_COLLECTOR_URL": self.url,
                "FLOPWATCH_AGENT_PORT": "0", "FLOPWATCH_AGENT_HOST": "127.0.0.1", "FLOPWATCH_AGENT_SDK_SOCKET": "off",
                "FLOPWATCH_AGENT_DATA_DIR": str(self.folder / f"agent{index}"),
            },
        )  # fmt: skip

    def jobs(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = get_json(self.url + "/api/v1/query/jobs?seconds=3600")["rows"]
        return rows

    def job_with_mfu(self, seconds: float) -> dict[str, Any]:
        def ask() -> dict[str, Any] | None:
            return next((row for row in self.jobs() if row["mfu"]["value_ratio"] is not None), None)

        return until(ask, seconds, "a job with an MFU")


@pytest.fixture
def cluster(processes: Processes, fake_nvml_library: FakeNvmlLibraries, tmp_path: Path) -> Cluster:
    return Cluster(processes, fake_nvml_library, tmp_path)


def trainer(kind: str, folder: Path) -> tuple[str, ...]:
    return (
        str(TRAINER),
        kind,
        "--step-seconds",
        "1.0",
        "--startup-seconds",
        "1.0",
        "--control",
        str(folder / "control"),
    )


def test_sixteen_agents_that_follow_one_file_give_the_rows_of_one(cluster: Cluster, tmp_path: Path) -> None:
    log = tmp_path / "slurm.out"
    cluster.node(0, log, *trainer("megatron", tmp_path), world=16)
    for index in range(1, 16):
        cluster.node(index, log, "-c", "import time; time.sleep(600)", world=16)

    until(lambda: [row for row in cluster.jobs() if row["gpus_observed"] == 16], 90, "all sixteen are seen")
    row = cluster.job_with_mfu(60)
    (tmp_path / "control").write_text("stop")
    last = 0
    while last != (last := settled_step(cluster, row["job_id"])):
        continue
    job = get_json(f"{cluster.url}/api/v1/query/jobs/{row['job_id']}?seconds=3600&points=2000")

    steps = [step for step in job["steps"]["columns"]["step"] if step is not None]
    printed = [line for line in log.read_text().splitlines() if "elapsed time per iteration" in line]
    assert len(cluster.jobs()) == 1
    assert steps == [float(number) for number in range(1, len(printed) + 1)]
    assert (row["gpus"], row["gpus_basis"], row["nodes"]) == (16, "world_size", 16)
    assert row["mfu"]["value_ratio"] == pytest.approx(TOKEN * STEP_TOKENS / (16 * PEAK * 1.0), rel=0.002)


def settled_step(cluster: Cluster, job_id: str) -> int:
    """The newest step, asked a good batch later."""
    time.sleep(12.0)
    row = next(row for row in cluster.jobs() if row["job_id"] == job_id)
    return int(row["last_step"] or 0)


def test_a_header_on_rank_0_and_steps_on_the_last_rank_give_one_mfu(cluster: Cluster, tmp_path: Path) -> None:
    cluster.node(0, tmp_path / "rank0.out", *trainer("megatron-header", tmp_path), world=2)
    cluster.node(1, tmp_path / "rank1.out", *trainer("megatron-steps", tmp_path), world=2)

    row = cluster.job_with_mfu(60)

    assert len(cluster.jobs()) == 1
    assert (row["gpus"], row["gpus_observed"], row["nodes"]) == (2, 2, 2)
    assert row["mfu"]["basis"] == "steps+shape"
    assert row["mfu"]["value_ratio"] == pytest.approx(TOKEN * STEP_TOKENS / (2 * PEAK * 1.0), rel=0.002)


SHAPE = {
    "n_layers": 80, "hidden": 8192, "ffn_hidden": 28672, "n_heads": 64, "n_kv_heads": 8, "head_dim": 128,
    "vocab": 128_256, "gated_mlp": True, "tied_embeddings": False, "seq_len": 8192,
}  # fmt: skip
SEVENTY_B_TOKEN = (
    6 * (80 * (2 * 8192**2 + 2 * 8192 * 1024 + 3 * 8192 * 28672) + 8192 * 128_256) + 6 * 80 * 8192 * 8192
)


def test_agents_on_100_of_128_nodes_give_the_mfu_over_1024_gpus_and_say_800(
    cluster: Cluster, page: Page
) -> None:
    now = time.time()
    for node in range(100):
        push(cluster.url, sighted(node, now))

    row = cluster.job_with_mfu(30)
    page.goto(f"{cluster.url}/ui/jobs/{row['job_id']}?lang=en")
    page.get_by_text("800 of 1,024").first.wait_for(timeout=15_000)
    row = cluster.job_with_mfu(5)

    # 1,024 sequences of 8,192 in 9 s on 1,024 GPUs
    by_hand = SEVENTY_B_TOKEN * 1024 * 8192 / (1024 * PEAK * 9.0)
    assert row["mfu"]["value_ratio"] == pytest.approx(by_hand, rel=1e-3)
    assert (row["gpus"], row["gpus_basis"], row["gpus_observed"], row["nodes"]) == (
        1024,
        "world_size",
        800,
        100,
    )


def push(url: str, batch: wire.Batch) -> None:
    headers = {"Content-Type": "application/json", wire.SENT_AT_HEADER: repr(time.time())}
    request = urllib.request.Request(f"{url}/api/v1/ingest", encode(batch), headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert answer.status == 200


def sighted(node: int, now: float) -> wire.Batch:
    """What the agent of one of the 100 nodes sends of a Slurm job on 128."""
    uuids = tuple(f"GPU-{node}-{gpu}" for gpu in range(8))
    facts = wire.RunFacts(
        source="log", origin="argument block", shape=SHAPE, world_size=1024, global_batch_size=1024,
        sequence_length=8192, dtype="bf16", dtype_basis="log",
    )  # fmt: skip
    sighting = wire.JobSighting(
        ref="slurm:7", scheduler="slurm", scheduler_job_id="7", submit_time_seconds=now - 700.0, name="big",
        world_size=1024, start_time_seconds=now - 600.0, gpus=uuids, leased_gpus=uuids,
        run=(facts,) if not node else (),
    )  # fmt: skip
    steps = tuple(
        wire.StepRecord(
            job="slurm:7", source="log", source_id="log:7", step=number, seconds=9.0,
            end_time_seconds=now - 500.0 + 9.0 * number, steady=number > 1,
        )
        for number in range(1, 51)
    )  # fmt: skip
    return wire.Batch(
        version=1, node=f"n{node:03d}", cluster="c", spool="s", sequence=0, boot_id="b", sampled_at_seconds=now,
        monotonic_seconds=1.0, interval_seconds=10.0, agent_version="test",
        gpus=tuple(
            wire.GpuDevice(uuid=uuid, slot=f"0000:{0x10 + index:02x}:00.0", name="NVIDIA H100 80GB HBM3", index=index)
            for index, uuid in enumerate(uuids)
        ),
        gpu_samples=tuple(
            wire.GpuSample(time_seconds=now, gpu=uuid, kernel_active_ratio=0.97, process_count=1, job="slurm:7")
            for uuid in uuids
        ),
        jobs=(sighting,), steps=steps if not node else (),
    )  # fmt: skip
