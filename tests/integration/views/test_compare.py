"""Two runs of the same work, compared over HTTP as the command does it, and the goodput of one."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.fixtures.listening import Server
from tests.integration.views.site import GPUS_A_NODE, MIDNIGHT, PARAMETERS, PEAK, Site, gpu_name, job_ref

from flopwatch import goodput_command
from flopwatch.wire import StepRecord
from flopwatch_collector.compare_command import main

BATCH, LENGTH = 64, 4096
TOKENS = BATCH * LENGTH


def work(node: str, number: int, **facts: Any) -> Any:
    """A run of eight GPUs of a node whose facts its log tells."""
    own = job_ref()
    (run,) = own.run
    gpus = tuple(gpu_name(node, index) for index in range(GPUS_A_NODE))
    known = replace(run, **{"global_batch_size": BATCH, "sequence_length": LENGTH, **facts})
    return replace(
        own, ref=f"slurm:{number}", scheduler_job_id=str(number), name=f"run-{number}", gpus=gpus, leased_gpus=gpus,
        run=(known,),
    )  # fmt: skip


def train(site: Site, node: str, job: Any, step_seconds: float, loss: float) -> None:
    """An hour of steps; the loss falls by 0.001 a step."""
    steps = [
        StepRecord(
            job=job.ref,
            source="log",
            source_id=f"log-{job.ref}",
            step=number,
            end_time_seconds=MIDNIGHT + number * step_seconds,
            seconds=step_seconds,
            tokens=TOKENS,
            loss=loss - 0.001 * number,
            rank=0,
        )
        for number in range(1, int(3_600 / step_seconds) + 1)
    ]
    busy = {"kernel_active_ratio": 0.95, "tensor_active_ratio": 0.5, "power_watts": 600.0, "process_count": 1}
    site.push(node, MIDNIGHT, 3_600.0, job=job, steps=steps, samples=busy)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    site = Site(tmp_path_factory.mktemp("compare"))
    train(site, "n1", work("n1", 1), 10.0, 3.0)
    train(site, "n2", work("n2", 2), 20.0, 3.1)
    train(site, "n3", work("n3", 3, sequence_length=8192), 20.0, 3.1)
    site.settle()
    running = Server(site.running.app).start()
    yield running
    running.stop()
    site.close()


def test_cost_speed_and_loss_of_both(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    options = [
        "run-1",
        "run-2",
        "--collector",
        server.url,
        "--own-price",
        "2.0",
        "--other-price",
        "3.0",
        "--json",
    ]

    assert main(options) == 0

    made = json.loads(capsys.readouterr().out)
    fast, slow = made["jobs"]
    assert [job["step_seconds"]["p50"] for job in (fast, slow)] == [10.0, 20.0]
    assert (fast["tokens"], slow["tokens"]) == (360 * TOKENS, 180 * TOKENS)
    flops = 6 * PARAMETERS * TOKENS
    assert fast["step_mfu"] == pytest.approx(flops / (10.0 * GPUS_A_NODE * PEAK), rel=1e-6)
    hours = fast["gpu_hours"]
    assert fast["cost"] == pytest.approx(2.0 * hours)
    assert fast["per_trillion_tokens"] == pytest.approx(2.0 * hours / (360 * TOKENS) * 1e12)
    assert fast["per_useful_eflop"] == pytest.approx(2.0 * hours / (360 * flops) * 1e18, rel=1e-6)
    assert made["efficiency_ratio"] == pytest.approx(2.0 * fast["goodput"] / slow["goodput"], rel=1e-6)
    assert made["cheaper"] == fast["job_id"]
    # At 180 steps: 3.0 - 0.18 against 3.1 - 0.18.
    assert made["loss_at_equal_tokens"]["tokens"] == 180 * TOKENS
    assert made["loss_at_equal_tokens"]["losses"] == pytest.approx([2.82, 2.92])


def test_for_people_it_ends_with_what_to_write_into_the_cost_file(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run-1", "run-2", "--collector", server.url]) == 0

    text = capsys.readouterr().out
    assert 'cloud_basis = "measured"' in text
    assert "unknown" in text.split("a trillion tokens")[1].split("\n")[0]


def test_unlike_runs_are_refused_with_what_differs(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run-1", "run-3", "--collector", server.url]) == 1

    assert "sequence_length differs: 4096 against 8192" in capsys.readouterr().err


def test_a_run_is_not_compared_with_itself(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run-1", "1", "--collector", server.url]) == 2

    assert "allowed: two different ones" in capsys.readouterr().err


def test_a_run_that_is_not_there_is_named(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run-1", "run-9", "--collector", server.url]) == 1

    assert "there is no job 'run-9'" in capsys.readouterr().err


def test_goodput_of_a_run_is_asked_of_the_collector(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    status = goodput_command.main(["job", "run-1", "--url", server.url, "--last", "1d", "--json"])
    found = json.loads(capsys.readouterr().out)

    assert status == 0
    assert found["job_id"].startswith("1-")
    # One step after the other, nothing saved, nothing broken.
    assert (found["ettr_ratio"], found["interruptions"], found["lost_gpu_milliseconds"]) == (1.0, [], 0)
    assert found["checkpointing"]["saves"] == 0
    assert found["mtbf_seconds"] is None


def test_goodput_of_all_runs_together_is_asked_of_the_collector(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    status = goodput_command.main(["fleet", "--url", server.url, "--last", "1d"])
    lines = capsys.readouterr().out.splitlines()

    assert status == 0
    assert lines[0].split() == ["share", "of", "all", "run", "time", "100.00%"]
    assert lines[1].split() == ["ETTR", "100.00%"]
    assert goodput_command.main(["fleet", "--url", server.url, "--cluster", "none"]) == 1
    assert "no run reported anything" in capsys.readouterr().err
