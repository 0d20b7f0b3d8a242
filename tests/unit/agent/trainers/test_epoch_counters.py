"""Trainers that count within an epoch: steps go on over the epochs, and times are of so many steps as the line says."""

# ruff: noqa: E501 - log lines are as long as they are

import json
import random
import re

import pytest

from flopwatch_agent.trainers.reader import LogReader, parse_whole
from flopwatch_agent.trainers.rows import Parsed

Rows = list[tuple[int, float | None, int | None, float | None, bool]]
"""Step, seconds of a step, over how many steps, loss, steady."""

ESPNET = """\
[host] 2020-04-05 16:34:54,278 (trainer:192) INFO: 1/40epoch started. Estimated time to finish: 7 minutes and 58.63 seconds
[host] 2020-04-05 16:34:56,315 (trainer:453) INFO: 1epoch:train:1-10batch: iter_time=0.006, forward_time=0.076, loss_ctc=65.945, loss=50.873, acc=0.471, train_time=0.203
[host] 2020-04-05 16:34:58,046 (trainer:453) INFO: 1epoch:train:11-20batch: iter_time=4.280e-05, forward_time=0.068, loss=44.369, loss_att=28.776, train_time=0.173
[host] 2020-04-05 16:35:08,046 (trainer:243) INFO: 1epoch results: [train] iter_time=0.1, loss=3, train_time=0.2, [valid] loss=2
[host] 2020-04-05 16:35:10,315 (trainer:453) INFO: 2epoch:train:1-10batch: iter_time=0.006, forward_time=0.076, loss=nan, loss_att=35.801, train_time=0.204
"""
ICEFALL = """\
2023-05-20 10:11:00,000 INFO [train.py:1021] (0/2) Training started
2023-05-20 10:12:00,000 INFO [train.py:876] (0/2) Epoch 1, batch 0, loss[loss=7.5, simple_loss=7, over 7500.00 frames. ], tot_loss[loss=7.5, over 7500.00 frames. ], batch size: 30, lr: 3.00e-03, \n\
2023-05-20 10:12:00,010 INFO [train.py:876] (1/2) Epoch 1, batch 0, loss[loss=7.6, simple_loss=7, over 7400.00 frames. ], tot_loss[loss=7.6, over 7400.00 frames. ], batch size: 29, lr: 3.00e-03, \n\
2023-05-20 10:12:25,000 INFO [train.py:876] (1/2) Epoch 1, batch 50, loss[loss=1.3, simple_loss=7, over 7400.00 frames. ], tot_loss[loss=7.6, over 7400.00 frames. ], batch size: 29, lr: 3.00e-03, \n\
2023-05-20 10:12:25,010 INFO [train.py:876] (0/2) Epoch 1, batch 50, loss[loss=1.2, simple_loss=7, over 7400.00 frames. ], tot_loss[loss=7.6, over 7400.00 frames. ], batch size: 29, lr: 3.00e-03, \n\
2023-05-20 10:12:40,000 INFO [train.py:901] (0/2) Computing validation loss
2023-05-20 10:12:50,000 INFO [train.py:910] (0/2) Epoch 1, validation: loss=0.3, over 900.00 frames.
2023-05-20 10:13:00,000 INFO [train.py:876] (0/2) Epoch 2, batch 0, loss[loss=0.9, simple_loss=7, over 7400.00 frames. ], tot_loss[loss=7.6, over 7400.00 frames. ], batch size: 29, lr: 3.00e-03, \n\
2023-05-20 10:13:20,000 INFO [train.py:876] (0/2) Epoch 2, batch 50, loss[loss=0.8, simple_loss=7, over 7400.00 frames. ], tot_loss[loss=7.6, over 7400.00 frames. ], batch size: 29, lr: 3.00e-03, \n\
"""
OPEN_CLIP = """\
2023-01-10,17:20:14 | INFO | Train Epoch: 0 [   4096/1024000 (0%)] Data (t): 2.900 Batch (t): 3.200, 1280.00/s, 160.000/s/gpu LR: 0.000005 Logit Scale: 14.286 Contrastive_loss: 8.3 (8.3) Loss: 8.3178 (8.3178)
2023-01-10,17:21:14 | INFO | Train Epoch: 0 [ 413696/1024000 (40%)] Data (t): 0.010 Batch (t): 0.610, 6714.75/s, 839.344/s/gpu LR: 0.000005 Logit Scale: 14.286 Contrastive_loss: 8.1 (8.2) Loss: 8.1000 (8.2089)
2023-01-10,17:22:05 | INFO | Train Epoch: 0 [1024000/1024000 (100%)] Data (t): 0.010 Batch (t): 0.620, 6606.45/s, 825.806/s/gpu LR: 0.000005 Logit Scale: 14.286 Contrastive_loss: 8.0 (8.1) Loss: 8.0000 (8.1393)
2023-01-10,17:22:30 | INFO | Eval Epoch: 1 imagenet-zeroshot-val-top1: 0.0123
2023-01-10,17:22:35 | INFO | Train Epoch: 1 [   4096/1024000 (0%)] Data (t): 1.900 Batch (t): 2.100, 1950.48/s, 243.810/s/gpu LR: 0.000005 Logit Scale: 14.286 Contrastive_loss: 7.9 (7.9) Loss: 7.9000 (7.9000)
2023-01-10,17:23:36 | INFO | Train Epoch: 1 [ 413696/1024000 (40%)] Data (t): 0.010 Batch (t): 0.600, 6826.67/s, 853.333/s/gpu LR: 0.000005 Logit Scale: 14.286 Contrastive_loss: 7.8 (7.8) Loss: 7.8000 (7.8500)
"""
OPEN_CLIP_WITHOUT_ITS_HEAD = "".join(
    f"2022-01-10,17:2{n}:14 | INFO | Train Epoch: 3 [{samples}/1024000 ({part}%)]\tLoss: 6.{n} (6.2)\tData (t) 0.063\tBatch (t) 0.6{n}0\tLR: 0.0001\n"
    for n, samples, part in ((1, 413_696, 40), (2, 823_296, 80), (3, 1_024_000, 100))
)
OPENNMT = "".join(
    f"[2021-01-01 10:0{n}:00,000 INFO] Step {50 * n}/100000; acc:   5.5; ppl: 12345.5; xent: 9.{n}; lr: 0.00003; sents:    2211; bsz: 1234/1345/44; 12345/13456 tok/s; {25 * n:6d} sec;\n"
    for n in (1, 2, 3)
)
KERAS_2 = (
    "Epoch 1/3\n"
    + "".join(
        f"\r{n:4d}/1875 [>.............................] - ETA: 3s - loss: 0.6{n} - accuracy: 0.8{chr(8) * 80}"
        for n in (1, 500, 1875)
    )
    + "\r1875/1875 [==============================] - 4s 2ms/step - loss: 0.2925 - accuracy: 0.9146\n"
    "Epoch 2/3\n1875/1875 [==============================] - 46s 24ms/step - loss: 0.1925 - accuracy: 0.9146 - val_loss: 0.1 - val_accuracy: 0.9\n"
    "313/313 [==============================] - 1s 3ms/step - loss: 0.08 - accuracy: 0.97\n"
    "Epoch 3/3\n1875/1875 [==============================] - 46s 24ms/step - loss: 0.0925 - accuracy: 0.9146\n"
    "313/313 [==============================] - 1s 3ms/step - loss: 0.08 - accuracy: 0.97\n"
)
KERAS_3 = (
    "Epoch 1/3\n"
    + "".join(
        f"\r\x1b[1m{n}/400\x1b[0m \x1b[32m\u2501\u2501\u2501\x1b[0m\x1b[37m\u2501\x1b[0m \x1b[1m{left}s\x1b[0m 108ms/step - accuracy: 0.86 - loss: 0.49"
        for n, left in ((1, 40), (200, 20), (400, 0))
    )
    + "\r\x1b[1m400/400\x1b[0m \x1b[32m\u2501\u2501\u2501\u2501\x1b[0m\x1b[37m\x1b[0m \x1b[1m47s\x1b[0m 108ms/step - accuracy: 0.8659 - loss: 0.4917 - val_loss: 0.0581\n"
    "Epoch 2/3\n400/400 \u2501\u2501\u2501\u2501 600s 1s/step - accuracy: 0.9807 - loss: 0.0617\n"
    "Epoch 3/3\n400/400 \u2501\u2501\u2501\u2501 700s 2s/step - accuracy: 0.9807 - loss: 0.0517 - val_loss: 0.05\n"
)
KERAS_PLAIN = (
    "Epoch 1/2\n1875/1875 - 4s - 2ms/step - accuracy: 0.91 - loss: 0.29\n"
    "Epoch 2/2\n1875/1875 - 5s - loss: 0.2725 - accuracy: 0.9146 - 5s/epoch - 3ms/step\n"
)
DEEPSPEED_CHAT = "".join(
    f"Epoch: 0 | Step: {n} | PPO Epoch: 1 | Actor Loss: 0.01{n} | Critic Loss: 0.02 | Unsupervised Loss: 0.0\n"
    f"End-to-End => Latency: 2.{n}5s, TFLOPs: 3.29, Samples/sec: 1.57, Time/seq 0.64s, Batch Size: 4, Total Seq. Length: 512\n"
    "Generation => Latency: 1.77s, Per-token Latency 6.92 ms, TFLOPs: 0.85, BW: 112.09 GB/sec, Answer Seq. Length: 256\n"
    "Training   => Latency: 0.78s, TFLOPs: 8.85\n"
    for n in range(3)
)

LOGS: dict[str, tuple[str, str, Rows]] = {
    "ESPnet": (
        "ESPnet", ESPNET,
        [(10, None, 10, 50.873, False), (20, 0.1731, 10, 44.369, True), (30, None, 10, None, True)],
    ),
    "ESPnet without time stamps": (
        "ESPnet", re.sub(r"2020-04-05 16:\d\d:\d\d,\d+ ", "", ESPNET),
        [(10, 0.203, 10, 50.873, False), (20, 0.173, 10, 44.369, True), (30, 0.204, 10, None, True)],
    ),
    "ESPnet that takes a step each four batches": (
        "ESPnet", ESPNET.replace("train_time=0.173", "train_time=0.692"),
        [(10, None, 10, 50.873, False), (20, 0.1731, 10, 44.369, True), (30, None, 10, None, True)],
    ),
    "icefall": (
        "icefall", ICEFALL,
        [(0, None, 1, 7.5, False), (50, 0.5, 50, 1.3, True), (51, None, None, 0.9, True), (101, 0.4, 50, 0.8, True)],
    ),
    "OpenCLIP": (
        "OpenCLIP", OPEN_CLIP,
        [
            (1, 3.2, 1, 8.3178, False), (101, 0.61, 100, 8.1, True), (250, 0.62, 149, 8.0, True),
            (251, 2.1, 1, 7.9, False), (351, 0.6, 100, 7.8, True),
        ],
    ),
    "OpenCLIP of 2022 without its head": (
        "OpenCLIP", OPEN_CLIP_WITHOUT_ITS_HEAD, [(951, 0.62, 100, 6.2, True), (1000, 0.63, 49, 6.3, True)],
    ),
    "OpenNMT-py": (
        "OpenNMT-py", OPENNMT, [(50, 0.5, 50, 9.1, False), (100, 0.5, 50, 9.2, True), (150, 0.5, 50, 9.3, True)],
    ),
    "Keras 2": (
        "Keras", KERAS_2,
        [(1875, 4 / 1875, 1875, 0.2925, False), (3750, 0.024, 1875, 0.1925, True), (5625, 0.024, 1875, 0.0925, True)],
    ),
    "Keras 3": (
        "Keras", KERAS_3,
        [(400, 0.108, 400, 0.4917, False), (800, 1.5, 400, 0.0617, True), (1200, 1.75, 400, 0.0517, False)],
    ),
    "Keras without a bar": (
        "Keras", KERAS_PLAIN, [(1875, 4 / 1875, 1875, 0.29, False), (3750, 5 / 1875, 1875, 0.2725, True)],
    ),
    "DeepSpeed-Chat": (
        "DeepSpeed-Chat", DEEPSPEED_CHAT, [(0, 2.05, 1, 0.01, True), (1, 2.15, 1, 0.011, True), (2, 2.25, 1, 0.012, True)],
    ),
}  # fmt: skip


def in_random_pieces(data: bytes) -> Parsed:
    chance = random.Random(5)  # noqa: S311 - not for secrets
    reader, place = LogReader(), 0
    while place < len(data):
        size = chance.randint(1, 300)
        reader.feed(data[place : place + size], None)
        place += size
    reader.finish()
    return reader.everything()


@pytest.mark.parametrize("name", LOGS)
def test_steps_go_on_over_epochs_with_the_times_of_their_lines(name: str) -> None:
    family, text, wanted = LOGS[name]
    parsed = in_random_pieces(text.encode())

    assert parsed.family == family
    assert [row.step for row in parsed.steps] == [row[0] for row in wanted]
    for row, (_, seconds, covered, loss, steady) in zip(parsed.steps, wanted, strict=True):
        assert row.step_seconds == (None if seconds is None else pytest.approx(seconds, rel=1e-3))
        assert row.steps_covered == covered
        assert row.loss == ("nan" if loss is None else pytest.approx(loss))
        assert row.steady == steady
        assert row.session == 0


@pytest.mark.parametrize("name", [name for name in LOGS if "without time stamps" not in name])
def test_the_rows_are_the_same_out_of_a_containers_file(name: str) -> None:
    _, text, wanted = LOGS[name]
    lines = (
        json.dumps({"log": line, "stream": "stdout", "time": "2025-01-01T10:00:00.1Z"})
        for line in text.splitlines(keepends=True)
    )
    parsed = in_random_pieces("\n".join(lines).encode())

    assert [row.step for row in parsed.steps] == [row[0] for row in wanted]
    for row, (_, seconds, _, _, steady) in zip(parsed.steps, wanted, strict=True):
        assert row.step_seconds == (None if seconds is None else pytest.approx(seconds, rel=1e-3))
        assert row.steady == steady


def test_an_epoch_line_of_another_trainer_gives_its_rows_no_name_of_keras() -> None:
    lines = "".join(f"Epoch 1/3\niter {n}: loss 2.{n}, time 250.00ms, mfu 40.00%\n" for n in range(3))

    parsed = parse_whole(lines.encode())

    assert parsed.family == "nanoGPT"
    assert [row.step for row in parsed.steps] == [0, 1, 2]


def test_a_launch_that_went_back_to_an_earlier_epoch_runs_its_steps_again() -> None:
    again = ESPNET.replace("2020-04-05 16:3", "2020-04-05 17:3").split("\n", 1)[1]
    parsed = parse_whole((ESPNET + again).encode())

    assert [(row.session, row.step, row.superseded) for row in parsed.steps] == [
        (0, 10, True), (0, 20, True), (0, 30, True), (1, 10, False), (1, 20, False), (1, 30, False),
    ]  # fmt: skip


def test_icefalls_world_size_stands_in_its_label() -> None:
    assert parse_whole(ICEFALL.encode()).runs[0].world_size == 2
