"""Megatron-LM of all ages and what grew out of it."""

from flopwatch_agent.trainers.grammar import Grammar, anchor, number_field, suffixed_field

MEGATRON = Grammar(
    family="Megatron-LM",
    literal="time per iteration (",
    anchor=anchor(r"(?<!['\"`])\biteration:?\s+(?P<step>\d+)(?:/\s*(?P<total_steps>\d+))?\s*\|"),
    needs=("seconds",),
    fields=(
        number_field("seconds", r"elapsed time per iteration \(ms\):?\s*", scale=1e-3),
        number_field("seconds", r"elapsed time per iteration \(s\):?\s*"),
        suffixed_field("tflops", r"approx flops per GPU:\s*", "FLOPS", 1e-12),
        number_field("tflops", r"throughput per GPU \(TFLOP/s/GPU\):\s*"),
        number_field("tflops", r"\|\s*TFLOPs:\s*"),
        number_field("mfu", r"\bMFU:\s*", "%", 1e-2),
        number_field("mfu", r"\bmfu:\s*", r"\s*\|", 1e-2),
        number_field("hfu", r"\bHFU:\s*", "%", 1e-2),
        number_field("tokens_per_second_per_gpu", r"tokens per gpu per second \(tgs\):\s*"),
        number_field("tokens_per_second_per_gpu", r"tokens per GPU \(tokens/s/GPU\):\s*"),
        number_field("tokens_per_second", r"\btokens/s:\s*"),
        number_field("batch", r"global batch size:\s*"),
        number_field("samples", r"consumed samples:\s*"),
        number_field("total_tokens", r"consumed tokens:\s*"),
        number_field("loss", r"\blm[ _]loss:?\s*"),
        number_field("loss", r"\breduced_train_loss:?\s*"),
        number_field("loss", r"\|\s*loss:\s*"),
        number_field("skipped", r"number of skipped iterations:\s*"),
    ),
    relatives=(
        ("approx flops per GPU", "GPT-NeoX"),
        ("(tgs)", "Megatron-DeepSpeed"),
        ("core attn ratio", "MindSpeed-LLM"),
        ("| tokens/s:", "MindSpeed-LLM"),
        ("tokens/s/GPU", "Primus"),
    ),
)

NANOTRON = Grammar(
    family="nanotron",
    literal="time_per_iteration_ms: ",
    anchor=anchor(r"\biteration: (?P<step>\d+) / (?P<total_steps>\d+) \|"),
    needs=("seconds",),
    fields=(
        suffixed_field("seconds", r"time_per_iteration_ms:\s*", scale=1e-3),
        suffixed_field("tokens_per_second_per_gpu", r"tokens_per_sec_per_gpu:\s*"),
        suffixed_field("tokens_per_second", r"tokens_per_sec:\s*"),
        suffixed_field("batch_or_tokens", r"global_batch_size:\s*"),
        suffixed_field("loss", r"\blm_loss:\s*"),
        suffixed_field("tflops", r"model_tflops_per_gpu:\s*"),
    ),
)

MEGATRON_KEYS = Grammar(
    family="Megatron-DeepSpeed",
    literal="time_per_iteration_ms=",
    anchor=anchor(r"\biteration=\s*(?P<step>\d+)/\s*(?P<total_steps>\d+)\s*\|"),
    needs=("seconds",),
    fields=(
        number_field("seconds", r"time_per_iteration_ms=\s*", scale=1e-3),
        number_field("tokens_per_second_per_gpu", r"tokens_per_gpu_per_second_tgs=\s*"),
        number_field("tflops", r"\|\s*(?:\[LM\]-?)?TFLOPs=\s*"),
        number_field("batch", r"global_batch_size=\s*"),
        number_field("samples", r"consumed_samples=\s*"),
        number_field("total_tokens", r"consumed_tokens=\s*"),
        number_field("loss", r"\blm[ _]loss=\s*"),
        number_field("skipped", r"number_of_skipped_iterations=\s*"),
    ),
)

NEMO = Grammar(
    family="NeMo",
    literal="train_step_timing",
    anchor=anchor(r"(?:Training epoch \d+, iteration \d+/\d+ \||\bEpoch \d+:)"),
    needs=("step", "seconds"),
    unless=anchor(r"Validation"),
    fields=(
        number_field("step", r"\bglobal_step[:=]\s*"),
        number_field("seconds", r"train_step_timing in s[:=]\s*"),
        number_field("tflops", r"TFLOPS_per_GPU[:=]\s*"),
        number_field("loss", r"\breduced_train_loss[:=]\s*"),
        number_field("batch", r"\bglobal_batch_size[:=]\s*"),
        number_field("samples", r"\bconsumed_samples[:=]\s*"),
    ),
    covers="one",
    first_step=0,
)

DEEPSPEED_PIPELINE = Grammar(
    family="DeepSpeed",
    literal="iter time (s)",
    anchor=anchor(r"\bsteps: (?P<step>\d+) loss: (?P<loss>NUM)\s"),
    needs=("seconds",),
    fields=(
        number_field("seconds", r"iter time \(s\): "),
        number_field("samples_per_second", r"samples/sec: "),
    ),
    secondary=True,
)

DEEPSPEED_STEP = Grammar(
    family="DeepSpeed",
    literal=", skipped=",
    anchor=anchor(r"\bstep=(?P<step>\d+), skipped=(?P<skipped_total>\d+), lr="),
    order=("samples", "timestamps_only"),
    untimed_is_warm_up=True,
    warms_up=False,
    secondary=True,
    no_time="set wall_clock_breakdown or steps_per_print in the DeepSpeed configuration",
)

DEEPSPEED_TIMER = Grammar(
    family="DeepSpeed",
    literal="SamplesPerSec=",
    anchor=anchor(r"(?:\bglobal_step=|:stop\] \d+/)(?P<step>\d+), RunningAvgSamplesPerSec="),
    needs=("samples_per_second",),
    fields=(number_field("samples_per_second", r"CurrSamplesPerSec="),),
    order=("samples",),
    untimed_is_warm_up=True,
    warms_up=False,
    secondary=True,
)

BRIDGE_COMPANION = Grammar(
    family="Megatron-Bridge",
    literal="Step Time :",
    anchor=anchor(r"\bStep Time : (?P<seconds>NUM)s GPU utilization: (?P<tflops>NUM)MODEL_TFLOP/s/GPU"),
)
"""Rank 0's half of a Megatron-Bridge step: it has no step number and completes the last rank's line."""

GRAMMARS = (MEGATRON, NANOTRON, MEGATRON_KEYS, NEMO, DEEPSPEED_PIPELINE, DEEPSPEED_STEP, DEEPSPEED_TIMER)
