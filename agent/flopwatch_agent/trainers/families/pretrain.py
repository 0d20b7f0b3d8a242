"""Trainers whose step is one line of their own."""

from flopwatch_agent.trainers.grammar import Grammar, anchor, duration_field, number_field, suffixed_field

TORCHTITAN = Grammar(
    family="torchtitan",
    literal="step:",
    anchor=anchor(r"(?<!validate )\bstep:\s*(?P<step>\d+)\s+loss:\s*(?P<loss>NUM)"),
    needs=("tokens_per_second_per_gpu|seconds",),
    fields=(
        number_field("seconds", r"\biter:\s*"),
        number_field("tokens_per_second_per_gpu", r"\b(?:tps|wps):\s*"),
        number_field("tflops", r"\btflops:\s*"),
        number_field("mfu", r"\bmfu:\s*", "%", 1e-2),
    ),
    order=("printed", "tokens", "timestamps"),
)

NANOGPT = Grammar(
    family="nanoGPT",
    literal=": loss ",
    anchor=anchor(r"\biter (?P<step>\d+): loss (?P<loss>NUM), time (?P<seconds>NUM)ms"),
    units={"seconds": 1e-3},
    fields=(number_field("mfu", r"\bmfu ", "%", 1e-2),),
    covers="one",
    first_step=0,
    pauses_inside=True,
)

BUILD_NANOGPT = Grammar(
    family="nanoGPT",
    literal="dt: ",
    anchor=anchor(r"\bstep\s+(?P<step>\d+)(?:, | \| )(?:train )?loss: (?P<loss>NUM)"),
    needs=("seconds", "tokens_per_second"),
    fields=(
        number_field("seconds", r"\bdt: ", "ms", 1e-3),
        number_field("tokens_per_second", r"\btok/s(?:ec)?: "),
    ),
    covers="one",
    first_step=0,
    pauses_outside=True,
)

NANOCHAT = Grammar(
    family="nanochat",
    literal="| loss: ",
    anchor=anchor(r"\bstep (?P<step>\d+)(?:/(?P<total_steps>\d+))? \([\d.]+%\)\s*\| loss: (?P<loss>NUM)"),
    needs=("seconds",),
    fields=(
        number_field("seconds", r"\bdt: ", "ms", 1e-3),
        number_field("tokens_per_second", r"\btok/s(?:ec)?: "),
        number_field("mfu", r"\b(?:bf16_)?mfu: ", scale=1e-2),
    ),
    covers="one",
    first_step=0,
    warm_up_steps=3,
    pauses_outside=True,
)

NANOCHAT_TUNING = Grammar(
    family="nanochat",
    literal="| Training loss: ",
    anchor=anchor(r"\bStep (?P<step>\d+)/(?P<total_steps>\d+) \| Training loss: (?P<loss>NUM)"),
    order=(),
    first_step=0,
    no_time="nanochat's tuning scripts print no time: follow the file live, or use StepReporter",
)

LLM_C = Grammar(
    family="llm.c",
    literal=" ms |",
    anchor=anchor(r"\bstep\s+(?P<step>\d+)/(?P<total_steps>\d+) \| (?:train )?loss (?P<loss>NUM)"),
    needs=("seconds",),
    fields=(
        number_field("seconds", r"\|\s*", r" ms\b", 1e-3),
        number_field("mfu", r"\|\s*", r"% [\w ]{2,20} MFU", 1e-2),
    ),
    covers="one",
    pauses_outside=True,
)

LLM_C_BRACKETED = Grammar(
    family="llm.c",
    literal=" ms",
    anchor=anchor(
        r"\bstep\s+(?P<step>\d+)(?:/\s*(?P<total_steps>\d+))?(?:: | \| )(?:train )?loss (?P<loss>NUM)"
        r"(?=[^\n]{0,120}?\((?:took )?NUM ms\b)"
    ),
    needs=("seconds",),
    fields=(
        number_field("seconds", r"\((?:took )?", r" ms\b", 1e-3),
        number_field("tokens_per_second", r"ms(?: \||,) ", r" tok/s\b"),
    ),
    covers="one",
    pauses_outside=True,
)

MODDED_NANOGPT = Grammar(
    family="modded-nanogpt",
    literal="train_time:",
    anchor=anchor(
        r"\bstep:(?P<step>\d+)/(?P<total_steps>\d+) (?:train_loss:(?P<loss>NUM) )?"
        r"train_time:(?:(?P<elapsed_milliseconds>NUM)ms|(?P<elapsed_seconds>NUM)s) step_avg:"
    ),
    warm_up_steps=9,
    pauses_outside=True,
)

AUTOMODEL = Grammar(
    family="NeMo Automodel",
    literal="| loss ",
    anchor=anchor(r"\bstep (?P<step>\d+) \| epoch \d+ \| loss (?P<loss>NUM)"),
    unless=anchor(r"\[val\]"),
    needs=("tokens_per_second",),
    fields=(
        number_field("tokens_per_second_per_gpu", r"\btps [\d.,]+\(", "/gpu"),
        number_field("tokens_per_second", r"\btps "),
        number_field("mfu", r"\bmfu[ :]+", "%", 1e-2),
    ),
    order=("timestamps",),
    rate_of_replicas=True,
    first_step=0,
    pauses_inside=True,
)

PRIME_RL = Grammar(
    family="prime-rl",
    literal="| Time: ",
    anchor=anchor(r"\bStep (?P<step>\d+) \| Time: (?P<seconds>NUM)s \|"),
    needs=("loss",),
    fields=(
        number_field("loss", r"\bLoss: "),
        number_field("tokens_per_second", r"Throughput: ", " tokens/s"),
        number_field("mfu", r"\bMFU: ", "%", 1e-2),
    ),
    covers="one",
    first_step=0,
)

TORCHTUNE = Grammar(
    family="torchtune",
    literal="| loss:",
    anchor=anchor(r"\bStep (?P<step>\d+) \| loss:(?P<loss>NUM)"),
    fields=(number_field("tokens_per_second_per_gpu", r"tokens_per_second_per_gpu:"),),
    order=("bar",),
    no_time="torchtune logs neither a time nor the tokens of a step: follow the file live, or use StepReporter",
)

LITGPT = Grammar(
    family="LitGPT",
    literal="iter time: ",
    anchor=anchor(r"\biter (?P<micro_steps>\d+) step (?P<step>\d+)(?: \| loss train:|: loss) (?P<loss>NUM)"),
    needs=("micro_iteration_time_s",),
    fields=(number_field("micro_iteration_time_s", r"iter time: ", " ?ms", 1e-3),),
    order=("micro_sum",),
    covers="one",
    micro=True,
    no_time="LitGPT times one micro batch only: follow the file live, or use the CSV logger or StepReporter",
)

MAXTEXT = Grammar(
    family="MaxText",
    literal="completed step: ",
    anchor=anchor(r"\bcompleted step: (?P<step>\d+), seconds: (?P<seconds>NUM)"),
    fields=(
        number_field("tflops", r"TFLOP/s(?:/device)?: "),
        number_field("tokens_per_second_per_gpu", r"Tokens/s/device: "),
        number_field("tokens", r"total_weights: "),
        number_field("loss", r"\bloss: "),
    ),
    covers="one",
    first_step=0,
    warm_up_steps=4,
    pauses_outside=True,
)

FAIRSEQ = Grammar(
    family="fairseq",
    literal="num_updates=",
    anchor=anchor(r"\bepoch \d+:(?:\s+\d+ / \d+ |[^\n]{0,200}?, )(?:nll_)?loss=(?P<loss>NUM),"),
    needs=("step", "tokens_per_second", "tokens"),
    fields=(
        number_field("step", r"\bnum_updates="),
        number_field("tokens_per_second", r"\bwps="),
        number_field("tokens", r"\bwpb="),
    ),
)

FAIRSEQ_JSON = Grammar(
    family="fairseq",
    literal='"num_updates"',
    anchor=anchor(r"\{\"epoch\": \d+, (?=[^{}]{0,2000}\"update\": )"),
    needs=("step", "tokens_per_second", "tokens"),
    fields=(
        number_field("step", r"\"num_updates\": \"?"),
        number_field("loss", r"\"(?:nll_)?loss\": \"?"),
        number_field("tokens_per_second", r"\"wps\": \"?"),
        number_field("tokens", r"\"wpb\": \"?"),
    ),
)

LEVANTER = Grammar(
    family="Levanter",
    literal="Progress on:train",
    anchor=anchor(r"Progress on:train\s"),
    needs=("step", "bar_seconds"),
    fields=(
        suffixed_field("step", r"Progress on:train ", "it/"),
        suffixed_field("total_steps", r"it/", "it rate:"),
        duration_field("bar_seconds", r"elapsed:", r"[\d:]+"),
        number_field("loss", r"postfix:[^\n]{0,200}?\bloss="),
    ),
    order=("bar_counter",),
    pauses_inside=True,
)

XTUNER = Grammar(
    family="XTuner",
    literal="(train)",
    anchor=anchor(
        r"\b(?:Iter\(train\)\s+\[\s*(?P<step>\d+)/(?P<total_steps>\d+)\]"
        r"|Epoch\(train\)\s+\[(?P<epoch_number>\d+)\]\[\s*(?P<step_in_epoch>\d+)/(?P<steps_in_epoch>\d+)\])"
    ),
    needs=("step|steps_in_epoch", "seconds"),
    fields=(
        number_field("seconds", r"\stime: "),
        number_field("data_seconds", r"\sdata_time: "),
        number_field("loss", r"\sloss: "),
    ),
    window=10,
)

XTUNER_ENGINE = Grammar(
    family="XTuner",
    literal="[XTuner]",
    anchor=anchor(r"\[XTuner\][^\n]{0,200}?\bStep (?P<step>\d+)/(?P<total_steps>\d+)\b"),
    needs=("seconds", "loss"),
    fields=(
        number_field("seconds", r"[^_]\btime: "),
        number_field("data_seconds", r"\bdata_time: "),
        number_field("loss", r"\b(?:total_)?loss: "),
        number_field("tokens_per_second_per_gpu", r"\btgs: "),
    ),
    covers="one",
)

INTERNEVO = Grammar(
    family="InternEvo",
    literal="tgs (tokens",
    anchor=anchor(r"(?:\btflops=(?P<tflops>NUM)[ ,])?\bstep=(?P<step>\d+)[ ,]loss=(?P<loss>NUM)[ ,]"),
    needs=("tokens_per_second_per_gpu", "total_tokens"),
    fields=(
        number_field("tokens_per_second_per_gpu", r"tgs \(tokens/gpu/second\)="),
        number_field("total_tokens", r"num_consumed_tokens="),
    ),
    order=("tokens", "timestamps"),
    first_step=0,
)

GRAMMARS = (
    TORCHTITAN, NANOGPT, NANOCHAT, BUILD_NANOGPT, NANOCHAT_TUNING, LLM_C, LLM_C_BRACKETED, MODDED_NANOGPT,
    AUTOMODEL, PRIME_RL, TORCHTUNE, LITGPT, MAXTEXT, FAIRSEQ, FAIRSEQ_JSON, LEVANTER, XTUNER, XTUNER_ENGINE,
    INTERNEVO,
)  # fmt: skip
