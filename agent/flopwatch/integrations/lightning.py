"""PyTorch Lightning.

from flopwatch.integrations.lightning import FlopwatchCallback

trainer = Trainer(..., callbacks=[FlopwatchCallback()])
"""

from collections.abc import Callable
from typing import Any

try:
    from lightning.pytorch import Callback
except ImportError:  # the package's older name
    from pytorch_lightning import Callback

from flopwatch.integrations.model_facts import model_facts, number_format
from flopwatch.integrations.progress import Progress

PRECISIONS = {
    "32-true": "fp32",
    "64-true": "fp64",
    "transformer-engine": "fp8",
    "transformer-engine-float16": "fp8",
}
TOKEN_KEYS = ("input_ids", "tokens")


class FlopwatchCallback(Callback):
    """Tells the node's agent every optimizer step (a change of ``trainer.global_step``), validation and checkpoint.

    ``tokens`` gives a batch's tokens on this rank; without it they are counted from ``input_ids`` or ``tokens`` of a
    batch that is a mapping, or from a tensor of whole numbers in two dimensions. Other ranks are taken to have
    batches of the same size. ``facts`` state what the Trainer does not know: any of ``flopwatch.report.RUN_KEYS``.
    """

    def __init__(self, *, tokens: Callable[[Any], int | None] | None = None, **facts: object) -> None:
        self.progress = Progress(facts)
        self._tokens_of = tokens or batch_tokens
        self._tokens: int | None = 0
        self._saving = False

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Tell the run's facts."""
        with self.progress as progress:
            self._tokens, self._saving = 0, False
            step, rank = trainer.global_step, trainer.global_rank
            progress.begin(rank=rank, step=step, facts=lambda: run_facts(trainer, pl_module))

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        """A batch is there."""
        with self.progress as progress:
            self._saved()
            progress.step_begins()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """A batch is done, and with the last of an accumulation an optimizer step."""
        with self.progress as progress:
            here = self._tokens_of(batch)
            self._tokens = None if here is None or self._tokens is None else self._tokens + here
            if trainer.global_step > progress.last_step:
                tokens = None if self._tokens is None else self._tokens * replicas(trainer)
                self._tokens = 0
                progress.step_done(trainer.global_step, tokens=tokens)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """A validation begins."""
        with self.progress as progress:
            self._saved()
            progress.mark()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """A validation is over."""
        with self.progress as progress:
            if not trainer.sanity_checking:
                progress.paused("eval")

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: Any) -> None:
        """A checkpoint is being made. Lightning does not say when it is written: the next event ends it."""
        with self.progress as progress:
            if not self._saving:
                self._saving = True
                progress.mark()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Send the rest."""
        with self.progress as progress:
            self._saved()
            progress.end()

    def _saved(self) -> None:
        if self._saving:
            self._saving = False
            self.progress.paused("checkpoint")


def run_facts(trainer: Any, module: Any) -> dict[str, object]:
    """What the Trainer and the module say of the run."""
    inner = next(
        (item for item in (module, getattr(module, "model", None)) if hasattr(item, "config")), module
    )
    precision = PRECISIONS.get(str(trainer.precision), trainer.precision)
    size = getattr(trainer.train_dataloader, "batch_size", None)
    accumulated = trainer.accumulate_grad_batches * replicas(trainer)
    return {
        "trainer": "Lightning",
        "world_size": trainer.world_size,
        "global_batch_size": size * accumulated if isinstance(size, int) else None,
        "data_parallel": replicas(trainer),
        "dtype": number_format(precision),
        **model_facts(inner),
    }


def replicas(trainer: Any) -> int:
    """Ranks that see batches of their own: those of the sampler, else all."""
    sampler = getattr(trainer, "distributed_sampler_kwargs", None) or {}
    return int(sampler.get("num_replicas") or trainer.world_size)


def batch_tokens(batch: Any) -> int | None:
    """Token positions of a batch, by its names or its one tensor of whole numbers in two dimensions."""
    if hasattr(batch, "keys"):
        named = (batch[key] for key in TOKEN_KEYS if key in batch)
        return next((int(item.numel()) for item in named if hasattr(item, "numel")), None)
    parts = batch if isinstance(batch, (list, tuple)) else (batch,)
    for part in parts:
        if hasattr(part, "numel") and part.ndim == 2 and not part.is_floating_point():
            return int(part.numel())
    return None
