"""The callbacks in real trainers on the CPU: what the agent's socket hears of every step, evaluation and save."""

from pathlib import Path

import pytest
from tests.integration.trainers.conftest import told

from flopwatch.wire import Phase, RunFacts, StepRecord

STEPS = list(range(1, 13))


def parts(messages) -> tuple[list[StepRecord], list[Phase], list[RunFacts]]:
    steps = [item.step for item in messages if item.step is not None]
    phases = [item.phase for item in messages if item.phase is not None]
    runs = [item.run for item in messages if item.run is not None]
    return steps, phases, runs


def assert_steps_and_pauses_do_not_overlap(steps: list[StepRecord], phases: list[Phase]) -> None:
    assert all(step.seconds is not None and step.seconds > 0 for step in steps)
    between = steps[-1].end_time_seconds - steps[0].end_time_seconds
    paused = sum(
        phase.end_seconds - phase.begin_seconds
        for phase in phases
        if steps[0].end_time_seconds <= phase.begin_seconds
        and phase.end_seconds <= steps[-1].end_time_seconds
    )
    assert sum(step.seconds for step in steps[1:]) + paused == pytest.approx(between, abs=0.05)


def test_the_hf_trainer_tells_steps_tokens_evaluations_and_saves(train, sdk_socket) -> None:
    done = train("hf_train.py", "--callback", "--tokens", needs="transformers, accelerate")
    assert done.returncode == 0, done.stdout

    messages = told(sdk_socket)
    steps, phases, (run,) = parts(messages)
    assert [step.step for step in steps] == STEPS
    assert {step.tokens for step in steps} == {4 * 2 * 32}
    assert [step.steady for step in steps] == [False] + [True] * 11
    assert [(phase.kind, phase.step) for phase in phases] == [
        ("eval", 6), ("checkpoint", 6), ("eval", 12), ("checkpoint", 12),
    ]  # fmt: skip
    assert_steps_and_pauses_do_not_overlap(steps, phases)
    assert (run.trainer, run.world_size, run.global_batch_size, run.dtype) == ("HF Trainer", 1, 8, "fp32")
    assert run.shape is not None
    assert (run.shape["hidden"], run.shape["vocab"]) == (32, 256)
    assert run.activation_recompute == "none"
    assert messages[0].words.name == "tiny"
    assert "flopwatch" not in done.stdout


def test_the_hf_trainer_without_its_counter_leaves_the_tokens_unknown(train, sdk_socket) -> None:
    done = train("hf_train.py", "--callback", needs="transformers, accelerate")
    assert done.returncode == 0, done.stdout

    steps, _, _ = parts(told(sdk_socket))
    assert {step.tokens for step in steps} == {None}


def test_a_resumed_hf_run_says_from_where(train, sdk_socket, tmp_path: Path) -> None:
    train("hf_train.py", needs="transformers, accelerate")
    (tmp_path / "out" / "checkpoint-12").rename(tmp_path / "done")
    done = train("hf_train.py", "--callback", "--tokens", "--resume", needs="transformers, accelerate")
    assert done.returncode == 0, done.stdout

    steps, _, _ = parts(told(sdk_socket))
    assert [step.step for step in steps] == STEPS[6:]


def test_trl_s_packed_runs_tell_their_sequence_length(train, sdk_socket) -> None:
    done = train("trl_train.py", "--callback", "--packing", needs="trl, datasets")
    assert done.returncode == 0, done.stdout

    steps, phases, (run,) = parts(told(sdk_socket))
    assert [step.step for step in steps] == STEPS[:10]
    assert phases == []
    assert (run.sequence_length, run.global_batch_size) == (48, 4)


def test_without_an_agent_the_callback_s_lines_stand_in_the_log_and_training_goes_on(train) -> None:
    done = train("hf_train.py", "--callback", needs="transformers, accelerate")
    assert done.returncode == 0, done.stdout

    assert 'flopwatch: {"event":"run"' in done.stdout
    assert "12/12" in done.stdout


def test_lightning_tells_optimizer_steps_validations_and_checkpoints(train, sdk_socket) -> None:
    done = train("lightning_train.py", "--callback", needs="lightning")
    assert done.returncode == 0, done.stdout

    steps, phases, (run,) = parts(told(sdk_socket))
    assert [step.step for step in steps] == STEPS
    assert {step.tokens for step in steps} == {2 * 4 * 32}
    assert [(phase.kind, phase.step) for phase in phases] == [
        ("checkpoint", 5), ("eval", 6), ("checkpoint", 10), ("eval", 12),
    ]  # fmt: skip
    assert_steps_and_pauses_do_not_overlap(steps, phases)
    assert (run.trainer, run.world_size, run.global_batch_size, run.dtype) == ("Lightning", 1, 8, "fp32")
    assert run.parameter_count == 256 * 32 + 32 * 256 + 256


def test_composer_tells_batches_tokens_evaluations_and_checkpoints(train, sdk_socket) -> None:
    done = train("composer_train.py", "--callback", needs="composer")
    assert done.returncode == 0, done.stdout

    steps, phases, (run,) = parts(told(sdk_socket))
    assert [step.step for step in steps] == STEPS
    assert {step.tokens for step in steps} == {4 * 32}
    assert [(phase.kind, phase.step) for phase in phases] == [
        ("eval", 6), ("checkpoint", 6), ("eval", 12), ("checkpoint", 12),
    ]  # fmt: skip
    assert_steps_and_pauses_do_not_overlap(steps, phases)
    assert (run.trainer, run.world_size, run.global_batch_size, run.dtype) == ("Composer", 1, 4, "fp32")
    assert run.shape is not None
