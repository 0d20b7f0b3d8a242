"""Trainers of vision models, compact code bases, bars of other libraries: step, seconds, tokens and loss of the last row."""

# ruff: noqa: E501, ISC004 - log lines are as long as they are

from pathlib import Path

import pytest

from flopwatch_agent.trainers.reader import parse_whole

FIXTURES = Path(__file__).parents[3] / "fixtures" / "trainer_logs"

LINES = {
    "Megatron-LM's vision models": (
        " [2025-01-01 10:00:0{n}] iteration {n:8}/ 1000 | consumed samples: {n:12} | elapsed time per iteration (ms): 812.4 | throughput per GPU (TFLOP/s/GPU): 95.1"
        " | learning rate: 1E-5 | global batch size:  1024 | loss: 6.9{n}0000E+00 | accuracy: 1E-2 | loss scale: 1.0 | grad norm: 1.2 | number of skipped iterations:   0 |\n",
        (3, 0.8124, None, 6.93),
    ),
    "Megatron-LM whose iterations were all skipped": (
        " iteration {n:8}/ 1000 | consumed samples: {n:12} | elapsed time per iteration (ms): 812.4 | learning rate: 1E-5 | global batch size:  1024 |"
        " loss scale: 131072.0 | number of skipped iterations:   1 | number of nan iterations:   0 |\n",
        (3, 0.8124, None, None),
    ),
    "OLMo-core whose lines begin with a time in UTC": (
        "2026-01-01T10:00:0{n}.123Z node-0:0 olmo_core.train.callbacks.console_logger:91 INFO [step={n}/1,000,epoch=1,eta=10 minutes]\n"
        "    optim/LR (group 0)=0.0001\n    train/CE loss=10.{n}\n    throughput/device/TPS=8,192\n    throughput/device/BPS=0.5\n",
        (3, 2.0, None, 10.3),
    ),
    "detectron2, by the clock of its lines": (
        "[05/01 10:00:{n}0 d2.utils.events]:  eta: 1:02:03  iter: {n}9  total_loss: 2.{n}  loss_cls: 1.1    time: 0.9512  last_time: 0.94  data_time: 0.0123"
        "  last_data_time: 0.004   lr: 0.0001  max_mem: 5432M\n",
        (39, 1.0, None, 2.3),
    ),
    "MMCV by epochs": (
        "2021-05-01 10:00:{n}0,123 - mmdet - INFO - Epoch [2][{n}0/7330]\tlr: 1.978e-03, eta: 22:37:25, time: 0.927, data_time: 0.055, memory: 5321, loss_rpn_cls: 0.5, loss: 1.{n}\n",
        (7360, 0.927, None, 1.3),
    ),
    "MMCV by iterations": (
        "2021-05-01 10:00:{n}0,123 - mmseg - INFO - Iter [{n}0/80000]\tlr: 1.978e-03, eta: 22:37:25, time: 0.927, data_time: 0.055, memory: 5321, decode.loss_ce: 0.5, loss: 1.{n}\n",
        (30, 0.927, None, 1.3),
    ),
    "timm, third epoch": (
        "Train: 2 [ {n}50/1251 (  4%)]  Loss: 6.9{n} (6.93)  Time: 0.512s, 2000.00/s  (0.623s, 1643.2/s)  LR: 1.000e-05  Data: 0.012 (0.034)\n",
        (2852, 0.512, None, 6.93),
    ),
    "timm, older": (
        "Train: 0 [ {n}50/1251 (  4%)]  Loss:  6.9{n}0000 (6.9300)  Time: 0.512s, 2000.00/s  (0.623s, 1643.2/s)  LR: 1.000e-05  Data: 0.012 (0.034)\n",
        (350, 0.512, None, 6.93),
    ),
    "torchvision's references": (
        "Epoch: [1]  [  {n}0/1251]  eta: 0:12:34  lr: 0.1  img/s: 1234.5  loss: 6.9{n} (6.95)  acc1: 0.1 (0.2)  time: 0.5123  data: 0.0123  max mem: 12345\n",
        (1281, 0.5123, None, 6.93),
    ),
    "DINOv2": (
        "I20230501 10:00:{n}0 140 dinov2 helpers.py:102] Training  [  {n}0/125000]  eta: 1 day, 2:03:04  lr: 0.1 (0.1)  total_loss: 9.1{n} (9.9)  time: 0.312  data: 0.001  max mem: 3\n",
        (30, 0.312, None, 9.13),
    ),
    "PyTorch's ImageNet example": (
        "Epoch: [0][  {n}0/1252]\tTime  0.512 ( 0.734)\tData  0.012 ( 0.123)\tLoss 6.9{n}e+00 (7.0e+00)\tAcc@1   0.00 (  0.10)\n",
        (30, 0.512, None, 6.93),
    ),
    "Swin": (
        "[2021-04-14 10:00:{n}0 swin] (main.py 187): INFO Train: [1/300][{n}0/1251]\teta 0:12:34 lr 0.000001\t time 0.5123 (0.6123)\tloss 6.9{n} (6.95)\tgrad_norm 1.2 (1.3)\tmem 1234MB\n",
        (1281, 0.5123, None, 6.93),
    ),
    "DLRM, second epoch": (
        "Finished training it {n}024/4096 of epoch 1, 459.80 ms/it, loss 0.45{n}942, accuracy 78.996 %\n", (7120, 0.4598, None, 0.453942),
    ),
    "Marian": (
        "[2021-05-26 23:{n}0:42] Ep. 1 : Up. {n}500 : Sen. 15,203 : Cost 6.0{n}253986 * 414,436 after 414,436 : Time 600.00s : 679.50 words/s\n"
        "[2021-05-26 23:{n}1:42] [valid] Ep. 1 : Up. {n}500 : ce-mean-words : 5.21277 : new best\n",
        (3500, 0.6, None, 6.03253986),
    ),
    "DiT": (
        "[\x1b[34m2023-01-01 10:0{n}:00\x1b[0m] (step=000{n}00) Train Loss: 0.1{n}00, Train Steps/Sec: 2.50\n", (300, 0.4, None, 0.13),
    ),
    "Megatron-LM whose loss is no number": (
        " iteration {n:8}/ 1000 | consumed samples: 12 | elapsed time per iteration (ms): 812.4 | learning rate: 1E-5 | lm loss: NAN | number of skipped iterations:   0 |\n",
        (3, 0.8124, None, "nan"),
    ),
    "MindFormers": (
        "2025-04-07 15:34:2{n},173 - [mindformers/core/callback/callback.py:529] - INFO - {{ Epoch:[  2/  2], step:[    {n}/   19], loss: 10.63{n}, per_step_time: 1752ms, lr: 1e-05,"
        " overflow cond: False, loss_scale: 1.0, global_norm: [1.2], train_throughput_per_npu: 123.4T\n",
        (22, 1.752, None, 10.633),
    ),
    "picotron": (
        "[rank 0] Step: {n}     | Loss: 10.9{n} | Global batch size: 128.00K | Tokens/s: 64.00K | Tokens/s/GPU: 8.00K | Tokens: 256.00K | MFU: 30.12% | Memory usage:  10.10GB\n",
        (3, 2.0, 128_000, 10.93),
    ),
    "Lingua": (
        "0: INFO    25-01-01 10:00:{n}0.123456 - 0:01:0{n} - step: {n}0  acc: 0  loss:  9.1{n}  grad: 1.23e+00  flops: 2.34e+14  wps: 1.23e+04  iter:  0.812  data:  0.012  lr: 1.00e-04  mem: 80%  pow: 400 W\n",
        (30, 0.812, None, 9.13),
    ),
    "Flax's examples": (
        "I0501 10:00:{n}0.123456 140 logging_writer.py:48] [{n}00] learning_rate=0.0002, loss=6.{n}, steps_per_second=2.5\n", (300, 0.4, None, 6.3),
    ),
    "Flax's examples, prefixed names": (
        "I0501 10:00:{n}0.123456 140 logging_writer.py:64] [{n}00] train_learning_rate=0.0002, train_loss=6.{n}, train_steps_per_second=2.5\n", (300, 0.4, None, 6.3),
    ),
    "minGPT": ("iter_dt 250.12ms; iter {n}00: train loss 2.3{n}567\n", (300, 0.25012, None, 2.33567)),
    "llama2.c": ("{n} | loss 9.{n}234 | lr 1.200000e-05 | 250.12ms | mfu 35.12%\n", (3, 0.25012, None, 9.3234)),
    "TensorFlow's Estimator": ("INFO:tensorflow:loss = 2.{n}, step = {n}00 (25.000 sec)\n", (300, 0.25, None, 2.3)),
    "TensorFlow's Model Garden": (
        "I0501 10:00:00.1 140 controller.py:467] train | step:   {n}000 | steps/sec:    5.0 | output: {{'training_loss': 1.{n}, 'learning_rate': 1e-4}}\n",
        (3000, 0.2, None, 1.3),
    ),
    "GPT-NeoX beside DeepSpeed's line of the same step": (
        "steps: {n} loss: 10.{n} iter time (s): 3.125 samples/sec: 327.8\n samples/sec: 327.8 | iteration {n:8}/ 320000 | elapsed time per iteration (ms): 3123.0"
        " | learning rate: 1E-5 | approx flops per GPU: 55.3TFLOPS | lm_loss: 1.0{n}E+01 | loss scale: 4096.0 | number of skipped iterations:   0 |\n",
        (3, 3.123, None, 10.3),
    ),
    "a line that a forwarder wrapped and took the line feed off": (
        '{{"stream":"stdout","logtag":"F","log":"iter {n}: loss 2.{n}, time 250.00ms, mfu 40.00%","kubernetes":{{"pod_name":"x"}}}}\n',
        (3, 0.25, None, 2.3),
    ),
    "JSON lines that count iterations": ('{{"iteration": {n}, "train_loss": 2.{n}, "step_time_ms": 250.0}}\n', (3, 0.25, None, 2.3)),
    "Composer under ts, with its counter of tokens": (
        "2025-01-01 10:00:0{n} [batch={n}0/100]:\n2025-01-01 10:00:0{n} \t Train time/batch: {n}9\n2025-01-01 10:00:0{n} \t Train time/token: {n}0000\n"
        "2025-01-01 10:00:0{n} \t Train loss/train/total: 2.{n}\n2025-01-01 10:00:0{n} \t Train throughput/tokens_per_sec: 500.0\n",
        (30, 2.0, 1000, 2.3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_the_third_row_has_its_number_time_tokens_and_loss(name: str) -> None:
    line, (step, seconds, tokens, loss) = LINES[name]
    parsed = parse_whole("".join(line.format(n=number) for number in (1, 2, 3)).encode())
    row = parsed.steps[-1]

    assert len(parsed.steps) == 3
    assert row.step == step
    assert row.step_seconds == pytest.approx(seconds)
    assert row.tokens == (None if tokens is None else pytest.approx(tokens))
    assert row.loss == (loss if loss in (None, "nan") else pytest.approx(loss))


BARS = {
    "kohya's scripts": ("\rsteps:   1%|          | {n}/1600 [00:{n}<33:07,  1.00s/it, avr_loss=0.1{n}]", 0.15),
    "Composer's bar": (
        "\rtrain          Epoch   0:    1%|1 | {n}/2500 [00:{n}<18:12,  1.00ba/s, loss/train/total=2.{n}]", 2.5,
    ),
    "a bar of batches": ("\rEpoch 1:    1%|1 | {n}/2500 [00:{n}<18:12,  1.00s/batch, loss=2.{n}]", 2.5),
    "a bar of steps": ("\rTraining:    1%|1 | {n}/2500 [00:{n}<18:12,  1.00step/s, loss=2.{n}]", 2.5),
    "YOLO": (
        "\r      1/100      2.51G      1.234      2.345      1.456         45        640:  12%|#  | {n}/170 [00:{n}<00:38,  1.00it/s]", None,
    ),
    "Lightning's rich bar": (
        "Epoch 0/9 \u2501\u2501\u2501\u2501 {n}/100 0:00:{n} \u2022 0:00:40 1.00it/s v_num: 0.000 train_loss: 2.{n}\n", 2.5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BARS)
def test_a_bar_gives_the_time_between_its_drawings(name: str) -> None:
    line, loss = BARS[name]
    rows = parse_whole("".join(line.format(n=number) for number in (10, 20, 30, 40, 50)).encode()).steps

    assert [row.step for row in rows] == [10, 20, 30, 40, 50]
    assert rows[-1].step_seconds == pytest.approx(1.0)
    assert rows[-1].loss == (None if loss is None else pytest.approx(loss))


@pytest.mark.parametrize(
    "line",
    [
        "Downloading: 10%|1 | {n}/2500 [00:{n}<18:12,  1.00MB/s, loss=2.5]\n",
        "Test:  [  {n}/196]  eta: 0:01:34  loss: 1.9 (1.95)  acc1: 50.1 (51.0)  time: 0.5123  data: 0.0123  max mem: 12345\n",
        "Test: [{n}/196]\tTime 0.512 (0.734)\tLoss 1.9e+00 (2.0e+00)\tAcc@1 50.0 (51.0)\n",
        "Validation 0/9 \u2501\u2501\u2501\u2501 {n}/100 0:00:{n} \u2022 0:00:40 1.00it/s v_num: 0.000 val_loss: 2.5\n",
        "      Class     Images  Instances      Box(P          R      mAP50:  12%|#  | {n}/170 [00:{n}<00:38,  1.00it/s]\n",
    ],
)
def test_evaluation_and_downloads_are_no_steps(line: str) -> None:
    assert parse_whole("".join(line.format(n=number) for number in (10, 20, 30)).encode()).steps == ()


def test_llama_factorys_own_line_beside_the_trainers_dict_is_no_second_row() -> None:
    own = (
        "[INFO|2025-01-01 10:0{m}:40] llamafactory.train.callbacks:143 >> "
        "{{'loss': 1.{m}, 'learning_rate': 9.9e-06, 'epoch': {epoch}, 'throughput': 24000.1}}\n"
    )
    dict_line = (
        "{{'loss': 1.{m}, 'learning_rate': 9.9e-06, 'epoch': {epoch}, 'num_input_tokens_seen': {tokens},"
        " 'train_runtime': {seconds}.0}}\n"
    )
    head = "***** Running training *****\n  Num Epochs = 2\n  Total optimization steps = 312\n"
    rows = [
        (own + dict_line).format(m=m, epoch=f"{m * 10 / 156:.2f}", tokens=m * 1_000_000, seconds=m * 40)
        for m in (1, 2, 3, 4)
    ]

    steps = parse_whole((head + "".join(rows)).encode()).steps

    assert [row.step for row in steps] == [10, 20, 30, 40]
    assert [row.step_seconds for row in steps] == [4.0] * 4
    assert [row.tokens for row in steps] == [100_000.0] * 4


def test_a_log_whose_head_is_cut_off_before_its_bar_takes_the_first_steps_number_from_the_bar_below() -> None:
    line = "{{'loss': 1.{n}, 'grad_norm': 0.9, 'learning_rate': 2e-05, 'epoch': {e:.2f}}}\n"
    bar = "\r 30%|###   | {n}/10000 [1:40:{s:02d}<3:00:00,  2.00s/it]\r"
    log = line.format(n=3010, e=3.01) + bar.format(n=3010, s=0)
    for n in (3020, 3030):
        drawn = bar.format(n=n, s=(n - 3010) * 2)
        log += drawn + line.format(n=n, e=n / 1000) + drawn

    rows = parse_whole(log.encode()).steps

    assert [(row.step, row.step_seconds) for row in rows] == [(3010, None), (3020, 2.0), (3030, 2.0)]


def test_a_rank_that_prints_a_step_after_others_have_gone_on_opens_no_session() -> None:
    line = " iteration {n:8}/ 1000 | elapsed time per iteration (ms): {ms} | global batch size: 8 | lm loss: 2.{n:02d}E+00 |\n"
    order = [1, 2, 3, 4, 5, 7, 6, 7, 6, 8, 9, 10]
    log = "".join(line.format(n=n, ms=1000 + place * 0.01) for place, n in enumerate(order))

    parsed = parse_whole(log.encode())

    assert [row.step for row in parsed.steps] == [1, 2, 3, 4, 5, 7, 8, 9, 10]
    assert len(parsed.sessions) == 1


CAPTURES = {
    "pm2": "0|train  | ",
    "Skaffold": "[train] ",
    "GNU parallel": "1\t",
    "ts -s": "10:00:{second:02d}.123456 ",
    "a log service": '2025-01-01T10:00:{second:02d}Z {{app="x"}} ',
    "a CI job": "train\tstep\t2025-01-01T10:00:{second:02d}.1234567Z ",
    "stern": "train-0-abc pytorch ",
}


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize(
    "name", ["olmo_core.log", "olmo_v1.log", "composer_console.log", "axolotl_tokens.log"]
)
def test_a_blocks_lines_are_known_whatever_a_tool_put_before_all_of_them(name: str, capture: str) -> None:
    plain = (FIXTURES / name).read_text()
    captured = "".join(
        CAPTURES[capture].format(second=place % 60) + line
        for place, line in enumerate(plain.splitlines(keepends=True))
    )

    def rows(text: str) -> list[tuple[object, ...]]:
        return [
            (row.step, row.step_seconds, row.loss, row.tokens) for row in parse_whole(text.encode()).steps
        ]

    assert rows(captured) == rows(plain)
    assert rows(plain)


def test_a_printed_dict_of_figures_is_known_behind_a_label() -> None:
    plain = (FIXTURES / "easylm_pprint.log").read_text()
    captured = "".join("0|train  | " + line for line in plain.splitlines(keepends=True))

    assert [(row.step, row.loss) for row in parse_whole(captured.encode()).steps] == [
        (row.step, row.loss) for row in parse_whole(plain.encode()).steps
    ]
