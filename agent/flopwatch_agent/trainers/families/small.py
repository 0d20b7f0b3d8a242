"""Compact training code bases and example loops: one line a step, none of it shared with the large families."""

from flopwatch_agent.trainers.grammar import Grammar, anchor, number_field, suffixed_field

MIN_GPT = Grammar(
    family="minGPT",
    literal="iter_dt ",
    anchor=anchor(r"\biter_dt (?P<seconds>NUM)ms; iter (?P<step>\d+): train loss (?P<loss>NUM)"),
    units={"seconds": 1e-3},
    covers="one",
    first_step=0,
)

LLAMA2_C = Grammar(
    family="llama2.c",
    literal=" | loss ",
    anchor=anchor(r"(?:^|\s)(?P<step>\d+) \| loss (?P<loss>NUM) \| lr NUM \| (?P<seconds>NUM)ms"),
    units={"seconds": 1e-3},
    fields=(number_field("mfu", r"\| mfu ", "%", 1e-2),),
    covers="one",
    first_step=0,
    pauses_inside=True,
)

LINGUA = Grammar(
    family="Lingua",
    literal="  acc: ",
    anchor=anchor(r"\bstep: (?P<step>\d+)\s+acc: \d+\s+loss:\s*(?P<loss>NUM)"),
    needs=("seconds",),
    fields=(
        number_field("seconds", r"\biter:\s*"),
        number_field("data_seconds", r"\bdata:\s*"),
        number_field("tflops", r"\bflops:\s*", scale=1e-12),
        number_field("tokens_per_second_per_gpu", r"\bwps:\s*"),
    ),
    covers="one",
)

PICOTRON = Grammar(
    family="picotron",
    literal="| Global batch size: ",
    anchor=anchor(r"\bStep: (?P<step>\d+)\s*\| Loss:\s*(?P<loss>NUM)"),
    needs=("tokens_per_second",),
    fields=(
        suffixed_field("tokens", r"Global batch size:\s*"),
        suffixed_field("tokens_per_second_per_gpu", r"Tokens/s/GPU:\s*"),
        suffixed_field("tokens_per_second", r"Tokens/s:\s*"),
        number_field("mfu", r"\bMFU:\s*", "%", 1e-2),
    ),
    covers="one",
)

MINDFORMERS = Grammar(
    family="MindFormers",
    literal="per_step_time: ",
    anchor=anchor(
        r"\bEpoch:\[\s*(?P<epoch_number>\d+)/\s*\d+\], step:\[\s*(?P<step_in_epoch>\d+)/\s*(?P<steps_in_epoch>\d+)\],"
        r"\s+loss:\s*(?:\[\s*)?(?P<loss>NUM)"
    ),
    needs=("seconds",),
    fields=(
        number_field("seconds", r"per_step_time: ", "ms", 1e-3),
        number_field("tflops", r"train_throughput_per_npu: ", "T"),
    ),
)

CLU = Grammar(
    family="CLU",
    literal="steps_per_second=",
    anchor=anchor(r"\] \[(?P<step>\d+)\] (?=\w)"),
    needs=("steps_per_second", "loss"),
    fields=(
        number_field("steps_per_second", r"\b(?:train_|timing/)?steps_per_second="),
        number_field("loss", r"\b(?:train[_/])?(?:training_)?loss="),
    ),
    order=("rate",),
)
"""The writer of metrics that Flax's examples, T5X and Scenic print with."""

ESTIMATOR = Grammar(
    family="TensorFlow",
    literal=", step = ",
    anchor=anchor(r"\bloss = (?P<loss>NUM), step = (?P<step>\d+)(?: \((?P<interval_seconds>NUM) sec\))?"),
    order=("interval",),
    first_step=0,
    untimed_is_warm_up=True,
)

MODEL_GARDEN = Grammar(
    family="TensorFlow",
    literal="| steps/sec: ",
    anchor=anchor(r"\btrain \| step:\s*(?P<step>\d+) \| steps/sec:\s*(?P<steps_per_second>NUM) \|"),
    needs=("loss",),
    fields=(number_field("loss", r"'(?:training_|total_)?loss': "),),
    order=("rate",),
)

DLRM = Grammar(
    family="DLRM",
    literal=" ms/it, loss ",
    anchor=anchor(
        r"\bFinished training it (?P<step_in_epoch>\d+)/(?P<steps_in_epoch>\d+) of epoch (?P<epoch_index>\d+),"
        r" (?P<seconds>NUM) ms/it, loss (?P<loss>NUM)"
    ),
    units={"seconds": 1e-3},
)

MARIAN = Grammar(
    family="Marian",
    literal=" : Up. ",
    anchor=anchor(r"\bEp\. \d+ : Up\. (?P<step>[\d,]+) : Sen\. [\d,]+ : Cost (?P<loss>NUM)"),
    needs=("interval_seconds",),
    fields=(number_field("interval_seconds", r": Time ", "s "),),
    order=("interval",),
    pauses_inside=True,
)

GRAMMARS = (
    MIN_GPT, LLAMA2_C, LINGUA, PICOTRON, MINDFORMERS, CLU, ESTIMATOR, MODEL_GARDEN, DLRM, MARIAN,
)  # fmt: skip
