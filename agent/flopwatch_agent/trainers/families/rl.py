"""Reinforcement learning: a step is generation, scoring and training together."""

import re

from flopwatch_agent.trainers.grammar import Field, Grammar, anchor, number_field
from flopwatch_agent.trainers.numbers import NUMBER

VERL = Grammar(
    family="veRL",
    literal="timing_s/step:",
    anchor=anchor(r"\bstep:(?P<step>\d+) - (?=[^\n]{0,60000}\btiming_s/step:)"),
    needs=("seconds",),
    fields=(
        number_field("seconds", r"\btiming_s/step:"),
        number_field("tokens", r"\bperf/total_num_tokens:"),
        number_field("tokens_per_second_per_gpu", r"\bperf/throughput:"),
        number_field("mfu_update_phase", r"\b(?:perf/)?mfu/actor:"),
        number_field("update_phase_s", r"\btiming_s/update_actor:"),
        number_field("generation_seconds", r"\btiming_s/gen:"),
        number_field("pause_seconds", r"\btiming_s/testing:"),
        number_field("save_seconds", r"\btiming_s/save_checkpoint:"),
    ),
    covers="one",
    warms_up=False,
    pauses_outside=True,
    kind="rl",
)


def _key(quantity: str, key: str) -> Field:
    return Field(quantity, re.compile(rf"'{re.escape(key)}': ({NUMBER})"))


OPENRLHF = Grammar(
    family="OpenRLHF",
    literal="Global step ",
    anchor=anchor(r"Global step (?P<step>\d+): \{"),
    needs=("loss",),
    fields=(
        _key("loss", "policy_loss"),
        _key("seconds", "timing/step_total"),
        _key("generation_seconds", "timing/generation"),
        _key("update_phase_s", "timing/ppo_train"),
    ),
    covers="one",
    warms_up=False,
    pauses_outside=True,
    kind="rl",
)

SLIME = Grammar(
    family="slime",
    literal=": {'train/",
    anchor=anchor(r"\bstep (?P<step>\d+): \{'train/"),
    needs=("loss",),
    fields=(_key("loss", "train/loss"),),
    order=(),
    first_step=0,
    warms_up=False,
    kind="rl",
    no_time="slime times a rollout, which holds several optimizer steps: see the rollouts",
)

SLIME_ROLLOUT = Grammar(
    family="slime",
    literal="perf ",
    anchor=anchor(r"\bperf (?P<rollout>\d+): \{'"),
    needs=("step_time_s",),
    fields=(
        _key("step_time_s", "perf/step_time"),
        _key("train_time_s", "perf/train_time"),
        _key("actor_train_time_s", "perf/actor_train_time"),
        _key("actor_train_tflops_per_gpu", "perf/actor_train_tflops"),
        _key("tokens_per_second", "perf/actor_train_tok_per_s"),
    ),
)
"""One rollout of slime: generation and the optimizer steps that follow it."""

TRL_GENERATION = Grammar(
    family="TRL",
    literal="'step_time'",
    anchor=anchor(r"\{(?=[^{}]*'loss': ['\"]?NUM)"),
    needs=("loss", "seconds"),
    fields=(
        Field("loss", re.compile(rf"'loss': ['\"]?({NUMBER})")),
        Field("seconds", re.compile(rf"'step_time': ['\"]?({NUMBER})")),
        Field("epoch", re.compile(rf"'epoch': ['\"]?({NUMBER})")),
        Field("total_tokens", re.compile(r"'num_tokens': (\d+(?:\.\d+)?)[,}]")),
    ),
    warms_up=False,
    pauses_outside=True,
    kind="rl",
)

GRAMMARS = (TRL_GENERATION, VERL, OPENRLHF, SLIME)
