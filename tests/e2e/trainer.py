"""A training-like process: real time, real files, lines in the format of a real trainer.

``python trainer.py FORMAT --step-seconds 1.0 --control FILE``: prints the trainer's header, then a step each
``step-seconds``. The control file, when it is there, holds the present step time, so that a test can slow the
run down; ``stop`` in it ends the run.
"""

import argparse
import datetime
import os
import sys
import time
from pathlib import Path

MEGATRON_ARGUMENTS = {
    "bf16": True, "context_parallel_size": 1, "data_parallel_size": 8, "ffn_hidden_size": 14336,
    "global_batch_size": 8, "group_query_attention": True, "hidden_size": 4096, "log_interval": 1,
    "micro_batch_size": 1, "num_attention_heads": 32, "num_experts": None, "num_layers": 32,
    "num_query_groups": 8, "padded_vocab_size": 128256, "pipeline_model_parallel_size": 1, "seq_length": 8192,
    "swiglu": True, "tensor_model_parallel_size": 1, "train_iters": 100000,
    "untie_embeddings_and_output_weights": True, "vocab_size": 128256, "world_size": 8,
}  # fmt: skip


def out(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def megatron_header() -> None:
    world = int(os.environ.get("WORLD_SIZE", "8"))
    MEGATRON_ARGUMENTS.update(world_size=world, data_parallel_size=world)
    out(f"using world size: {world}, data-parallel size: {world}, context-parallel size: 1 "
        "tensor-model-parallel size: 1, pipeline-model-parallel size: 1 \n")  # fmt: skip
    out("------------------------ arguments ------------------------\n")
    for name, value in MEGATRON_ARGUMENTS.items():
        out(f"  {name} {'.' * (48 - len(name))} {value}\n")
    out("-------------------- end of arguments ---------------------\ntraining ...\n")


def megatron_step(step: int, seconds: float) -> None:
    stamp = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    out(f" [{stamp}] iteration {step:8d}/  100000 | consumed samples: {step * 8:12d} | "
        f"elapsed time per iteration (ms): {seconds * 1000:.1f} | learning rate: 3.0E-04 | global batch size: {8:5d} | "
        f"lm loss: {7.0 / (1 + step / 50):.6E} | loss scale: 1.0 | grad norm: 1.250 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n")  # fmt: skip


def nanogpt_header() -> None:
    out("tokens per iteration will be: 491,520\nInitializing a new model from scratch\n"
        "number of parameters: 123.59M\nusing fused AdamW: True\n")  # fmt: skip


def nanogpt_step(step: int, seconds: float) -> None:
    out(f"iter {step}: loss {7.0 / (1 + step / 50):.4f}, time {seconds * 1000:.2f}ms, mfu 40.00%\n")


def torchtitan_line(text: str) -> None:
    stamp = datetime.datetime.now(datetime.timezone.utc).astimezone().strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    out(f"[titan] {stamp} - root - INFO - {text}\n")


def torchtitan_header() -> None:
    torchtitan_line("Starting job: Llama 3 8B training")
    torchtitan_line("Building llama3 8B with TransformerModelArgs(_enforced='This field is used to enforce all fields "
                    "have defaults.', dim=4096, n_layers=32, n_heads=32, n_kv_heads=8, vocab_size=128256, "
                    "multiple_of=1024, ffn_dim_multiplier=1.3, norm_eps=1e-05, rope_theta=500000, max_seq_len=8192, "
                    "depth_init=True, use_flex_attn=False, attn_mask_type='causal', eos_id=0)")  # fmt: skip
    torchtitan_line("Model llama3 8B size: 8,030,261,248 total parameters")
    torchtitan_line("Peak FLOPS used for computing MFU: 9.890e+14")
    torchtitan_line("Trainer is initialized with local batch size 2, global batch size 8, gradient accumulation "
                    "steps 1, sequence length 8192, total steps 1000 (warmup 200)")  # fmt: skip


def torchtitan_step(step: int, seconds: float) -> None:
    tps = 8 * 8192 / seconds / 4
    tflops = tps * 57.9e9 / 1e12
    torchtitan_line(f"step: {step:2d}  loss: {7.0 / (1 + step / 50):8.5f}  grad_norm: {1.25:7.4f}  "
                    f"memory: 46.82GiB(59.07%)  tps: {tps:,.0f}  tflops: {tflops:,.2f}  "
                    f"mfu: {tflops / 989 * 100:.2f}%")  # fmt: skip


def hf_header() -> None:
    out("***** Running training *****\n  Num examples = 51,760\n  Num Epochs = 1\n"
        "  Instantaneous batch size per device = 4\n"
        "  Total train batch size (w. parallel, distributed & accumulation) = 16\n"
        "  Gradient Accumulation steps = 1\n  Total optimization steps = 40400\n"
        "  Number of trainable parameters = 7,615,616,512\n")  # fmt: skip


START = time.monotonic()


def hf_step(step: int, seconds: float) -> None:
    runtime = time.monotonic() - START
    seen = step * 16 * 4096
    out(f"{{'loss': '{7.0 / (1 + step / 50):.4g}', 'grad_norm': '0.53', 'learning_rate': '9.7e-06', "
        f"'epoch': '{step / 40400:.4g}', 'num_input_tokens_seen': {seen}, 'train_runtime': '{runtime:.4g}', "
        f"'train_tokens_per_second': '{seen / runtime:.4g}'}}\n")  # fmt: skip


def header_only() -> None:
    megatron_header()
    time.sleep(3600)


FORMATS = {
    "megatron": (megatron_header, megatron_step),
    "nanogpt": (nanogpt_header, nanogpt_step),
    "torchtitan": (torchtitan_header, torchtitan_step),
    "hf": (hf_header, hf_step),
    "megatron-header": (header_only, megatron_step),
    "megatron-steps": (lambda: None, megatron_step),
}


def train_with_sdk(seconds: float, control: Path, steps: int) -> None:
    from flopwatch import StepReporter

    shape = {
        "n_layers": 32, "hidden": 4096, "ffn_hidden": 14336, "n_heads": 32, "n_kv_heads": 8, "head_dim": 128,
        "vocab": 128256, "gated_mlp": True, "tied_embeddings": False, "seq_len": 8192,
    }  # fmt: skip
    reporter = StepReporter()
    reporter.run(shape=shape, world_size=8, global_batch_size=8, sequence_length=8192, dtype="bf16")
    while steps > 0 and (seconds := current(seconds, control)) > 0:
        steps -= 1
        with reporter.step(tokens=8 * 8192):
            time.sleep(seconds)


def current(seconds: float, control: Path) -> float:
    """The step time to use now; 0 ends the run."""
    try:
        text = control.read_text().strip()
    except FileNotFoundError:
        return seconds
    return 0.0 if text == "stop" else float(text or seconds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("format", choices=[*FORMATS, "sdk"])
    parser.add_argument("--step-seconds", type=float, default=1.0)
    parser.add_argument("--startup-seconds", type=float, default=2.0)
    parser.add_argument("--control", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1_000_000, help="ends after so many")
    asked = parser.parse_args()
    if asked.format == "sdk":
        train_with_sdk(asked.step_seconds, asked.control, asked.steps)
        return
    header, step = FORMATS[asked.format]
    header()
    time.sleep(asked.startup_seconds)
    number = 0
    due = time.monotonic()
    while number < asked.steps and (seconds := current(asked.step_seconds, asked.control)) > 0:
        due += seconds
        time.sleep(max(0.0, due - time.monotonic()))
        number += 1
        step(number, seconds)


if __name__ == "__main__":
    main()
