"""``flopwatch job`` against a collector's API on a real port."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.collector.batches import batch, slurm
from tests.integration.collector.serving import Client, Front, front, serving

from flopwatch import cli
from flopwatch_collector.compute.runs import join

CONFIG = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 1000,
}  # fmt: skip


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Front]:
    with front(tmp_path / "data") as made:
        yield made


@pytest.fixture
def client(collector: Front, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Client]:
    with serving(collector.app) as asked:
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("FLOPWATCH_COLLECTOR_URL", f"http://127.0.0.1:{asked.port}")
        now = time.time()
        asked.push(batch("n1", now, jobs=(slurm("77", "a", name="llm"), slurm("78", "b", name="llm"))))
        yield asked


def job(collector: Front, scheduler_job_id: str = "77"):
    found = collector.directory.state().jobs.values()
    return next(one for one in found if one.scheduler_job_id == scheduler_job_id)


def test_set_and_show_and_unset(
    collector: Front, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(CONFIG))

    options = [
        "--model",
        str(config),
        "--target",
        "45%",
        "--kind",
        "pretrain",
        "--gpus",
        "8",
        "--parameters",
        "7B",
    ]
    assert (
        cli.main(["job", "set", "77", *options, "--global-batch", "4", "--seq-len", "128", "--name", "new"])
        == 0
    )
    run = join(job(collector).runs)
    assert (run.world_size, run.step_tokens, run.parameter_count) == (8, 512.0, 7_000_000_000)
    assert (run.shape or {})["hidden"] == 64
    assert (job(collector).name, job(collector).target_ratio) == ("new", 0.45)
    capsys.readouterr()

    assert cli.main(["job", "show", job(collector).job_id]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"job {job(collector).job_id}"
    assert any(line.startswith("  name               new  (declared, 0 min ago)") for line in shown)
    assert any("not used: llm  (scheduler" in line for line in shown)

    assert cli.main(["job", "unset", "new", "gpus", "global-batch", "--json"]) == 0
    left = json.loads(capsys.readouterr().out)["facts"]
    assert {entry["fact"] for entry in left if entry["declared"]} == {
        "model", "name", "kind", "mfu_target_ratio", "parameter_count", "sequence_length",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["set", "77"], 2, "--global-batch"),
        (["set", "77", "--model", "llama-9"], 2, "llama-3-8b"),
        (["set", "77", "--dtype", "int3"], 1, "dtype is 'int3'; allowed: "),
        (["show", "99"], 1, "there is no job '99'"),
        (["show", "llm"], 1, "2 jobs have the name 'llm'"),
        (["show", "77", "--url", "http://127.0.0.1:1"], 1, "does not answer"),
        (["show", "77", "--url", "ftp://x"], 2, "allowed: an address such as"),
    ],
)
def test_wrong_use_is_told_with_what_is_allowed(
    client: Client, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, words: str
) -> None:
    assert cli.main(["job", *arguments]) == status
    assert words in capsys.readouterr().err


def test_a_shape_that_is_not_understood_names_its_field(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = tmp_path / "shape.json"
    shape.write_text(json.dumps({"hidden": 64, "n_layers": 2, "n_heads": 0, "vocab": 10, "gated_mlp": True}))

    assert cli.main(["job", "set", "77", "--model", str(shape)]) == 1
    assert "model.n_heads is 0; allowed: " in capsys.readouterr().err


def test_the_token_is_read_from_a_file_or_the_environment(
    collector: Front, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(collector.tokens.create("operator", "ada")[1] + "\n")

    assert cli.main(["job", "set", "77", "--gpus", "8"]) == 1
    assert cli.main(["job", "set", "77", "--gpus", "8", "--token-file", str(file)]) == 0
    monkeypatch.setenv("FLOPWATCH_TOKEN_FILE", str(file))
    assert cli.main(["job", "set", "78", "--gpus", "16"]) == 0
    assert join(job(collector, "78").runs).world_size == 16
