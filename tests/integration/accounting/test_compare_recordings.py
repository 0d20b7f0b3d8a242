"""Two recordings, one of each side, compared without a collector."""

import json

import pytest
from tests.integration.accounting.recorded import NodeTape, batches, lease, session, sighting, steps, written

from flopwatch.wire import RunFacts
from flopwatch_collector.compare_command import main

HOUR = 3_600.0
BATCH, LENGTH, PARAMETERS = 64, 4096, 8_000_000_000
HOT = {"kernel_active_ratio": 1.0, "process_count": 1, "power_watts": 650.0}


def tape(name, job, seconds, **facts):
    """An hour of one run on one node."""
    made = NodeTape(name)
    told = {
        "global_batch_size": BATCH,
        "sequence_length": LENGTH,
        "parameter_count": PARAMETERS,
        "dtype": "bf16",
    }
    run = RunFacts(source="log", origin="test", world_size=8, **{**told, **facts})
    sighting(made, job, (0, HOUR), world_size=8, kind="pretrain", run=(run,))
    lease(made, job, made.uuids(), (0, HOUR))
    session(made, job, 0, 0, HOUR, exit_reason="completed")
    steps(made, job, (1, int(HOUR / seconds), 0), seconds, tokens=BATCH * LENGTH)
    made.sample(None, 0, HOUR, job=job, **HOT)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("recordings")
    for name, tapes in {
        "own": [tape("a", "J1", 10.0)],
        "cloud": [tape("b", "J2", 20.0)],
        "both": [tape("a", "J1", 10.0), tape("b", "J2", 20.0)],
        "fp8": [tape("a", "J3", 10.0, dtype="fp8")],
    }.items():
        written(made / f"{name}.jsonl", [batch for each in tapes for batch in batches(each, HOUR)])
    return made


def test_a_trial_run_is_set_beside_an_own_one(folder, capsys):
    files = [str(folder / "own.jsonl"), str(folder / "cloud.jsonl#J2")]

    assert main([*files, "--own-price", "2.0", "--other-price", "3.0", "--json"]) == 0

    fast, slow = json.loads(capsys.readouterr().out)["jobs"]
    assert (fast["step_seconds"]["p50"], slow["step_seconds"]["p50"]) == (10.0, 20.0)
    assert (fast["tokens"], slow["tokens"]) == (360 * BATCH * LENGTH, 180 * BATCH * LENGTH)
    assert (fast["gpu_hours"], slow["gpu_hours"]) == (pytest.approx(8.0), pytest.approx(8.0))
    assert fast["per_trillion_tokens"] == pytest.approx(16.0 / (360 * BATCH * LENGTH) * 1e12)


def test_of_a_recording_with_several_runs_one_is_named(folder, capsys):
    both = folder / "both.jsonl"

    assert main([str(both), str(folder / "cloud.jsonl")]) == 2
    assert "has 2 runs: name one as FILE#RUN; it has J1, J2" in capsys.readouterr().err
    assert main([f"{both}#J1", f"{both}#J2"]) == 0
    assert main([f"{both}#J1", f"{both}#J1"]) == 2


def test_a_narrower_number_format_is_other_work(folder, capsys):
    assert main([str(folder / "own.jsonl"), str(folder / "fp8.jsonl")]) == 1

    assert "dtype differs: bf16 against fp8" in capsys.readouterr().err
