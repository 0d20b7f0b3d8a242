"""The HF Trainer and everything that prints through it: a Python dict for each logging step."""

import re

from flopwatch_agent.trainers.grammar import Field, Grammar, anchor, duration_field
from flopwatch_agent.trainers.numbers import NUMBER


def _key(quantity: str, key: str) -> Field:
    """A dict entry; since transformers 5 its number is a quoted text."""
    return Field(quantity, re.compile(rf"'{re.escape(key)}': ['\"]?({NUMBER})"))


_LOSS_DICT = r"\{(?=[^{}]*'loss': ['\"]?NUM)"

LLAMA_FACTORY = Grammar(
    family="LLaMA-Factory",
    literal=">> {'loss'",
    anchor=anchor(r"\bcallbacks(?:\.py)?:\d+[^\n]{0,60}? >> (?=\{'loss': NUM)"),
    needs=("loss", "epoch"),
    fields=(_key("loss", "loss"), _key("epoch", "epoch")),
    order=(),
    secondary=True,
)
"""Its callback says beside the Trainer's dict, and before it, what that says as well."""

HUGGINGFACE = Grammar(
    family="HF Trainer",
    literal="'loss': ",
    anchor=anchor(_LOSS_DICT),
    needs=("loss", "epoch"),
    unless=anchor(
        r"callbacks(?:\.py)?:\d+[^\n]{0,60}? >> \{|'dataset_|'train_runtime': [^}]*'train_loss'"
        r"|'global_step/max_steps'|'train_speed\(|'epoch': [^{}]{0,2000}'epoch': "
    ),
    fields=(
        _key("loss", "loss"),
        _key("epoch", "epoch"),
        _key("step", "step"),
        _key("seconds", "step_time"),
        _key("elapsed_seconds", "train_runtime"),
        _key("total_tokens", "num_input_tokens_seen"),
        _key("total_tokens", "tokens/total"),
        Field("total_tokens", re.compile(r"'num_tokens': '?(\d+(?:\.\d+)?)'?[,}]")),
        _key("trained_tokens_total", "tokens/trainable"),
        _key("trained_tokens_per_second_per_gpu", "tokens/train_per_sec_per_gpu"),
        _key("trained_tokens_per_second_per_gpu", "tokens_per_second_per_gpu"),
    ),
    order=("printed", "counter", "trained_tokens", "bar"),
    pauses_inside=True,
    relatives=(("'tokens/trainable'", "Axolotl"), ("'num_tokens'", "TRL")),
    no_time="set include_num_input_tokens_seen, or report_to tensorboard or wandb, or use the flopwatch callback",
)

MS_SWIFT = Grammar(
    family="ms-swift",
    literal="'loss': ",
    anchor=anchor(_LOSS_DICT),
    needs=("loss", "step"),
    fields=(
        _key("loss", "loss"),
        Field("step", re.compile(r"'(?:global_step(?:/max_steps)?|iteration)': '?(\d+)[/,}]")),
        Field("total_steps", re.compile(r"'(?:global_step/max_steps|iteration)': '\d+/(\d+)'")),
        _key("mean_seconds", "train_speed(s/it)"),
        _key("mean_rate", "train_speed(iter/s)"),
        duration_field("elapsed_seconds", r"'elapsed_time': '", r"[^']*", "'"),
    ),
    pauses_inside=True,
)

PADDLENLP = Grammar(
    family="PaddleNLP",
    literal="interval_runtime",
    anchor=anchor(r"\bloss: (?P<loss>NUM), learning_rate: NUM, global_step: (?P<step>\d+)"),
    needs=("interval_seconds",),
    fields=(
        Field("interval_seconds", re.compile(rf"interval_runtime: ({NUMBER})")),
        Field("samples_per_second", re.compile(rf"interval_samples_per_second: ({NUMBER})")),
        Field("tokens_per_second_per_gpu", re.compile(rf"interval_tokens_per_second_per_device: ({NUMBER})")),
        Field("tflops", re.compile(rf"interval_hardware_tflops_per_device: ({NUMBER})")),
    ),
)

PADDLE_SPEED = Grammar(
    family="PaddleNLP",
    literal="global step ",
    anchor=anchor(r"\bglobal step (?P<step>\d+), epoch: \d+,[^\n]{0,200}?\bloss: (?P<loss>NUM)"),
    needs=("seconds|steps_per_second",),
    fields=(
        Field("seconds", re.compile(rf"avg_batch_cost: ({NUMBER}) s")),
        Field("steps_per_second", re.compile(rf"\bspeed: ({NUMBER}) steps?/s")),
        Field("tokens_per_second", re.compile(rf"ips_total: ({NUMBER}) tokens/s")),
        Field("tokens_per_second_per_gpu", re.compile(rf"\bips: ({NUMBER}) tokens/s")),
    ),
)

GRAMMARS = (MS_SWIFT, LLAMA_FACTORY, HUGGINGFACE, PADDLENLP, PADDLE_SPEED)
