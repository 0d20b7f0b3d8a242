"""What trainers' own timers, bars and reports give, and what they leave unknown."""

# ruff: noqa: E501, ISC004 - log lines are as long as they are

import pytest

from flopwatch_agent.trainers.reader import LogReader, parse_whole
from flopwatch_agent.trainers.rows import Parsed


def rows(parsed: Parsed) -> list[tuple[int, float | None, str]]:
    return [(row.step, row.step_seconds, row.basis) for row in parsed.steps]


def deepspeed(step: int, second: float, timer: str) -> str:
    stamp = f"2023-03-01 10:00:{second:06.3f}".replace(".", ",")
    return (
        f"[{stamp}] [INFO] [logging.py:60:log_dist] [Rank 0] step={step}, skipped=0, lr=[0.001], mom=[(0.9, 0.99)]\n"
        f"[{stamp}] [INFO] [timer.py:157:stop] {timer}\n"
    )


def test_deepspeeds_running_mean_is_no_time_of_a_step_but_its_time_stamps_are() -> None:
    lines = [deepspeed(10 * n, 4.0 * n, f"0/{10 * n}, SamplesPerSec=66.{n}") for n in range(1, 7)]
    parsed = parse_whole("".join(lines).encode())

    assert rows(parsed) == [
        (10, None, "none"), (20, None, "none"), (30, None, "none"),
        (40, 0.4, "derived_timestamps"), (50, 0.4, "derived_timestamps"), (60, 0.4, "derived_timestamps"),
    ]  # fmt: skip
    assert [row.steady for row in parsed.steps[3:]] == [True, True, True]


def test_deepspeeds_timer_that_counts_steps_after_a_slash_gives_the_time_of_the_batch() -> None:
    config = "[2023-03-01 10:00:00,000] [INFO] [config.py:1022:print]   train_batch_size ............. 64\n"
    lines = [
        deepspeed(
            n, 2.0 * n, f"0/{n}, RunningAvgSamplesPerSec=30.0, CurrSamplesPerSec=32.0, MemAllocated=1.5GB"
        )
        for n in (1, 2, 3)
    ]
    parsed = parse_whole((config + "".join(lines)).encode())

    assert rows(parsed) == [(n, 2.0, "derived_samples") for n in (1, 2, 3)]


def test_nemo_1_numbers_its_steps_from_zero() -> None:
    line = (
        "Epoch 0: :  {n}%|# | {n}/1000 [00:10<10:00, reduced_train_loss=9.{n}, global_step={n}.0,"
        " consumed_samples={c}.0, train_step_timing in s=1.5]\r"
    )
    parsed = parse_whole("".join(line.format(n=n, c=8 * n) for n in range(4)).encode())

    assert rows(parsed) == [(n, 1.5, "printed") for n in range(4)]
    assert [row.steady for row in parsed.steps] == [False, True, True, True]


def test_automodels_mfu_is_kept_as_it_is_printed() -> None:
    line = "2025-11-01 10:00:0{n} | INFO | step {n} | epoch 0 | loss 2.5 | grad_norm 1.0 | lr 1e-05 | mem 20.00 GiB | tps 8000.00(1000.00/gpu) | mfu {m}% | num_label_tokens 900\n"
    parsed = parse_whole("".join(line.format(n=n, m=40 + n) for n in range(3)).encode())

    assert [row.mfu for row in parsed.steps] == pytest.approx([0.40, 0.41, 0.42])
    assert rows(parsed)[1:] == [(1, 1.0, "derived_timestamps"), (2, 1.0, "derived_timestamps")]


def test_a_bar_that_moves_before_its_description_gives_the_step_it_has_reached() -> None:
    before = "1|{last}|Loss: 5.{last}:  40%|####      | {n}/10 [00:{s}<00:10,  2.50s/it]\r"
    after = "1|{n}|Loss: 5.{n}:  40%|####      | {n}/10 [00:{s}<00:10,  2.50s/it]\r"
    drawings = [
        form.format(n=n, last=n - 1, s=f"{5 * n:02d}") for n in range(1, 11) for form in (before, after)
    ]
    parsed = parse_whole("".join(drawings).encode())

    assert parsed.family == "torchtune"
    assert [(row.step, row.loss) for row in parsed.steps] == [(5, 5.5), (10, 5.10)]
    assert parsed.steps[1].step_seconds == 5.0


def test_openrlhfs_bar_of_micro_batches_gives_no_step_and_says_so() -> None:
    line = "Train step of epoch 0: {n:3d}%|#   | {n}/100 [{m:02d}:00<01:00, 60.0s/it, gpt_loss=1.2, loss_mean=1.3, lr=1e-5]\r"
    parsed = parse_whole("".join(line.format(n=n, m=n) for n in range(1, 31)).encode())

    assert parsed.steps == ()
    assert [(finding.code, "micro batches" in finding.text) for finding in parsed.findings] == [
        ("step_time_unknown", True)
    ]


def test_openrlhf_without_a_timing_keeps_its_steps_and_names_what_is_missing() -> None:
    line = "(PPOTrainer pid=12) 2025-08-01 10:00:0{n}.000 | INFO | Global step {n}: {{'policy_loss': 0.{n}, 'reward': 0.5}}\n"
    parsed = parse_whole("".join(line.format(n=n) for n in range(1, 4)).encode())

    assert rows(parsed) == [(n, None, "none") for n in (1, 2, 3)]
    assert any(finding.code == "step_time_unknown" for finding in parsed.findings)


def nemo_rl(epochs: int, steps: int, *, headed: bool = True) -> str:
    text = ""
    for epoch in range(1, epochs + 1):
        text += f"\n{'=' * 25} Epoch {epoch}/{epochs} {'=' * 25}\n" if headed else ""
        for step in range(1, steps + 1):
            text += (
                f"\n{'=' * 25} Step {step}/{steps} {'=' * 25}\n▶ Preparing batch...\n▶ Training policy...\n"
                f"\n📊 Training Results:\n  • Loss: 0.{epoch}{step}\n  • Avg Reward: 0.2500\n"
                f"\n⏱️  Timing:\n  • Total step time: {40 + step}.25s\n  • policy_training: 10.00s (24.0%)\n"
            )
    return text


def test_nemo_rls_steps_go_on_over_its_epochs() -> None:
    parsed = parse_whole(nemo_rl(2, 2).encode())

    assert parsed.family == "NeMo-RL"
    assert [(row.step, row.step_seconds, row.loss) for row in parsed.steps] == [
        (1, 41.25, 0.11), (2, 42.25, 0.12), (3, 41.25, 0.21), (4, 42.25, 0.22),
    ]  # fmt: skip


def test_nemo_rl_without_epochs_counts_its_steps() -> None:
    parsed = parse_whole(nemo_rl(1, 3, headed=False).encode())

    assert [row.step for row in parsed.steps] == [1, 2, 3]


WRAPPED = (
    "[10:00:0{n}] INFO     step:  {n}  loss:  7.1  grad_norm:  0.5  memory: 10.00GiB(12.00%)   train.py:12\n"
    "                    tps: 1,000  tflops: 10.0  mfu: 3.1%\n"
)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_a_row_that_was_broken_at_the_terminals_width_is_read_whole(size: int) -> None:
    data = "".join(WRAPPED.format(n=n) for n in range(1, 5)).encode()
    reader = LogReader()
    for place in range(0, len(data), size):
        reader.feed(data[place : place + size], None)
    reader.finish()
    parsed = reader.everything()

    assert [(row.step, row.mfu, row.tokens_per_second_per_gpu) for row in parsed.steps] == [
        (n, pytest.approx(0.031), 1000.0) for n in range(1, 5)
    ]


def test_an_indented_line_of_another_kind_completes_no_row() -> None:
    line = "[10:00:0{n}] INFO     step:  {n}  loss:  7.1  grad_norm:  0.5\n                    checkpoint saved\n"
    parsed = parse_whole("".join(line.format(n=n) for n in range(1, 5)).encode())

    assert parsed.steps == ()


def test_the_first_short_line_of_a_live_log_is_read_at_once() -> None:
    reader = LogReader()
    reader.feed(b"iter 1: loss 2.5, time 250.00ms, mfu 4%\n", 100.0)

    assert [row.step for row in reader.take().steps] == [1]


def test_a_row_inside_a_dict_that_stays_open_is_read_when_it_is_printed() -> None:
    reader = LogReader(kind="stdout")
    reader.feed(b"iter 1: loss 2.5, time 250.00ms, mfu 40.00%\n{'loss': {\n", 1.0)
    reader.feed(b"iter 2: loss 2.5, time 250.00ms, mfu 40.00%\n}}\n", 2.0)

    assert [row.step for row in reader.take().steps] == [1, 2]


def test_lightnings_bar_tells_the_loss_of_the_step_it_has_reached() -> None:
    line = "Epoch 0:  {n}%|#| {n}/1000 [00:{s:02d}<10:00,  0.33it/s, v_num=0, train_loss_step=2.{n}, train_loss_epoch=3.1]\r"
    parsed = parse_whole("".join(line.format(n=n, s=3 * n) for n in range(1, 16)).encode())

    assert [(row.step, row.loss) for row in parsed.steps] == [(5, 2.5), (10, 2.10), (15, 2.15)]
    assert [row.step_seconds for row in parsed.steps[1:]] == [3.0, 3.0]


LAUNCHED = {
    "Megatron-LM under kubectl and torchrun, a loss that is no number": (
        "2025-11-02T10:00:0{n}.120Z [pod/a-0/pytorch] [default7]: [2025-11-02 10:00:0{n}] iteration {n}/ 100 | consumed samples: 8"
        " | elapsed time per iteration (ms): 2000.0 | learning rate: 1E-05 | global batch size: 8 | lm loss: nan | loss scale: 1.0 |\n",
        (2, 2.0, "nan"),
    ),
    "torchtitan in colours under torchrun": (
        "\x1b[36m[rank0]:[titan] 2026-02-03 10:00:0{n},123 - root - INFO - \x1b[31mstep:  {n}  \x1b[32mloss: 12.{n}"
        "  \x1b[38;2;180;60;0mgrad_norm: 1.2  \x1b[34mtps: 8,123  \x1b[36mtflops: 400.12  \x1b[35mmfu: 40.46%\x1b[39m\n",
        (2, 1.0, 12.2),
    ),
    "NeMo 2 under nemo-run": (
        "nemo_run/0 [default0]:Training epoch 0, iteration {n}/99 | lr: 3e-05 | global_batch_size: 512 | global_step: {n}"
        " | reduced_train_loss: 9.{n} | train_step_timing in s: 4.1 | TFLOPS_per_GPU: 401 | consumed_samples: 1024 | val_loss: 9.1\n",
        (2, 4.1, 9.2),
    ),
    "OLMo-core with actual averages": (
        "2026-01-01 10:00:0{n}\tnode:0\tolmo_core.train.callbacks.console_logger:71\tINFO\t[step={n}/1000,epoch=1,eta=10 minutes]\n"
        "    train/CE loss=10.{n}\n    throughput/device/TPS (actual avg)=8,000\n    throughput/device/TPS=8,192\n"
        "    throughput/device/BPS=0.5\n",
        (2, 2.0, 10.2),
    ),
    "veRL with the time per step": (
        "(TaskRunner pid=1234, ip=10.0.0.1) step:{n} - actor/pg_loss:0.1 - perf/mfu/actor:0.31 - timing_s/gen:10.0"
        " - timing_s/step:20.{n} - perf/total_num_tokens:100000 - perf/time_per_step:20.{n} - perf/throughput:500.0\n",
        (2, 20.2, None),
    ),
    "MaxText with its logger's prefix": (
        "I0203 10:00:0{n}.123456 140 metric_logger.py:196] completed step: {n}, seconds: 2.31{n}, TFLOP/s/device: 210.1,"
        " Tokens/s/device: 3546.1, total_weights: 65536, loss: 10.{n}, lm_loss: 10.1, perplexity: 1000.1\n",
        (2, 2.312, 10.2),
    ),
}


@pytest.mark.parametrize("name", LAUNCHED)
def test_a_step_is_read_under_other_launchers_and_versions(name: str) -> None:
    line, (step, seconds, loss) = LAUNCHED[name]
    parsed = parse_whole("".join(line.format(n=n) for n in (1, 2, 3)).encode())

    assert [row.step for row in parsed.steps] == [1, 2, 3]
    second = parsed.steps[1]
    assert (second.step, second.loss) == (step, loss)
    assert second.step_seconds == pytest.approx(seconds)
