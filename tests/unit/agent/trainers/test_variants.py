"""Lines of other versions of the families: two steps each, with the time and loss of the second."""

# ruff: noqa: E501, ISC004 - log lines are as long as they are

import pytest

from flopwatch_agent.trainers.reader import parse_whole

VARIANTS = {
    "BLOOM, seconds": (
        "[default7]: iteration {n:8}/  115311 | consumed samples: {n:12} | consumed tokens: {n:12} | elapsed time per iteration (s): 105.21"
        " | learning rate: 6.0E-05 | global batch size:  2048 | lm loss: 2.5{n}E+00 | grad norm: 0.2 | num zeros: 0.0 |"
        " number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: 19.466 | TFLOPs: 150.1 |\n",
        105.21, 2.52,
    ),
    "Primus, inst/avg": (
        " [2025-10-01 10:00:0{n}] iteration {n:8}/      50 | consumed samples: {n:12} | elapsed time per iteration (ms): 2041.5/2050.9"
        " | throughput per GPU (TFLOP/s/GPU): 612.4/609.9 | tokens per GPU (tokens/s/GPU): 16050.1/15980.2 | learning rate: 1E-5"
        " | global batch size:   256 | lm loss: 9.1{n}E+00 | loss scale: 1.0 |\n",
        2.0415, 9.12,
    ),
    "NeMo 1 bar": (
        "Epoch 0: :   2%|2         | {n}/500 [01:03<43:12, v_num=0-12, reduced_train_loss=10.{n}0, global_step={n}.000,"
        " consumed_samples=3072.0, train_step_timing in s=5.190]\n",
        5.19, 10.2,
    ),
    "lit-gpt 2023": ("iter {n} step {n}: loss 10.{n}000, iter time: 350.10ms (optimizer.step)\n", 0.3501, 10.2),
    "llm.c, fp16": (
        "step    {n}/19560 | train loss 5.{n}00000 | norm 0.7000 | lr 6.00e-04 | 150.20 ms | 35.1% A100 fp16 MFU | 1500000 tok/s\n",
        0.1502, 5.2,
    ),
    "nanochat, mfu without number format": (
        "step 0000{n}/21400 (0.05%) | loss: 10.0{n}0000 | lrm: 1.00 | dt: 520.00ms | tok/sec: 1,007,897 | mfu: 48.61 | total time: 0.00m\n",
        0.52, 10.02,
    ),
    "fairseq, JSON": (
        '2020-07-17 06:49:0{n} | INFO | train_inner | {{"epoch": 1, "update": 0.1, "loss": "14.{n}", "ppl": "9", "wps": "1000",'
        ' "ups": "2.11", "wpb": "2000", "bsz": "128", "num_updates": "{n}", "lr": "1e-06", "train_wall": "47", "wall": "67"}}\n',
        2.0, 14.2,
    ),
    "prime-rl trainer": (
        "23:59:1{n} SUCCESS Step {n} | Time: 22.30s | Loss: 0.01{n} | Entropy: 0.5 | Grad. Norm: 0.1 | LR: 1e-06 | Throughput: 9000 tokens/s"
        " | MFU: 41.2% | Peak Mem.: 61.2/79.1 GiB (77.4%)\n",
        22.3, 0.012,
    ),
    "PaddleNLP 2022": (
        "[2022-07-02 10:01:2{n},136] [    INFO] - loss: 11.8{n}, learning_rate: 3e-07, global_step: {n}, interval_runtime: 4.5,"
        " interval_samples_per_second: 5.9, interval_steps_per_second: 0.22, epoch: 0.0001\n",
        4.5, 11.82,
    ),
    "Paddle GPT example": (
        "[2022-01-0{n} 10:00:00,000] [    INFO] - global step {n}, epoch: 0, batch: {n}, loss: 11.0{n}, avg_reader_cost: 0.05 sec,"
        " avg_batch_cost: 5.15 sec, speed: 0.19 step/s, ips_total: 1590 tokens/s, ips: 199 tokens/s, learning rate: 2e-09\n",
        5.15, 11.02,
    ),
    "XTuner engine": (
        "[RANK 0][2025-08-0{n}][INFO] [XTuner] Epoch 1 Step {n}/2046 data_time: 0.02 lr: 1e-5 time: 2.92 text_tokens: 32768"
        " total_loss: 0.7{n} max_memory: 50 GB grad_norm: 0.1 tgs: 1234.5\n",
        2.92, 0.72,
    ),
    "MaxText 2023": ("completed step: {n}, seconds: 5.670, TFLOP/s/device: 134.8, loss: 9.6{n}\n", 5.67, 9.62),
    "modded-nanogpt with training loss": (
        "step:{n}/5100 train_loss:7.{n}000 train_time:{n}00ms step_avg:100.00ms\n", 0.1, 7.2,
    ),
    "veRL under Ray": (
        "(TaskRunner pid=77) step:{n} - actor/pg_loss:0.01 - mfu/actor:0.34 - timing_s/gen:8.5 - timing_s/step:31.5 -"
        " perf/total_num_tokens:1000 - perf/throughput:31.7\n",
        31.5, None,
    ),
    "ms-swift, older": (
        "{{'loss': 1.{n}, 'acc': 0.7, 'grad_norm': 1.4, 'learning_rate': 1e-05, 'epoch': 0.01, 'global_step': {n}, 'train_speed(iter/s)': 0.25}}\n",
        4.0, 1.2,
    ),
    "TRL supervised, transformers 4": (
        "{{'loss': 1.{n}, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'num_tokens': {n}000.0, 'mean_token_accuracy': 0.6, 'epoch': 0.0{n}}}\n",
        None, 1.2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_the_second_step_has_its_number_time_and_loss(name: str) -> None:
    line, seconds, loss = VARIANTS[name]
    parsed = parse_whole("".join(line.format(n=step) for step in (1, 2)).encode())

    assert [row.step for row in parsed.steps] == [1, 2]
    assert parsed.steps[1].step_seconds == (None if seconds is None else pytest.approx(seconds))
    assert parsed.steps[1].loss == (None if loss is None else pytest.approx(loss))


def test_a_rounded_token_counter_gives_no_tokens() -> None:
    line = "{'loss': '1.5', 'num_tokens': '4.456e+05', 'epoch': '0.1'}\n"

    assert parse_whole(line.encode()).steps[0].tokens is None


def test_an_exact_token_counter_gives_tokens() -> None:
    line = "{{'loss': 1.5, 'num_tokens': {}.0, 'epoch': {}}}\n"
    parsed = parse_whole((line.format(1000, 0.1) + line.format(2100, 0.2)).encode())

    assert [row.tokens for row in parsed.steps] == [1000.0, 1100.0]
