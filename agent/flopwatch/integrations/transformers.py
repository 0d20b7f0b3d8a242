"""The Hugging Face ``Trainer``, and what is built on it (TRL, Axolotl, LLaMA-Factory, ms-swift).

from flopwatch.integrations.transformers import FlopwatchCallback

trainer = Trainer(..., callbacks=[FlopwatchCallback()])
"""

import os
from typing import Any

from transformers import TrainerCallback

from flopwatch.integrations.model_facts import model_facts, number_format
from flopwatch.integrations.progress import Progress


class FlopwatchCallback(TrainerCallback):
    """Tells the node's agent every optimizer step, evaluation and save.

    ``facts`` state what the Trainer does not know, such as ``sequence_length=4096`` or ``job_name="run-7"``: any of
    ``flopwatch.report.RUN_KEYS``. Tokens are told with ``include_num_input_tokens_seen`` in the arguments, or, for
    sequences of one length, with ``sequence_length``.
    """

    def __init__(self, **facts: object) -> None:
        self.progress = Progress(facts)
        self._seen = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """Tell the run's facts."""
        with self.progress as progress:
            self._seen = state.num_input_tokens_seen
            progress.begin(
                rank=args.process_index, step=state.global_step, facts=lambda: run_facts(args, model)
            )

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The first batch of the step is there."""
        with self.progress as progress:
            progress.step_begins()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An optimizer step is done."""
        with self.progress as progress:
            seen = state.num_input_tokens_seen
            progress.step_done(state.global_step, tokens=seen - self._seen if seen > self._seen else None)
            self._seen = seen

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Logging is part of the step, not of the evaluation or save that may follow; of neither at their end."""
        with self.progress as progress:
            if not any(key.startswith("eval_") for key in logs or ()):
                progress.mark()

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An evaluation is over."""
        with self.progress as progress:
            progress.paused("eval")

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A checkpoint is written."""
        with self.progress as progress:
            progress.paused("checkpoint")

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Send the rest."""
        with self.progress as progress:
            progress.end()


def run_facts(args: Any, model: Any) -> dict[str, object]:
    """What arguments and model say of the run; ``sequence_length`` only where the Trainer packs to it."""
    parallel = getattr(args, "parallelism_config", None)
    sizes = {name: getattr(parallel, f"{name}_size", None) or 1 for name in ("tp", "cp", "sp")}
    data_parallel = args.world_size // (sizes["tp"] * sizes["cp"] * sizes["sp"])
    batch = args.train_batch_size * args.gradient_accumulation_steps * data_parallel
    length = getattr(args, "max_length", None) if getattr(args, "packing", False) else None
    recompute = getattr(model, "is_activation_checkpointing", None)
    if recompute is None:  # before transformers 5 the older name; since then that one warns
        recompute = getattr(model, "is_gradient_checkpointing", None)
    return {
        "trainer": "HF Trainer",
        "world_size": args.world_size,
        "global_batch_size": batch,
        "sequence_length": length,
        "data_parallel": data_parallel,
        "tensor_parallel": sizes["tp"],
        "context_parallel": sizes["cp"] * sizes["sp"],
        "dtype": run_dtype(args, model),
        "activation_recompute": None if recompute is None else "full" if recompute else "none",
        **model_facts(model),
    }


def run_dtype(args: Any, model: Any) -> str | None:
    """The number format of the matmuls: of mixed precision, else of the weights."""
    mixed = (
        "bf16" if args.bf16 else "fp16" if args.fp16 else os.environ.get("ACCELERATE_MIXED_PRECISION", "no")
    )
    return number_format(getattr(model, "dtype", None) if mixed == "no" else mixed)
