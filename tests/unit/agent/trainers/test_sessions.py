"""Launches, rewinds, duplicates and quoted lines."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from flopwatch_agent.trainers.reader import LogReader, parse_whole
from flopwatch_agent.trainers.rows import Parsed

ARGUMENTS = (
    "------------------------ arguments ------------------------\n"
    "  log_interval .................................... 1\n"
    "  seq_length ...................................... 4096\n"
    "  world_size ...................................... 16\n"
    "-------------------- end of arguments ---------------------\n"
)
FOLDER = Path(__file__).parents[3] / "fixtures" / "trainer_logs"
BEGIN = datetime(2024, 4, 6, 2, 55, tzinfo=timezone.utc)


def iteration(
    step: int,
    *,
    at: int | None = None,
    milliseconds: float = 5500.0,
    batch: int = 128,
    tail: str = "lm loss: 2.0E+00",
) -> str:
    clock = BEGIN + timedelta(seconds=6 * (step if at is None else at))
    return (
        f" [{clock:%Y-%m-%d %H:%M:%S}] iteration {step:8}/     100 | consumed samples: {step * 128:12} | "
        f"elapsed time per iteration (ms): {milliseconds:.1f} | global batch size: {batch:5} | {tail} | "
        "loss scale: 1.0 |\n"
    )


def iterations(first: int, last: int, *, at: int = 0) -> str:
    return "".join(iteration(step, at=step + at) for step in range(first, last + 1))


def keys(parsed: Parsed) -> list[tuple[int, int]]:
    return [(row.session, row.step) for row in parsed.steps]


def test_an_announced_restart_opens_a_session_with_its_first_row() -> None:
    reader = LogReader()
    reader.feed((ARGUMENTS + iterations(1, 10)).encode(), None)
    reader.take()

    reader.feed(
        (
            ARGUMENTS + " > successfully loaded checkpoint from /c at iteration 6\n" + iteration(7, at=30)
        ).encode(),
        None,
    )
    output = reader.take()

    assert [(row.session, row.step) for row in output.steps] == [(1, 7)]
    assert [
        (info.session, info.resumed_from_step, info.lost_steps) for info in output.sessions if info.session
    ] == [(1, 6, 4)]


def test_steps_that_a_later_session_ran_again_are_superseded() -> None:
    parsed = parse_whole((ARGUMENTS + iterations(1, 10) + ARGUMENTS + iterations(7, 12, at=20)).encode())

    assert [row.step for row in parsed.steps if row.superseded] == [7, 8, 9, 10]
    assert keys(parsed)[10:] == [(1, step) for step in range(7, 13)]
    assert [row.steady for row in parsed.steps if row.session == 1] == [False, True, True, True, True, True]


def test_a_rewind_without_any_announcement_needs_a_second_row() -> None:
    reader = LogReader()
    reader.feed((ARGUMENTS + iterations(1, 10) + iteration(7, at=30)).encode(), None)
    before = reader.take()

    reader.feed(iteration(8, at=31).encode(), None)
    after = reader.take()

    assert before.steps[-1].step == 10
    assert [(row.session, row.step) for row in after.steps] == [(1, 7), (1, 8)]


def test_a_quoted_old_row_opens_no_session() -> None:
    old = iteration(5000, at=-9_000_000) + iteration(5001, at=-8_999_999)
    parsed = parse_whole(
        (ARGUMENTS + iterations(1, 5) + old + iteration(3, at=-9_000_000) + iterations(6, 8)).encode()
    )

    assert keys(parsed) == [(0, step) for step in range(1, 9)]
    assert [found.code for found in parsed.findings] == ["foreign_rows"]


def test_an_error_text_that_quotes_a_row_is_no_row() -> None:
    quoted = "E: last line was '" + iteration(77).strip() + "'\n"
    parsed = parse_whole((ARGUMENTS + iteration(1) + quoted + iteration(2)).encode())

    assert keys(parsed) == [(0, 1), (0, 2)]


def test_ranks_that_print_the_same_step_give_one_row() -> None:
    lines = "".join(f"[rank{rank}]:{iteration(step)}" for step in (1, 2, 3) for rank in (0, 1, 2))
    late = f"[rank2]:{iteration(2)}"
    parsed = parse_whole((ARGUMENTS + lines + late + f"[rank0]:{iteration(4)}").encode())

    assert keys(parsed) == [(0, 1), (0, 2), (0, 3), (0, 4)]


def test_a_batch_that_ramps_up_counts_the_tokens_of_its_line() -> None:
    parsed = parse_whole((ARGUMENTS + iteration(1, batch=32) + iteration(2, batch=64)).encode())

    assert [row.tokens for row in parsed.steps] == [32 * 4096, 64 * 4096]


def test_a_loss_that_is_no_number_keeps_the_time() -> None:
    tails = ("lm loss: 2.0E+00", "lm loss: nan", "lm loss: inf", "number of skipped iterations: 1")
    parsed = parse_whole(
        (ARGUMENTS + "".join(iteration(n, tail=tail) for n, tail in enumerate(tails, 1))).encode()
    )

    assert [row.loss for row in parsed.steps] == [2.0, "nan", "inf", None]
    assert [row.step_seconds for row in parsed.steps] == [5.5] * 4
    assert parsed.steps[3].skipped_steps == 1


def test_a_torn_line_is_left_out_and_its_time_is_not_invented() -> None:
    parsed = parse_whole(
        (ARGUMENTS + iteration(1) + iteration(2)[:90] + iteration(3) + iteration(4)).encode()
    )

    assert [(row.step, row.step_seconds, row.steps_covered) for row in parsed.steps] == [
        (1, 5.5, 1),
        (3, 5.5, 1),
        (4, 5.5, 1),
    ]


def test_a_shape_that_changed_at_a_restart_belongs_to_its_session() -> None:
    second = ARGUMENTS.replace("4096", "8192")
    parsed = parse_whole((ARGUMENTS + iterations(1, 4) + second + iterations(4, 6, at=9)).encode())

    assert [facts.sequence_length for facts in parsed.runs] == [4096, 8192]
    assert parsed.steps[-1].tokens == 128 * 8192


def test_a_row_after_an_evaluation_is_unsteady_only_when_it_is_slow() -> None:
    mark = " validation loss at iteration 5 | lm loss value: 1.9E+00 | lm loss PPL: 6.9E+00 |\n"
    slow = iteration(6, milliseconds=9000.0)
    unsteady = parse_whole((ARGUMENTS + iterations(1, 5) + mark + slow).encode())
    steady = parse_whole((ARGUMENTS + iterations(1, 5) + mark + iteration(6)).encode())

    assert unsteady.steps[-1].why_not_steady == "interval contains an evaluation"
    assert steady.steps[-1].steady
    assert [(phase.kind, phase.after_step) for phase in steady.phases] == [("eval", 5)]


def test_a_resumed_hf_run_takes_tokens_from_the_counter_that_ran_on() -> None:
    header = "***** Running training *****\n  Num Epochs = 1\n  Total optimization steps = 100\n"
    line = (
        "{{'loss': '1.5', 'learning_rate': '1e-05', 'epoch': '{}', 'num_input_tokens_seen': {}, "
        "'train_runtime': '{}'}}\n"
    )
    first = header + "".join(line.format(step / 100, step * 1000, step) for step in (10, 20, 30))
    second = header + "  Continuing training from global step 20\n" + line.format(0.3, 31_500, 11)
    parsed = parse_whole((first + second).encode())

    assert keys(parsed) == [(0, 10), (0, 20), (0, 30), (1, 30)]
    assert [row.superseded for row in parsed.steps] == [False, False, True, False]
    assert parsed.steps[-1].tokens == 1150.0
    assert parsed.steps[-1].step_seconds == 1.1


def test_a_time_in_the_wrong_unit_is_corrected_by_the_time_stamps_and_said() -> None:
    lines = "".join(iteration(step, milliseconds=6.0) for step in range(1, 16))
    parsed = parse_whole((ARGUMENTS + lines).encode())

    assert [row.step_seconds for row in parsed.steps] == [6.0] * 15
    assert {row.basis for row in parsed.steps} == {"corrected"}
    assert parsed.steps[0].printed_step_seconds == 0.006
    assert [(found.code, found.values["factor"]) for found in parsed.findings] == [("unit_mismatch", 1000.0)]


def test_times_that_disagree_by_no_known_factor_are_left_and_said() -> None:
    lines = "".join(iteration(step, milliseconds=2_600.0) for step in range(1, 16))
    parsed = parse_whole((ARGUMENTS + lines).encode())

    assert {row.step_seconds for row in parsed.steps} == {2.6}
    assert [found.code for found in parsed.findings] == ["estimators_differ"]


def test_arrival_is_the_time_of_a_step_only_while_lines_come_singly() -> None:
    line = "Step {} | loss:1.5 lr:2e-05 tokens_per_second_per_gpu:2119.8 grad_norm:1.0\n"
    reader = LogReader(kind="stdout")
    for step, arrived in ((1, 10.0), (2, 14.0), (3, 18.5), (4, 18.5), (5, 30.0)):
        reader.feed(line.format(step).encode(), arrived)

    rows = reader.take().steps
    assert [(row.step_seconds, row.basis) for row in rows] == [
        (None, "none"), (4.0, "arrival"), (4.5, "arrival"), (None, "none"), (None, "none"),
    ]  # fmt: skip


def test_a_resumed_bar_counts_from_the_step_it_went_on_from() -> None:
    header = "***** Running training *****\n  Num Epochs = 1\n  Total optimization steps = 60\n"
    row = "\r{{'loss': 1.5, 'learning_rate': 1e-05, 'epoch': {}}}\n"

    def bar(step: int, seconds: int) -> str:
        return f"\r  5%|#         | {step}/60 [00:{seconds:02}<01:00,  3.4s/it]"

    first = header + bar(0, 0) + bar(40, 40) + row.format(0.67) + bar(50, 50) + row.format(0.83)
    again = (
        header
        + "  Continuing training from global step 40\n"
        + bar(0, 0)
        + bar(41, 4)
        + bar(45, 18)
        + row.format(0.75)
    )
    parsed = parse_whole((first + again).encode())

    assert keys(parsed) == [(0, 40), (0, 50), (1, 45)]
    assert [row.step_seconds for row in parsed.steps] == [1.0, 1.0, 3.6]


def test_a_pause_lasts_from_the_step_before_to_the_begin_of_the_next() -> None:
    mark = " validation loss at iteration 5 | lm loss value: 1.9E+00 | lm loss PPL: 6.9E+00 |\n"
    parsed = parse_whole((ARGUMENTS + iterations(1, 5) + mark + iteration(6, at=20)).encode())

    (phase,) = parsed.phases
    assert phase.begin_time_seconds == BEGIN.timestamp() + 30
    assert phase.end_time_seconds == BEGIN.timestamp() + 120 - 5.5


def test_a_checkpoint_that_says_how_long_it_took_is_committed_and_timed() -> None:
    log = (FOLDER / "torchtitan_2025_color.log").read_bytes()

    phases = [(mark.kind, mark.after_step, mark.seconds, mark.committed) for mark in parse_whole(log).phases]

    assert phases == [("eval", 60, pytest.approx(21.4), None), ("checkpoint", 60, 4.0, True)]


def test_ranks_that_print_late_and_without_a_label_open_no_session() -> None:
    order = (1, 1, 2, 3, 2, 3, 4, 5, 4, 6, 5, 6)
    parsed = parse_whole((ARGUMENTS + "".join(iteration(step) for step in order)).encode())

    assert keys(parsed) == [(0, step) for step in range(1, 7)]


def test_a_resume_from_the_last_printed_step_is_a_session_that_lost_nothing() -> None:
    log = (
        iterations(1, 20)
        + "RuntimeError: NCCL error\n  successfully loaded checkpoint from /ckpt [ t 0/1, p 0/1 ] at iteration 20\n"
        + iterations(21, 30, at=100)
    )
    parsed = parse_whole(log.encode())

    assert [row.session for row in parsed.steps] == [0] * 20 + [1] * 10
    assert [(item.resumed_from_step, item.lost_steps) for item in parsed.sessions] == [(None, None), (20, 0)]
    assert not any(row.superseded for row in parsed.steps)


def test_another_rank_that_tells_late_of_the_resume_opens_no_session() -> None:
    late = "  successfully loaded checkpoint from /ckpt at iteration 20\n"
    log = iterations(1, 20) + late + iterations(21, 25, at=100) + late + iterations(26, 30, at=100)

    assert {row.session for row in parse_whole(log.encode()).steps} == {0, 1}


def test_each_launch_keeps_its_own_world_size() -> None:
    launch = "using world size: {0}, data-parallel size: {0}, tensor-model-parallel size: 1\n" + ARGUMENTS
    log = (
        launch.format(16)
        + iterations(1, 10)
        + launch.format(8).replace(" 16\n", " 8\n")
        + " loading checkpoint from /ckpt at iteration 8\n"
        + iterations(9, 14, at=100)
    )
    parsed = parse_whole(log.encode())

    assert [run.world_size for run in parsed.runs] == [16, 8]
    assert [row.step for row in parsed.steps if row.superseded] == [9, 10]


def test_torchtitan_names_each_launch_before_its_first_step() -> None:
    begin = "[titan] 2025-07-09 10:0{}:00,123 - root - INFO - Starting job: Llama 3 8B training\n"
    line = "[titan] 2025-07-09 10:0{}:{},123 - root - INFO - step: {}  loss:  7.1  memory: 40GiB(50%)  tps: 7,000\n"
    log = "".join(
        begin.format(launch)
        + "".join(line.format(launch, 10 + place, step) for place, step in enumerate(steps))
        for launch, steps in ((1, (1, 10, 20)), (3, (30, 40)), (5, (50, 60)))
    )

    assert [row.session for row in parse_whole(log.encode()).steps] == [0, 0, 0, 1, 1, 2, 2]


def test_a_row_of_step_zero_is_the_first_of_its_launch() -> None:
    rows = parse_whole(
        "".join(f'{{"step": {n}, "loss": 2.5, "step_time_s": 0.5}}\n' for n in range(3)).encode()
    ).steps

    assert [(row.step, row.steady) for row in rows] == [(0, False), (1, True), (2, True)]


def test_rows_after_a_corrected_unit_are_as_steady_as_those_before() -> None:
    parsed = parse_whole("".join(iteration(step, milliseconds=6.0) for step in range(1, 17)).encode())

    assert [row.step_seconds for row in parsed.steps] == [pytest.approx(6.0)] * 16
    assert [row.steady for row in parsed.steps] == [False] + [True] * 15
    assert [finding.code for finding in parsed.findings] == ["unit_mismatch"]


def micro(number: int, step: int, *, flag: str = "") -> str:
    loss = f"loss train: 2.{number:03}, val: n/a"
    return f"Epoch 1 | iter {number} step {step} | {loss} | iter time: {100 + number}.00 ms{flag}\n"


def test_micro_batches_that_are_all_printed_add_up_to_steps() -> None:
    log = "".join(micro(n, n // 4, flag=" (step)" if n % 4 == 0 else "") for n in range(1, 13))
    rows = parse_whole(log.encode()).steps

    assert [(row.step, row.basis) for row in rows] == [(n, "sum_of_micro_steps") for n in (1, 2, 3)]
    assert [row.step_seconds for row in rows] == [pytest.approx(value) for value in (0.410, 0.426, 0.442)]
    assert [row.extras["micro_steps"] for row in rows] == [4, 4, 4]


def test_micro_batches_of_which_some_are_missing_give_no_time() -> None:
    log = "".join(micro(n, n // 4, flag=" (step)" if n % 4 == 0 else "") for n in range(1, 13) if n != 6)
    rows = parse_whole(log.encode()).steps

    assert [(row.step, row.step_seconds is None) for row in rows] == [(1, False), (2, True), (3, False)]


def test_micro_batches_counted_from_zero_are_as_many() -> None:
    line = "iter {} step {}: loss 2.5, iter time: 100.00ms{}\n"
    log = "".join(line.format(n, (n + 1) // 2, " (optimizer.step)" if n % 2 else "") for n in range(6))
    parsed = parse_whole(log.encode())

    assert [(row.step, row.step_seconds) for row in parsed.steps] == [
        (n, pytest.approx(0.2)) for n in (1, 2, 3)
    ]
    assert parsed.facts[0]["gradient_accumulation_steps"] == 2


def test_a_log_without_steps_bar_or_head_numbers_its_lines_and_says_so() -> None:
    lines = "".join(
        f"{{'loss': 1.{n}, 'learning_rate': 1e-05, 'epoch': {0.5 + n / 100:.2f}}}\n" for n in range(5)
    )
    parsed = parse_whole(lines.encode())

    assert [(row.session, row.step, row.seconds) for row in parsed.steps] == [
        (0, n, None) for n in (1, 2, 3, 4, 5)
    ]
    assert [finding.code for finding in parsed.findings] == ["steps_unknown", "step_time_unknown"]


def megatron_row(step: int, second: int, ms: float, *, stamped: bool) -> str:
    stamp = f" [2024-05-01 10:{second // 60:02d}:{second % 60:02d}]" if stamped else ""
    return f"{stamp} iteration {step:8d}/ 1000 | elapsed time per iteration (ms): {ms} | lm loss: 2.5E+00 |\n"


@pytest.mark.parametrize("stamped", [True, False])
def test_lines_that_a_rotation_or_a_shipper_brings_once_more_are_no_new_launch(stamped: bool) -> None:
    header = "------------------------ arguments ------------------------\n  seq_length ... 4096\n"
    lines = [megatron_row(step, 6 * step, 6000.0 + step, stamped=stamped) for step in range(1, 31)]
    parsed = parse_whole((header + "".join(lines[:20]) + header + "".join(lines[4:])).encode())

    assert [(row.session, row.step) for row in parsed.steps] == [(0, step) for step in range(1, 31)]


def test_the_same_steps_at_another_time_are_a_new_launch_though_their_losses_are_the_same() -> None:
    before = "".join(megatron_row(step, 6 * step, 6000.5, stamped=True) for step in range(1, 21))
    again = "".join(megatron_row(step, 600 + 6 * step, 6000.5, stamped=True) for step in range(11, 16))
    parsed = parse_whole((before + again).encode())

    assert [row.step for row in parsed.steps if row.session == 1] == [11, 12, 13, 14, 15]
    assert [row.step for row in parsed.steps if row.superseded] == list(range(11, 21))


def test_a_time_since_the_line_before_is_of_the_trainers_interval_where_a_line_was_lost() -> None:
    line = "[    INFO] - loss: 9.5, learning_rate: 1e-05, global_step: {}, interval_runtime: 25.0\n"
    parsed = parse_whole("".join(line.format(step) for step in (10, 20, 30, 40, 60, 70)).encode())

    assert [row.step_seconds for row in parsed.steps] == [2.5] * 6
    assert [row.steps_covered for row in parsed.steps] == [10] * 6


def test_a_lost_line_shows_in_epochs_of_more_than_two_decimals() -> None:
    line = "{{'loss': '0.0{0}', 'step_time': '37.5', 'epoch': '{1:g}'}}\n"
    parsed = parse_whole("".join(line.format(step, step / 200) for step in (1, 3, 4, 5, 6, 9, 10)).encode())

    assert [row.step for row in parsed.steps] == [1, 3, 4, 5, 6, 9, 10]


def test_a_dict_torn_out_of_two_is_no_row() -> None:
    line = "{{'loss': '1.{0}', 'grad_norm': '0.7', 'epoch': '0.{0}', 'train_runtime': '{0}0'}}\n"
    torn = "{'loss': '1.3', 'grad_norm': '0.7', 'epoch': '0.3', 'num_inp, 'epoch': '0.4', 'train_runtime': '40'}\n"
    parsed = parse_whole((line.format(1) + line.format(2) + torn + line.format(5)).encode())

    assert [row.loss for row in parsed.steps] == [1.1, 1.2, 1.5]
