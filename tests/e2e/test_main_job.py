"""The main job with real processes: fake NVML, a training-like process writing a log, agent, collector, page.

Every expected MFU is worked out by hand from shape, batch and step time, against 989.4 TFLOP/s (H100 SXM, bf16).
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page
from tests.e2e.processes import Process, Processes, get_json, until
from tests.fixtures_nvml import FakeNvml
from tests.ports import free_port

TRAINER = Path(__file__).with_name("trainer.py")
PEAK = 989.4e12

LLAMA_8B_TOKEN = (
    6 * (32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 4096 * 128_256) + 6 * 32 * 4096 * 8192
)
"""Causal FLOPs a token: six a weight that a token passes, plus 6 L H d s."""
STEP_TOKENS = 8 * 8192


class Site:
    """``flopwatch up`` on one machine with a fake NVML, and the trainers on it."""

    def __init__(self, processes: Processes, fake: FakeNvml, folder: Path) -> None:
        self.processes = processes
        self.fake = fake
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.held: list[str] = []
        self.fake.write("gpus 16")

    def up(self, **environment: str) -> Process:
        env = {
            **self.fake.environment,
            "FLOPWATCH_AGENT_PORT": "0",
            "FLOPWATCH_AGENT_HOST": "127.0.0.1",
            **environment,
        }
        data = str(self.folder / "data" / "collector")
        started = self.processes.flopwatch("up", "--port", str(self.port), "--data-dir", data, env=env)
        until(lambda: get_json(self.url + "/healthz"), 30, "the collector answers")
        return started

    def train(
        self, kind: str, gpus: range, *, seconds: float, startup: float = 12.0, **environment: str
    ) -> Path:
        """Start a training-like process that holds GPUs; returns its control file."""
        control = self.folder / f"{kind}.control"
        log = self.folder / f"{kind}.out"
        with log.open("wb") as sink:
            process = self.processes.start(
                kind, sys.executable, str(TRAINER), kind, "--step-seconds", str(seconds),
                "--startup-seconds", str(startup), "--control", str(control),
                env={"FLOPWATCH_JOB_NAME": f"run-{kind}", **environment}, stdout=sink,
            )  # fmt: skip
        self.held += [f"proc {gpu} {process.popen.pid} 60000" for gpu in gpus]
        self.fake.write("gpus 16", *self.held)
        return control

    def row(self, name: str) -> dict[str, Any] | None:
        rows = get_json(self.url + "/api/v1/query/jobs?seconds=3600")["rows"]
        return next((row for row in rows if row["name"] == name), None)

    def row_when(self, name: str, seconds: float, wanted: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        def ask() -> dict[str, Any] | None:
            row = self.row(name)
            return row if row is not None and wanted(row) else None

        return until(ask, seconds, f"job {name}")


@pytest.fixture
def site(processes: Processes, fake_nvml: FakeNvml, tmp_path: Path) -> Site:
    return Site(processes, fake_nvml, tmp_path)


def has_mfu(row: dict[str, Any]) -> bool:
    """By its steps: until they come, the hardware's estimate stands there."""
    return row["mfu"]["value_ratio"] is not None and row["mfu"]["basis"].startswith("steps")


def test_a_megatron_log_becomes_the_mfu_on_the_page(site: Site, page: Page) -> None:
    site.up()
    began = time.monotonic()
    site.train("megatron", range(8), seconds=1.0, startup=14.0)

    waiting = site.row_when("run-megatron", 30, lambda row: row["state"] == "waiting")
    appeared = time.monotonic() - began
    third_step = 14.0 + 3.0
    row = site.row_when("run-megatron", third_step - appeared + 30, has_mfu)

    assert waiting["waiting_for"] == "steps"
    assert appeared < 30
    # 51.474 GFLOP x 65,536 tokens / (8 GPUs x 989.4 TFLOP/s x 1 s) = 0.4262
    by_hand = LLAMA_8B_TOKEN * STEP_TOKENS / (8 * PEAK * 1.0)
    assert by_hand == pytest.approx(0.4262, abs=5e-5)
    assert row["mfu"]["value_ratio"] == pytest.approx(by_hand, rel=0.002)
    assert row["mfu"]["basis"] == "steps+shape"
    assert row["mfu"]["convention"] == "causal"
    assert (row["gpus"], row["gpus_basis"], row["gpus_observed"]) == (8, "world_size", 8)
    assert row["target"] == {"ratio": None, "source": "none"}
    check_pages(site, page, row["job_id"])


def check_pages(site: Site, page: Page, job_id: str) -> None:
    """The figure, its basis and 'no target set' stand on the Jobs page and on the job's own."""
    page.goto(f"{site.url}/ui/jobs?lang=en")
    page.get_by_text("run-megatron").first.wait_for(timeout=15_000)
    page.get_by_text("42.6").first.wait_for(timeout=15_000)
    page.get_by_text("no target set").first.wait_for(timeout=15_000)
    page.goto(f"{site.url}/ui/jobs/{job_id}?lang=en")
    page.get_by_text("42.6").first.wait_for(timeout=15_000)


def test_four_ways_of_telling_steps_give_the_mfu_worked_out_by_hand(site: Site) -> None:
    site.up()
    site.train("nanogpt", range(1), seconds=1.0)
    site.train("torchtitan", range(1, 5), seconds=2.0)
    site.train("hf", range(5, 9), seconds=2.0)
    site.train("sdk", range(9, 16), seconds=1.0)

    rows = {
        kind: site.row_when(f"run-{kind}", 60, has_mfu) for kind in ("nanogpt", "torchtitan", "hf", "sdk")
    }

    found = {
        kind: (row["mfu"]["value_ratio"], row["mfu"]["basis"], row["gpus"]) for kind, row in rows.items()
    }
    # nanoGPT prints N = 123.59 M and 491,520 tokens a step: 6N, one GPU
    assert found["nanogpt"] == (pytest.approx(6 * 123.59e6 * 491_520 / PEAK, rel=0.01), "steps+params", 1)
    assert found["torchtitan"] == (
        pytest.approx(LLAMA_8B_TOKEN * STEP_TOKENS / (4 * PEAK * 2.0), rel=0.02), "steps+shape", 4,
    )  # fmt: skip
    # Trainer prints N = 7,615,616,512 and the tokens seen: 16 x 4,096 a step, times of four digits
    assert found["hf"] == (
        pytest.approx(6 * 7_615_616_512 * 16 * 4096 / (4 * PEAK * 2.0), rel=0.03),
        "steps+params",
        4,
    )
    assert found["sdk"] == (
        pytest.approx(LLAMA_8B_TOKEN * STEP_TOKENS / (8 * PEAK * 1.0), rel=0.02), "steps+shape", 8,
    )  # fmt: skip
    assert rows["sdk"]["gpus_observed"] == 7
