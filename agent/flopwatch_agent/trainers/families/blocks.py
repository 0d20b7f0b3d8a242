"""Trainers whose step is a block of lines: a head line and what is indented below it, or a dict over lines."""

import re

from flopwatch_agent.trainers.grammar import Field, Grammar, anchor, number_field, suffixed_field
from flopwatch_agent.trainers.numbers import NUMBER

OLMO_CORE = Grammar(
    family="OLMo-core",
    literal="[step=",
    anchor=anchor(r"\[step=(?P<step>[\d,]+)/(?P<total_steps>[\d,]+)(?:,[^\]]*)?\]"),
    block="indented",
    needs=("loss",),
    fields=(
        number_field("loss", r"\btrain/CE loss="),
        number_field("tokens_per_second_per_gpu", r"throughput/device/TPS="),
        number_field("total_tokens", r"throughput/total tokens="),
        suffixed_field("tflops", r"throughput/device/flopsPS=", scale=1e-12),
        number_field("steps_per_second", r"throughput/device/BPS="),
        number_field("mfu", r"throughput/device/MFU=", scale=1e-2),
        number_field("data_seconds", r"data loading \(s\)="),
    ),
    order=("rate",),
    covers="one",
    untimed_is_warm_up=True,
    warms_up=False,
)

OLMO = Grammar(
    family="OLMo",
    literal="[step=",
    anchor=OLMO_CORE.anchor,
    block="indented",
    needs=("loss", "steps_per_second"),
    fields=(
        number_field("loss", r"\btrain/CrossEntropyLoss="),
        number_field("tokens_per_second_per_gpu", r"throughput/device/tokens_per_second="),
        number_field("total_tokens", r"throughput/total_tokens="),
        number_field("steps_per_second", r"throughput/device/batches_per_second="),
    ),
    order=("rate",),
    window=20,
)

COMPOSER = Grammar(
    family="Composer",
    literal="]:",
    anchor=anchor(
        r"(?:\[epoch=(?P<epoch_number>\d+)(?:/\d+)?\]\[batch=(?P<step_in_epoch>\d+)(?:/(?P<steps_in_epoch>\d+))?\]"
        r"|(?<!\])\[batch=(?P<step>\d+)/(?P<total_steps>\d+)\]|\[(?:token|sample)=[\d,]+/[\d,]+\]):"
    ),
    unless=anchor(r"\[Eval batch="),
    block="tabbed",
    needs=("loss", "step|steps_in_epoch|steps_before"),
    fields=(
        number_field("steps_before", r"Train time/batch: "),
        number_field("loss", r"Train loss/train/total: "),
        number_field("tokens_per_second", r"throughput/tokens_per_sec: "),
        number_field("tokens_per_second_per_gpu", r"throughput/device/tokens_per_sec: "),
        number_field("tflops", r"throughput/device/flops_per_sec: ", scale=1e-12),
        number_field("mfu", r"throughput/device/mfu: "),
        number_field("steps_per_second", r"throughput/batches_per_sec: "),
        number_field("total_tokens_before", r"time/token: "),
    ),
    order=("tokens", "rate"),
    window=100,
    untimed_is_warm_up=True,
    warms_up=False,
    pauses_outside=True,
)

EASYLM = Grammar(
    family="EasyLM",
    literal="'param_norm'",
    anchor=anchor(r"\{(?=[^{}]*'(?:gradient_norm|dataset_total_tokens)': )"),
    needs=("step", "loss"),
    fields=(
        Field("loss", re.compile(rf"'loss': ({NUMBER})")),
        Field("step", re.compile(r"'step': (\d+)")),
        Field("total_tokens_after", re.compile(r"'dataset_total_tokens': (\d+)")),
    ),
    order=("bar",),
    first_step=0,
    warm_up_steps=2,
    pauses_inside=True,
)

GRAMMARS = (OLMO_CORE, OLMO, COMPOSER, EASYLM)
