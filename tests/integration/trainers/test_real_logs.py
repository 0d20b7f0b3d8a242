"""What the log reader makes of the output of real trainers, as a user's file would hold it."""

from pathlib import Path

from flopwatch_agent.log_check import read_file
from flopwatch_agent.trainers.rows import Parsed

STEPS = list(range(1, 13))


def read(text: str, tmp_path: Path) -> Parsed:
    log = tmp_path / "run.log"
    log.write_text(text, encoding="utf-8")
    return read_file(log)


def test_the_hf_trainer_with_its_token_counter(train, tmp_path: Path) -> None:
    done = train("hf_train.py", "--tokens", needs="transformers, accelerate")

    parsed = read(done.stdout, tmp_path)
    assert parsed.family == "HF Trainer"
    assert [row.step for row in parsed.steps] == [2, 4, 6, 8, 10, 12]
    assert {row.tokens for row in parsed.steps} == {256}
    assert {row.basis for row in parsed.steps} == {"derived_counter"}
    assert all(row.step_seconds > 0 for row in parsed.steps)


def test_the_hf_trainer_with_its_bar_only(train, tmp_path: Path) -> None:
    done = train("hf_train.py", needs="transformers, accelerate")

    parsed = read(done.stdout, tmp_path)
    assert [row.step for row in parsed.steps] == [2, 4, 6, 8, 10, 12]
    assert {row.tokens for row in parsed.steps} == {None}


def test_trl(train, tmp_path: Path) -> None:
    done = train("trl_train.py", needs="trl, datasets")

    parsed = read(done.stdout, tmp_path)
    assert parsed.family == "TRL"
    assert [row.step for row in parsed.steps] == STEPS[:10]
    assert all(20 <= row.tokens <= 4 * 48 for row in parsed.steps)


def test_litgpt(train, tmp_path: Path) -> None:
    done = train("litgpt_train.py", needs="litgpt.pretrain")

    parsed = read(done.stdout, tmp_path)
    assert parsed.family == "LitGPT"
    assert [row.step for row in parsed.steps] == STEPS
    assert all(row.step_seconds is None for row in parsed.steps)


def test_lightning_s_csv(train, tmp_path: Path) -> None:
    train("lightning_train.py", "--monitor", needs="lightning")

    parsed = read_file(next(tmp_path.rglob("metrics.csv")))
    assert parsed.family == "Lightning"
    assert [row.step for row in parsed.steps] == list(range(12))
    assert [row.step for row in parsed.steps if row.step_seconds is None] == [0]


def test_composer(train, tmp_path: Path) -> None:
    done = train("composer_train.py", "--monitor", needs="composer")

    parsed = read(done.stdout, tmp_path)
    assert parsed.family == "Composer"
    assert [row.step for row in parsed.steps] == STEPS
    assert [row.steps_covered for row in parsed.steps if row.step_seconds is not None] == [3] * 9


def test_a_callback_s_lines_beside_the_trainer_s_are_one_run(train, tmp_path: Path) -> None:
    done = train("hf_train.py", "--callback", needs="transformers, accelerate")

    parsed = read(done.stdout, tmp_path)
    assert parsed.family == "flopwatch SDK"
    assert sum(row.steps_covered for row in parsed.steps) == 12
