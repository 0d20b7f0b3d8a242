"""The load generator itself: what it sends is the wire's, what is acknowledged is stored exactly once."""

import json
from pathlib import Path

import msgspec
import pytest
from tests.bench.load import checking, decoding, rivals, scenario
from tests.bench.load.figures import exactness, figures
from tests.bench.load.fleet import Fleet, Options
from tests.bench.load.scenario import Load

from flopwatch.encoding import encode
from flopwatch.wire import Batch

ROWS = ("gpu_samples", "jobs", "steps", "phases", "gpus", "node_facts")
"""What the wire's classes give fields of their defaults."""


def test_a_batch_of_the_fleet_is_what_an_agent_would_send() -> None:
    for made, _ in zip(Fleet(Options(gpus=20, start_seconds=1.7e9)).batches(), range(40), strict=False):
        batch = msgspec.json.decode(made.body, type=Batch)

        sent, again = json.loads(made.body), json.loads(encode(batch))
        assert {name: again[name] for name in sent if name not in ROWS} == {
            name: sent[name] for name in sent if name not in ROWS
        }
        assert [row | sent["gpu_samples"][0] for row in again["gpu_samples"][:1]] == sent["gpu_samples"][:1]
        assert len(batch.gpu_samples) == made.gpu_rows == (8 if made.node < 2 else 4)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("keep_alive", [True, False], ids=["kept connections", "a connection a batch"])
def test_what_a_small_fleet_was_acknowledged_is_stored_exactly_once(
    tmp_path: Path, keep_alive: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    load = Load(
        gpus=400, seconds=120.0, speed=12.0, warm_seconds=10.0, keep_alive=keep_alive, late_ratio=0.1, repeat_ratio=0.1,
        job_seconds=60.0, hour_after_seconds=150.0,
    )  # fmt: skip
    outcome = scenario.run(load, tmp_path)
    stored = checking.stored(tmp_path / "data", outcome.begin_seconds, outcome.begin_seconds + load.seconds)
    found, known = exactness(outcome, stored), figures(outcome)

    with capsys.disabled():
        print(
            f"\n{known.cpu_milliseconds_a_batch:.2f} CPU-ms a batch, p99 {known.p99_milliseconds:.0f} ms, {found}"
        )
    assert found["exact"]
    assert found["acknowledged"] == 50 * 12
    assert found["late"] > 0
    assert found["repeats"] > 0
    assert stored.gpus_known == 400
    assert stored.closed_samples > 0


@pytest.mark.parametrize("name", rivals.PROGRAMS)
def test_another_database_takes_every_sample_of_the_same_fleet(name: str, tmp_path: Path) -> None:
    if not rivals.is_there(name):
        pytest.skip(f"{name} is not installed")
    load = Load(gpus=64, seconds=60.0, speed=20.0, warm_seconds=10.0, late_ratio=0.0, repeat_ratio=0.0)
    with rivals.running(name, tmp_path / "rival") as rival:
        outcome = scenario.run_against(rival, load)
        size = rival.stored_bytes()

    assert outcome.generator["given_up"] == 0
    assert outcome.generator["acknowledged"] == 8 * 6
    assert size > 0


def test_decoding_by_every_library(capsys: pytest.CaptureFixture[str]) -> None:
    measured = decoding.table()

    with capsys.disabled():
        print()
        for name, value in measured.items():
            print(f"{value:8.1f}  {name}")
    assert decoding.fields_agree()
