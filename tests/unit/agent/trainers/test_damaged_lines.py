"""Lines that a crash, a rotation or two writers damaged: what is left says what it says, and no more."""

import pytest

from flopwatch_agent.trainers.reader import parse_whole


def automodel(step: int) -> str:
    second = 11 * step
    stamp = f"2026-08-10 15:{second // 60:02d}:{second % 60:02d}"
    return f"{stamp} | INFO | root | step {step} | epoch 0 | loss 0.{step} | mem 24.90 GiB | tps 11000.0(1375.0/gpu)"


def test_a_row_behind_a_torn_one_has_its_own_time() -> None:
    lines = [automodel(step) for step in range(1, 7)]
    lines[2:4] = [lines[2][:-12] + lines[3]]
    parsed = parse_whole("\n".join(lines).encode())

    assert [row.step for row in parsed.steps] == [1, 2, 3, 4, 5, 6]
    assert [row.step_seconds for row in parsed.steps[1:]] == [11.0] * 5


def test_a_counter_that_one_line_lost_is_taken_from_the_line_before_it() -> None:
    line = "{{'loss': 1.{0}, 'epoch': 0.{0}, 'step': {0}, 'num_input_tokens_seen': {0}000, 'train_runtime': {1}}}\n"
    log = (
        "".join(line.format(step, 2.5 * step) for step in (1, 2, 3))
        + "{'loss': 1.4, 'epoch': 0.4, 'step': 4}\n"
    )
    parsed = parse_whole((log + line.format(5, 12.5) + line.format(6, 15.0)).encode())

    assert [row.step_seconds for row in parsed.steps] == [2.5, 2.5, 2.5, None, 2.5, 2.5]
    assert [row.tokens for row in parsed.steps] == [1000, 1000, 1000, None, 1000, pytest.approx(1000)]
