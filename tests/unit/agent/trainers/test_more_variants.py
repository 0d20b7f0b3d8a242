"""More lines of other versions and launchers: two steps each, with the number, time, tokens and loss of the second."""

# ruff: noqa: E501, ISC004 - log lines are as long as they are

import pytest

from flopwatch_agent.trainers.reader import parse_whole

VARIANTS = {
    "Megatron-DeepSpeed of ALCF, key=value": (
        "[2024-06-21 10:50:4{n}][INFO][training:1609] -  iteration=       {n}/  317892 | consumed_samples=         768 | consumed_tokens=     {n}000000 |"
        " elapsed_time_per_iteration_ms=10889.2 | learning_rate=1.88743e-08 | global_batch_size=  768 | lm loss=11.{n}33188 | loss_scale=1.0 |"
        " actual_seqlen= 4096 | number_of_skipped_iterations=  0 | samples_per_second=7.053 | tokens_per_gpu_per_second_tgs=1203.674 |"
        " [LM]-TFLOPs=49.66 | [DS]-TFLOPs=73.32 |\n",
        (2, 10.8892, 1_000_000, 11.233188),
    ),
    "Megatron-like line without a total": (
        "[INFO] iteration: {n} | consumed samples: {n}00 | elapsed time per iteration (ms): 812.4 | throughput(samples/s): 19.7 | lm loss: 2.{n}\n",
        (2, 0.8124, None, 2.2),
    ),
    "nanotron 2025": (
        "01/10/2025 10:00:0{n} [INFO|DP=0|PP=0|TP=0|ip-10-0-0-1]: iteration: {n} / 1000 | consumed_tokens: {n}.05M | time_per_iteration_ms: 1.21K |"
        " tokens_per_sec: 866K | tokens_per_sec_per_gpu: 108K | global_batch_size: 512 | lm_loss: 11.{n} | lr: 1e-05 | model_tflops_per_gpu: 401 |"
        " grad_norm: 1.2 | cuda_memory_allocated: 10.1G | eta: 1:02:03\n",
        (2, 1.21, None, 11.2),
    ),
    "nanotron 2023, exponents": (
        "[INFO|DP=0] iteration: {n} / 100 | consumed_samples:           {n} | elapsed_time_per_iteration_ms: 412.3 | tokens_per_sec: 1.234567E+05 |"
        " tokens_per_sec_per_gpu: 1.543209E+04 | global_batch_size:    64 | lm_loss: 9.{n}00000E+00 | lr: 3.000E-04 | model_tflops_per_gpu: 120.11 |\n",
        (2, 0.4123, None, 9.2),
    ),
    "torchtitan, first months": (
        "[rank0]:2024-03-09 15:05:0{n},123 - root - INFO - step: {n}  loss: 10.{n}34  iter: 0.8123  data: 0.01  lr: 0.0003\n",
        (2, 0.8123, None, 10.234),
    ),
    "build-nanogpt": (
        "step     {n} | loss: 9.{n}23456 | lr 1.2e-05 | norm: 12.1234 | dt: 340.12ms | tok/sec: 1541234.56\n",
        (2, 0.34012, None, 9.223456),
    ),
    "build-nanogpt with commas": (
        "step {n}, loss: 9.{n}23456, lr: 1.2e-05, dt: 340.12ms, tok/sec: 1541234.56\n", (2, 0.34012, None, 9.223456),
    ),
    "nanochat with a time budget": (
        "\rstep 0000{n} (0.{n}%)  | loss: 9.01{n}250 | lrm: 1.00 | dt: 1271ms | tok/sec: 16,112 | mfu: 17.9% | epoch: 1 | remaining: 120s",
        (2, 1.271, None, 9.01225),
    ),
    "nanochat tuning": ("Step 0000{n}/00700 | Training loss: 1.{n}234 | lrm: 1.000000 | num_tokens: 12,345\n", (2, None, None, 1.2234)),
    "llm.c in PyTorch": (
        "step    {n}/19560 | train loss 7.{n}1234 | norm 1.2345 | lr 6.00e-07 | (312.42 ms | 1678123 tok/s)\n", (2, 0.31242, None, 7.21234),
    ),
    "llm.c in C, CPU": ("step {n}: train loss 5.{n}234 (took 2310.123456 ms)\n", (2, 2.310123456, None, 5.2234)),
    "llm.c, first CUDA": ("step    {n}/74: train loss 4.{n}1234 (acc 4.31) (312.42 ms, 13107 tok/s)\n", (2, 0.31242, None, 4.21234)),
    "modded-nanogpt in seconds": ("step:{n}/1750 train_loss:7.{n}000 train_time:{n}.250s step_avg:1250.00ms\n", (2, 1.0, None, 7.2)),
    "InternLM 2023, commas": (
        "2023-07-07 12:29:0{n},636\tINFO train.py:323 in record_current_batch_training_metrics -- tflops=189.8,step={n},loss=11.{n}137,tgs (tokens/gpu/second)=4096.0,"
        "lr=6e-07,loss_scale=65536.0,grad_norm=65.15,micro_num=4,num_consumed_tokens={n}0000,fwd_bwd_time=3.67\n",
        (2, 1.0, 10_000, 11.2137),
    ),
    "fairseq bar": (
        "\repoch 001:   1%|1         | {n}/1000 [00:05<10:00,  1.20it/s, loss=14.{n}, nll_loss=14.1, ppl=9000, wps=12500, ups=2.5, wpb=5000, bsz=128, num_updates={n}, lr=1e-06]",
        (2, 0.4, 5_000, 14.2),
    ),
    "fairseq with a criterion that logs its nll only": (
        "2021-07-17 06:49:0{n} | INFO | train_inner | epoch 002:    {n}00 / 1000 nll_loss=4.{n}, ppl=9, wps=12500, ups=2.51, wpb=5000, bsz=128, num_updates=12{n}, lr=1e-06\n",
        (122, 0.4, 5_000, 4.2),
    ),
    "metaseq JSON": (
        '2022-07-17 06:49:0{n} | INFO | train_inner | {{"epoch": 1, "actv_norm": "10.1", "update": 0.1, "loss": "9.{n}", "ppl": "9", "wps": "100000", "ups": "0.5",'
        ' "wpb": "200000", "bsz": "1024", "num_updates": "{n}", "lr": "1e-06", "wall": "67"}}\n',
        (2, 2.0, 200_000, 9.2),
    ),
    "veRL under numpy 2": (
        "(TaskRunner pid=77) step:{n} - global_seqlen/min:np.int64(100) - actor/pg_loss:np.float64(0.01) - timing_s/gen:8.5 - timing_s/step:np.float64(31.5)"
        " - perf/total_num_tokens:np.int64(1260)\n",
        (2, 31.5, 1_260, None),
    ),
    "veRL 0.1": ("step:{n} - actor/pg_loss:0.0{n} - timing/gen:8.5 - timing/step:31.5\n", (2, 31.5, None, None)),
    "veRL SFT": ("step:{n} - train/loss:1.{n} - train/lr(1e-3):0.01 - train/time(s):2.5\n", (2, 2.5, None, 1.2)),
    "veRL SFT without a time": (
        "step:{n} - train/loss:1.{n} - train/grad_norm:1.0 - train/global_tokens:123456 - train/mfu:0.41\n", (2, None, 123_456, 1.2),
    ),
    "prime-rl distilling": (
        "10:00:0{n} SUCCESS Step {n} | Time: 22.30s | KL Loss: 0.01{n} | Grad. Norm: 0.1 | LR: 1e-06 | Throughput: 9000 tokens/s | Peak Mem.: 61.2/79.1 GiB\n",
        (2, 22.3, None, 0.012),
    ),
    "ms-swift on Megatron": (
        "{{'loss': 0.8{n}, 'grad_norm': 1.2, 'learning_rate': 1e-05, 'load_balancing_loss': 1.0, 'iteration': '{n}/300', 'elapsed_time': '{n}0s',"
        " 'remaining_time': '22m 50s', 'memory(GiB)': 20.1, 'train_speed(s/it)': 10.0}}\n",
        (2, 10.0, None, 0.82),
    ),
    "TRL PPO": (
        "{{'eps': 12, 'objective/kl': 0.1, 'objective/entropy': 20.1, 'loss/policy_avg': -0.0{n}, 'loss/value_avg': 0.1, 'lr': 1e-06, 'episode': {n}00, 'epoch': 0.0{n}}}\n",
        (2, None, None, -0.02),
    ),
    "TRL GRPO, transformers 5": (
        "{{'loss': '0.0{n}', 'grad_norm': '0.5', 'learning_rate': '1e-06', 'num_tokens': '{n}000', 'reward': '0.5', 'step_time': '12.5', 'epoch': '0.{n}'}}\n",
        (2, 12.5, 1_000, 0.02),
    ),
    "EasyLM without the data set's figures": (
        "{{'accuracy': 0.1,\n 'gradient_norm': 1.0,\n 'learning_rate': 1e-05,\n 'loss': 9.{n},\n 'param_norm': 100.0,\n 'step': {n}}}\n", (2, None, None, 9.2),
    ),
    "XTuner by epochs": (
        "01/01 10:00:0{n} - mmengine - INFO - Epoch(train) [2][ {n}0/1000]  lr: 1e-05  eta: 0:10:00  time: 1.2500  data_time: 0.01  memory: 12000  loss: 1.{n}\n",
        (1_020, 1.25, None, 1.2),
    ),
    "Composer by epochs": (
        "[epoch=3][batch={n}/50]:\n\t Train loss/train/total: 2.{n}\n\t Train throughput/batches_per_sec: 0.5\n", (102, 2.0, None, 2.2),
    ),
    "Composer by tokens": (
        "[token={n}0000/1000000]:\n\t Train time/batch: {n}\n\t Train loss/train/total: 2.{n}\n\t Train throughput/batches_per_sec: 0.5\n", (3, 2.0, None, 2.2),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIANTS)
def test_the_second_step_has_its_number_time_tokens_and_loss(name: str) -> None:
    line, (step, seconds, tokens, loss) = VARIANTS[name]
    row = parse_whole("".join(line.format(n=number) for number in (1, 2)).encode()).steps[-1]

    assert row.step == step
    assert row.step_seconds == (None if seconds is None else pytest.approx(seconds))
    assert row.tokens == (None if tokens is None else pytest.approx(tokens))
    assert row.loss == (None if loss is None else pytest.approx(loss))
