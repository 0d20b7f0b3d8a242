"""MosaicML Composer, and LLM Foundry which trains with it.

from flopwatch.integrations.composer import FlopwatchCallback

trainer = Trainer(..., callbacks=[FlopwatchCallback()])
"""

from typing import Any

from composer import Callback
from composer.utils import dist

from flopwatch.integrations.model_facts import model_facts, number_format
from flopwatch.integrations.progress import Progress


class FlopwatchCallback(Callback):
    """Tells the node's agent every batch, which Composer makes one optimizer step, evaluation and checkpoint.

    Tokens are Composer's own count over all ranks. ``facts`` state what it does not know: any of
    ``flopwatch.report.RUN_KEYS``.
    """

    def __init__(self, **facts: object) -> None:
        self.progress = Progress(facts)
        self._seen = 0
        self._saves = 0

    def fit_start(self, state: Any, logger: Any) -> None:
        """Tell the run's facts."""
        with self.progress as progress:
            self._seen, self._saves = state.timestamp.token.value, saves(state)
            step = state.timestamp.batch.value
            progress.begin(rank=dist.get_global_rank(), step=step, facts=lambda: run_facts(state))

    def before_dataloader(self, state: Any, logger: Any) -> None:
        """From here the loop waits for data."""
        with self.progress as progress:
            self._settle(state)
            progress.mark()

    def batch_start(self, state: Any, logger: Any) -> None:
        """The batch is there."""
        with self.progress as progress:
            progress.step_begins()

    def batch_end(self, state: Any, logger: Any) -> None:
        """A step is done."""
        with self.progress as progress:
            seen = state.timestamp.token.value
            progress.step_done(state.timestamp.batch.value, tokens=seen - self._seen or None)
            self._seen = seen

    def eval_before_all(self, state: Any, logger: Any) -> None:
        """Evaluations begin."""
        with self.progress as progress:
            self._settle(state)
            progress.mark()

    def eval_after_all(self, state: Any, logger: Any) -> None:
        """Evaluations are over."""
        with self.progress as progress:
            progress.paused("eval")

    def epoch_end(self, state: Any, logger: Any) -> None:
        """A checkpoint may have been written at the end of the epoch's last batch."""
        with self.progress as progress:
            self._settle(state)
            progress.mark()

    def fit_end(self, state: Any, logger: Any) -> None:
        """The last checkpoint may have been written."""
        with self.progress as progress:
            self._settle(state)
            progress.mark()

    def close(self, state: Any, logger: Any) -> None:
        """Send the rest."""
        with self.progress as progress:
            progress.end()

    def _settle(self, state: Any) -> None:
        """Tell the checkpoint that was written since the last event, if there is one."""
        count = saves(state)
        if count > self._saves:
            self._saves = count
            self.progress.paused("checkpoint")


def saves(state: Any) -> int:
    """Checkpoints that Composer has written in this process."""
    return sum(len(getattr(item, "all_saved_checkpoints_to_timestamp", ())) for item in state.callbacks)


def run_facts(state: Any) -> dict[str, object]:
    """What Composer's state says of the run; its model keeps a Hugging Face model under ``model``."""
    inner = next(
        (item for item in (getattr(state.model, "model", None),) if hasattr(item, "config")), state.model
    )
    size = getattr(state.dataloader, "batch_size", None)
    world = dist.get_world_size()
    return {
        "trainer": "Composer",
        "world_size": world,
        "global_batch_size": size * world if isinstance(size, int) else None,
        "dtype": number_format(state.precision.value),
        **model_facts(inner),
    }
