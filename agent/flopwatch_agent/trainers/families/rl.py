"""Reinforcement learning: a step is generation, scoring and training together."""

import re

from flopwatch_agent.trainers.grammar import Field, Grammar, anchor
from flopwatch_agent.trainers.numbers import NUMBER


def _colon(quantity: str, key: str) -> Field:
    """A ``key:value`` of veRL; under numpy 2 the value may be printed as ``np.float64(1.5)``."""
    return Field(quantity, re.compile(rf"\b{key}:(?:np\.\w+\()?({NUMBER})"))


VERL = Grammar(
    family="veRL",
    literal="/step:",
    anchor=anchor(r"\bstep:(?P<step>\d+) - (?=[^\n]{0,60000}\btiming(?:_s)?/step:)"),
    needs=("seconds",),
    fields=(
        _colon("seconds", r"timing(?:_s)?/step"),
        _colon("tokens", r"perf/total_num_tokens"),
        _colon("tokens_per_second_per_gpu", r"perf/throughput"),
        _colon("mfu_update_phase", r"(?:perf/)?mfu/actor"),
        _colon("update_phase_s", r"timing(?:_s)?/update_actor"),
        _colon("generation_seconds", r"timing(?:_s)?/gen"),
        _colon("pause_seconds", r"timing(?:_s)?/testing"),
        _colon("save_seconds", r"timing(?:_s)?/save_checkpoint"),
    ),
    covers="one",
    warms_up=False,
    pauses_outside=True,
    kind="rl",
)


VERL_TUNING = Grammar(
    family="veRL",
    literal=" - train/loss:",
    anchor=anchor(r"\bstep:(?P<step>\d+) - (?=[^\n]{0,2000}\btrain/loss:)"),
    needs=("loss",),
    fields=(
        _colon("loss", r"train/loss"),
        _colon("seconds", r"train/time\(s\)"),
        _colon("tokens", r"train/global_tokens"),
        _colon("mfu", r"train/mfu"),
    ),
    covers="one",
    warms_up=False,
    pauses_outside=True,
    no_time="this version of veRL's SFT trainer prints no time: follow the file live, or use StepReporter",
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
    no_time="this version of OpenRLHF prints no timing/step_total: a later one does",
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

NEMO_RL = Grammar(
    family="NeMo-RL",
    literal="otal step time: ",
    anchor=anchor(r"^\W*Total step time: (?P<seconds>NUM)s\s*$"),
    covers="one",
    warms_up=False,
    kind="rl",
)
"""The end of a step's report; what comes before it are companions."""

NEMO_RL_STEP = Grammar(
    family="NeMo-RL",
    literal="= Step ",
    anchor=anchor(r"={10,} Step (?P<step_in_epoch>\d+)/(?P<steps_in_epoch>\d+) ={10,}"),
)
NEMO_RL_EPOCH = Grammar(
    family="NeMo-RL",
    literal="= Epoch ",
    anchor=anchor(r"={10,} Epoch (?P<epoch_number>\d+)/\d+ ={10,}"),
)
NEMO_RL_LOSS = Grammar(family="NeMo-RL", literal="Loss: ", anchor=anchor(r"^\W{0,8}Loss: (?P<loss>NUM)\s*$"))

TRL_GENERATION = Grammar(
    family="TRL",
    literal="'step_time'",
    anchor=anchor(r"\{(?=[^{}]*'loss': ['\"]?NUM)"),
    needs=("loss", "seconds"),
    fields=(
        Field("loss", re.compile(rf"'loss': ['\"]?({NUMBER})")),
        Field("seconds", re.compile(rf"'step_time': ['\"]?({NUMBER})")),
        Field("epoch", re.compile(rf"'epoch': ['\"]?({NUMBER})")),
        Field("total_tokens", re.compile(r"'num_tokens': '?(\d+(?:\.\d+)?)'?[,}]")),
    ),
    warms_up=False,
    pauses_outside=True,
    kind="rl",
)

TRL_EPISODES = Grammar(
    family="TRL",
    literal="'objective/kl'",
    anchor=anchor(r"\{(?=[^{}]*'loss/policy_avg': ['\"]?NUM)"),
    needs=("loss", "epoch"),
    fields=(
        Field("loss", re.compile(rf"'loss/policy_avg': ['\"]?({NUMBER})")),
        Field("epoch", re.compile(rf"'epoch': ['\"]?({NUMBER})")),
    ),
    order=("bar",),
    warms_up=False,
    kind="rl",
    no_time="TRL's PPO prints no step time: report_to tensorboard or wandb, or use the flopwatch callback",
)
"""PPO and RLOO: their dict counts episodes, the step is that of the bar."""

DEEPSPEED_CHAT = Grammar(
    family="DeepSpeed-Chat",
    literal="-End => Latency:",
    anchor=anchor(r"\bEnd-to-End => Latency:\s*(?P<seconds>NUM)s"),
    begun_by="step_in_epoch",
    fields=(Field("tflops", re.compile(rf"\bTFLOPs:\s*({NUMBER})")),),
    covers="one",
    first_step=0,
    warms_up=False,
    kind="rl",
)
"""Generation and training of a step; the line before it tells the step."""

DEEPSPEED_CHAT_STEP = Grammar(
    family="DeepSpeed-Chat",
    literal="| PPO Epoch: ",
    anchor=anchor(
        r"\bEpoch: (?P<epoch_index>\d+) \| Step: (?P<step_in_epoch>\d+) \| PPO Epoch: \d+ \| Actor Loss: (?P<loss>NUM)"
    ),
    secondary=True,
)

GRAMMARS = (TRL_GENERATION, TRL_EPISODES, VERL, VERL_TUNING, OPENRLHF, SLIME, NEMO_RL, DEEPSPEED_CHAT)
