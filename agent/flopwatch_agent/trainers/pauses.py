"""Evaluations, checkpoints and rollouts as stretches of time, from the lines that tell of them."""

from dataclasses import replace

from flopwatch_agent.trainers.marks import Mark
from flopwatch_agent.trainers.rows import MarkKind, PhaseMark


class PauseBook:
    """Pairs lines that begin a pause with those that end it; the next step ends what is still open."""

    def __init__(self) -> None:
        self.phases: list[PhaseMark] = []
        self._open: dict[MarkKind, float | None] = {}
        self._since: float | None = None
        """End of the last step or pause: a line with a result tells of the time since then."""

    def mark(self, mark: Mark, phase: PhaseMark, at: float | None) -> None:
        """A line about a pause; ``phase`` says which, without times."""
        committed = True if mark.done and phase.kind == "checkpoint" else None
        if mark.seconds is not None:
            self._open.pop(phase.kind, None)
            begin = at - mark.seconds if at is not None else None
            self._add(replace(phase, committed=committed), begin, at)
        elif mark.done and at is not None:
            begin = self._open.pop(phase.kind, self._since)
            self._add(replace(phase, committed=committed), begin, at)
        else:
            self._open.setdefault(phase.kind, self._since if at is None else at)

    def step(self, *, end: float | None, seconds: float | None, session: int, before: int | None) -> None:
        """A step has ended; it took ``seconds``, pauses not counted. ``before`` is the step before it."""
        last = end - (seconds or 0.0) if end is not None else None
        for kind, begin in self._open.items():
            closes = max(begin, last) if begin is not None and last is not None else None
            self._add(PhaseMark(kind=kind, session=session, after_step=before), begin, closes)
        self._open.clear()
        self._since = end

    def _add(self, phase: PhaseMark, begin: float | None, end: float | None) -> None:
        if begin is not None and end is not None and end >= begin:
            phase = replace(phase, seconds=end - begin, begin_time_seconds=begin, end_time_seconds=end)
        self.phases.append(phase)
        self._since = end if end is not None else self._since
