"""Rows from progress bars alone, for trainers that print nothing else while they run."""

from flopwatch_agent.trainers.bars import Bar, sampling_interval
from flopwatch_agent.trainers.grammar import Grammar, anchor

BAR_ONLY = Grammar(
    family="progress bar",
    anchor=anchor(r"(?!)"),
    order=("bar",),
    pauses_inside=True,
    relatives=(("Training Epoch", "llama-recipes"), ("|Loss: ", "torchtune"), ("consumed_samples=", "NeMo")),
)
_SHORTEST_INTERVAL_SECONDS = 10.0
"""A bar shows whole seconds: shorter intervals would be wrong by more than a tenth."""


class BarSampler:
    """Chooses the drawings of a training bar that become rows."""

    def __init__(self) -> None:
        self._last: Bar | None = None
        self._row: Bar | None = None
        self._finished_steps = 0

    def row_of(self, bar: Bar) -> dict[str, float] | None:
        """The values of the row that this drawing makes, or ``None``."""
        if not bar.training or bar.total < 2:
            return None
        last, self._last = self._last, bar
        if last is not None and (bar.n < last.n or bar.total != last.total):
            self._new_bar(last, bar)
        if last is not None and bar.step is not None and bar.step == last.step and bar.n > last.n:
            return None  # the bar has moved and its description not yet: another drawing follows
        row = self._row
        passed = bar.elapsed_seconds - (row.elapsed_seconds if row else 0.0)
        due = bar.n > 0 and bar.n % sampling_interval(bar.total) == 0
        if not due or (row is not None and row.n == bar.n) or passed < _SHORTEST_INTERVAL_SECONDS:
            return None
        self._row = bar
        step = self._finished_steps + bar.n if bar.step is None else bar.step
        values = {"step": float(step), "total_steps": float(bar.total)}
        if bar.loss is not None:
            values["loss"] = bar.loss
        return values

    def _new_bar(self, last: Bar, bar: Bar) -> None:
        self._row = None
        if (
            bar.total == last.total
            and bar.epoch is not None
            and last.epoch is not None
            and bar.epoch > last.epoch
        ):
            self._finished_steps += last.total
        else:
            self._finished_steps = 0
