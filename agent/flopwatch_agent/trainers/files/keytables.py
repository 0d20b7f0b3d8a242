"""Which keys of a JSON record mean which quantity: tables, one a kind of record."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from flopwatch_agent.trainers.grammar import Grammar, anchor

_NEVER = anchor(r"(?!)")


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyGrammar:
    """How one kind of record names its quantities."""

    grammar: Grammar
    has: tuple[str, ...]
    """Keys that only this kind has."""
    keys: Mapping[str, tuple[str, ...]]
    """For each quantity the keys that mean it, the better first."""
    times: tuple[str, ...] = ()
    """Keys that may hold the time of day, the better first."""
    evaluation: tuple[str, ...] = ()
    """Keys of records that tell of an evaluation."""
    scales: Mapping[str, float] = field(default_factory=dict)
    """Scale of a key's value to base units; 1 where not named."""
    enough: tuple[str, ...] = ("loss",)
    """A record with a step and one of these is a row."""


AUTOMODEL = KeyGrammar(
    grammar=Grammar(
        family="NeMo Automodel",
        rate_of_replicas=True,
        anchor=_NEVER,
        order=("tokens",),
        first_step=0,
        covers="one",
        pauses_inside=True,
    ),
    has=("step", "tps", "num_tokens_per_step"),
    keys={
        "step": ("step",),
        "loss": ("loss",),
        "tokens": ("num_tokens_per_step",),
        "tokens_per_second": ("tps",),
        "tokens_per_second_per_gpu": ("tps_per_gpu",),
    },
    times=("timestamp",),
    evaluation=("val_loss",),
)

LLAMAFACTORY = KeyGrammar(
    grammar=Grammar(family="LLaMA-Factory", anchor=_NEVER, order=("counter",), pauses_inside=True),
    has=("current_steps", "elapsed_time"),
    keys={
        "step": ("current_steps",),
        "loss": ("loss",),
        "elapsed_seconds": ("elapsed_time",),
        "total_tokens": ("total_tokens",),
        "total_steps": ("total_steps",),
        "epoch": ("epoch",),
    },
    evaluation=("eval_loss",),
)

MEGATRON_HISTORY = KeyGrammar(
    grammar=Grammar(family="Megatron-LM", anchor=_NEVER, covers="one", order=("printed",)),
    has=("_step", "lm loss"),
    keys={
        "step": ("iteration", "_step"),
        "loss": ("lm loss",),
        "seconds": ("iteration-time",),
        "tflops": ("throughput",),
        "batch": ("batch-size",),
        "world_size": ("world-size",),
    },
    times=("_timestamp",),
)

_SHARED_KEYS = {
    "loss": (
        "train/loss", "loss", "train_loss", "training_loss", "lm loss", "lm_loss", "loss_metrics/global_avg_loss",
        "train/CE loss", "train/CrossEntropyLoss", "loss/train/total", "reduced_train_loss", "train/lm_loss",
        "training/lm_loss", "loss/mean", "learning/loss",
    ),
    "seconds": (
        "time_metrics/end_to_end(s)", "train/step_time", "throughput/duration", "perf/step_time_seconds",
        "iteration-time", "train_step_timing in s", "timing_s/step", "time/step", "runtime/iteration_time",
        "training/iteration_time", "train/dt", "elapsed_time_per_iteration_ms", "time_per_iteration_ms", "step_time_ms",
        "iter_time_ms", "step_time", "step_time_s", "step_time_seconds", "seconds_per_step", "sec_per_step",
    ),
    "elapsed_seconds": (
        "train/train_runtime", "train_runtime", "elapsed_seconds", "elapsed_s", "total_training_time", "wall_time_s",
    ),
    "total_tokens": (
        "train/num_input_tokens_seen", "train/num_tokens", "throughput/total_tokens", "throughput/total tokens",
        "num_input_tokens_seen", "tokens_seen", "total_tokens",
    ),
    "tokens": ("perf/total_num_tokens", "tokens_per_step"),
    "mfu_percent": ("mfu(%)", "throughput/mfu", "throughput/device/MFU", "train/mfu", "perf/mfu"),
    "mfu": ("throughput/device/mfu",),
    "tflops": (
        "tflops", "throughput/tflops/device", "perf/per_device_tflops_per_sec", "model_tflops_per_gpu",
        "TFLOPS_per_GPU", "throughput/device/flops_per_sec",
    ),
    "steps_per_second": (
        "throughput/batches_per_sec", "throughput/device/BPS", "throughput/device/batches_per_second",
    ),
    "tokens_per_second": (
        "throughput/tokens_per_sec", "throughput/tokens_per_second", "tokens_per_sec", "tokens_per_second",
        "train/tok_per_sec",
    ),
    "tokens_per_second_per_gpu": (
        "throughput(tps)", "wps", "throughput/device/TPS", "throughput/device/tokens_per_second",
        "throughput/device/tokens_per_sec", "tokens_per_second_per_gpu", "tokens_per_sec_per_gpu",
        "perf/per_device_tokens_per_sec",
    ),
    "data_seconds": ("time_metrics/data_loading(s)", "throughput/loading_time"),
    "batch": ("batch-size", "global_batch_size"),
    "world_size": ("world-size", "world_size"),
}  # fmt: skip
_STEPS = (
    "train/global_step", "trainer/global_step", "training/global_step", "global_step", "iteration_step",
    "training/iteration", "iteration", "step", "_step",
)  # fmt: skip
_SCALES = {
    "elapsed_time_per_iteration_ms": 1e-3, "time_per_iteration_ms": 1e-3, "step_time_ms": 1e-3, "iter_time_ms": 1e-3,
    "throughput/device/flops_per_sec": 1e-12,
}  # fmt: skip
_EVALUATION = ("eval/loss", "val/loss", "validation/loss", "eval/runtime", "val_loss", "eval_loss")
_ORDER = ("printed", "counter", "rate", "tokens", "timestamps")

TRACKER_HISTORY = KeyGrammar(
    grammar=Grammar(family="Weights & Biases", anchor=_NEVER, order=_ORDER, pauses_inside=True),
    has=("_step", "_timestamp"),
    keys={"step": _STEPS, **_SHARED_KEYS},
    scales=_SCALES,
    times=("_timestamp",),
    evaluation=_EVALUATION,
    enough=("loss", "seconds"),
)

FAIRSEQ = KeyGrammar(
    grammar=Grammar(family="fairseq", anchor=_NEVER, order=("tokens",)),
    has=("num_updates", "wps", "wpb"),
    keys={
        "step": ("num_updates",),
        "loss": ("loss", "nll_loss"),
        "tokens_per_second": ("wps",),
        "tokens": ("wpb",),
    },
)

MMENGINE = KeyGrammar(
    grammar=Grammar(family="XTuner", anchor=_NEVER, window=10),
    has=("iter", "data_time", "time"),
    keys={"step": ("step", "iter"), "loss": ("loss",), "seconds": ("time",), "data_seconds": ("data_time",)},
)
"""``vis_data/scalars.json`` of MMEngine."""

MS_SWIFT = KeyGrammar(
    grammar=Grammar(family="ms-swift", anchor=_NEVER, order=("mean_counter", "counter"), pauses_inside=True),
    has=("global_step/max_steps",),
    keys={
        "step": ("global_step/max_steps",),
        "loss": ("loss",),
        "mean_seconds": ("train_speed(s/it)",),
        "mean_rate": ("train_speed(iter/s)",),
        "elapsed_seconds": ("elapsed_time",),
    },
    evaluation=("eval_loss",),
)

MEGATRON_SWIFT = KeyGrammar(
    grammar=MS_SWIFT.grammar,
    has=("iteration", "train_speed(s/it)"),
    keys={**MS_SWIFT.keys, "step": ("iteration",)},
    evaluation=("eval_loss",),
)

PLAIN = KeyGrammar(
    grammar=Grammar(
        family="JSON lines",
        anchor=_NEVER,
        order=_ORDER,
        pauses_inside=True,
        relatives=(("time_metrics/", "torchtitan"), ("perf/step_time_seconds", "MaxText")),
        no_time="write the seconds of a step (step_time_s) or the time of day (timestamp) into each record",
    ),
    has=("step",),
    keys={"step": _STEPS, **_SHARED_KEYS},
    scales=_SCALES,
    times=("timestamp", "time", "ts", "@timestamp", "asctime", "created_at", "datetime"),
    evaluation=_EVALUATION,
)
"""A record of any training loop that names its step and loss."""

PLAIN_BY_OTHER_NAMES = tuple(replace(PLAIN, has=(name,)) for name in ("iteration", "global_step"))

KINDS = (
    MS_SWIFT, MEGATRON_SWIFT, AUTOMODEL, LLAMAFACTORY, MEGATRON_HISTORY, TRACKER_HISTORY, FAIRSEQ, MMENGINE, PLAIN,
    *PLAIN_BY_OTHER_NAMES,
)  # fmt: skip
