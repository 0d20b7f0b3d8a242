"""What the callbacks share: a training loop's events told through a ``StepReporter``, and nothing raised into it."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Literal

from flopwatch.report import StepReporter

MAX_ERROR_TEXT = 200
PauseKind = Literal["eval", "checkpoint"]


class Progress:
    """One training run as its callback sees it.

    Use it as a context around what a callback does: ``with progress: ...``. An error inside is counted, the first
    is told in one line on standard error, and none reaches the training.

    ``facts`` are what the user states about the run (keys of ``flopwatch.report.RUN_KEYS``); they win over what
    the library knows.
    """

    def __init__(self, facts: dict[str, object], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.errors = 0
        """Errors of flopwatch's own that were dropped."""
        self.reporter: StepReporter | None = None
        self._facts = facts
        self._clock = clock
        self._marked = 0.0
        self._step_began: float | None = None
        self._data_wait: float | None = None
        self.last_step = 0
        """The last optimizer step that was told of, or that the run was resumed from."""
        self._first = True

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.errors += 1
        if self.errors == 1:
            _tell(error)
        return True

    def begin(self, *, rank: int, step: int, facts: Callable[[], dict[str, object]]) -> None:
        """Training begins after ``step`` finished steps; ``facts`` are asked for on the reporting rank only."""
        self.reporter = StepReporter(rank=rank)
        self.last_step, self._first, self._step_began = step, True, None
        self.mark()
        if self.reporter.enabled:
            self.reporter.run(**{"resumed_from_step": step or None, **facts(), **self._facts})
            self.mark()

    def mark(self) -> None:
        """Something else than a step, a pause or the wait for data has just ended."""
        self._marked = self._clock()

    def step_begins(self) -> None:
        """The data is there: since the last mark the loop waited for it."""
        if self._step_began is None:
            self._step_began = self._clock()
            self._data_wait = max(0.0, self._step_began - self._marked)

    def step_done(self, step: int, *, tokens: int | None = None) -> None:
        """The optimizer has made its step; ``tokens`` of all ranks since the step before, where known."""
        reporter = self.reporter
        if reporter is not None and step > self.last_step:
            more: dict[str, object] = {"steps_covered": step - self.last_step}
            if self._data_wait is not None:
                more["data_wait_seconds"] = self._data_wait
            seconds = None
            if self._first and self._step_began is not None:
                seconds, more["steady"] = self._clock() - self._step_began, False
            reporter.step_done(step, seconds=seconds, tokens=tokens, **more)
            self.last_step, self._first = step, False
            self._step_began = self._data_wait = None
        self.mark()

    def paused(self, kind: PauseKind) -> None:
        """Since the last mark the loop evaluated, or saved a checkpoint."""
        if self.reporter is not None:
            seconds = max(0.0, self._clock() - self._marked)
            self.reporter.phase_done(kind, seconds=seconds, step=self.last_step)
        self.mark()

    def end(self) -> None:
        """Training is over: what is summed up is sent."""
        if self.reporter is not None:
            self.reporter.close()
            self.reporter = None


def _tell(error: Exception) -> None:
    text = f"{type(error).__name__}: {error}"[:MAX_ERROR_TEXT].replace("\n", " ")
    try:
        sys.stderr.write(f"flopwatch callback: an error was dropped, training goes on: {text}\n")
    except (OSError, ValueError, AttributeError):
        return
