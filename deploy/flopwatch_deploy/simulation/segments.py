"""A run's life as stretches of one kind each, exact to the step."""

import bisect
import math
from dataclasses import dataclass
from typing import Literal

from flopwatch_deploy.simulation.runs import Failure, Run

SegmentKind = Literal["startup", "steps", "checkpoint", "eval", "hang", "recovery", "idle", "busy"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """One stretch. For ``steps``: ``first_step`` ends ``step_seconds`` after the begin."""

    kind: SegmentKind
    begin_seconds: float
    end_seconds: float
    launch: int = 0
    first_step: int = 0
    step_seconds: float = 0.0

    def steps_ended_by(self, time_seconds: float) -> int:
        """How many of its steps have ended at a time (inclusive)."""
        if self.kind != "steps":
            return 0
        last = min(time_seconds, self.end_seconds)
        return max(0, math.floor((last - self.begin_seconds) / self.step_seconds + 1e-9))


@dataclass(frozen=True, kw_only=True, slots=True)
class Life:
    """A run's segments in order of time, without gaps from start to end (or the horizon)."""

    run: Run
    segments: tuple[Segment, ...]
    resumed: tuple[int, ...]
    """Step from which each launch went on; -1 for the first."""

    def at(self, time_seconds: float) -> Segment | None:
        """The segment in which a time lies."""
        index = bisect.bisect_right(self.segments, time_seconds, key=lambda s: s.begin_seconds) - 1
        if index < 0 or time_seconds >= self.segments[index].end_seconds:
            return None
        return self.segments[index]

    def between(self, start: float, end: float) -> tuple[Segment, ...]:
        """Segments that overlap an interval."""
        first = max(0, bisect.bisect_right(self.segments, start, key=lambda s: s.begin_seconds) - 1)
        last = bisect.bisect_left(self.segments, end, key=lambda s: s.begin_seconds)
        return tuple(s for s in self.segments[first:last] if s.end_seconds > start)


def life(run: Run, horizon_seconds: float) -> Life:
    """The whole life of a run, up to the horizon when it has no end."""
    return _Builder(run, run.end_seconds if run.end_seconds is not None else horizon_seconds).build()


class _Builder:
    """Walks through a run's time once."""

    def __init__(self, run: Run, end: float) -> None:
        self._run = run
        self._end = end
        self._now = run.start_seconds
        self._segments: list[Segment] = []
        self._launch = 0
        self._step = 0
        self._saved = 0
        self._resumed = [-1]
        self._failures = list(run.failures)
        self._evaluated = run.start_seconds

    def build(self) -> Life:
        run = self._run
        step_seconds = run.step_seconds()
        if step_seconds is None:
            self._without_steps()
        else:
            self._stretch("startup", run.startup_seconds)
            while self._now < self._end - step_seconds:
                if self._cut() is not None and self._now >= (self._cut() or 0.0) - step_seconds:
                    self._stretch(
                        "hang" if run.hang_at_seconds is not None else "idle", self._end - self._now
                    )
                    break
                self._train(step_seconds)
            self._stretch("checkpoint", self._end - self._now)
        return Life(run=run, segments=tuple(self._segments), resumed=tuple(self._resumed))

    def _without_steps(self) -> None:
        idle_from = self._run.idle_from_seconds
        if idle_from is not None:
            self._stretch("busy", idle_from - self._now)
            self._stretch("idle", self._end - self._now)
        else:
            self._stretch("busy", self._end - self._now)

    def _cut(self) -> float | None:
        """When the run stops stepping for good, if it does."""
        run = self._run
        return run.hang_at_seconds if run.hang_at_seconds is not None else run.idle_from_seconds

    def _train(self, step_seconds: float) -> None:
        """Steps up to the next checkpoint, failure or end, and what follows them."""
        run = self._run
        failure = self._failures[0] if self._failures else None
        limits = [self._now + run.checkpoint_every_seconds, self._end]
        limits += [failure.at_seconds] if failure else []
        limits += [cut for cut in (self._cut(),) if cut is not None]
        until = min(limits)
        count = max(1, math.floor((until - self._now) / step_seconds))
        self._segments.append(
            Segment(
                kind="steps",
                begin_seconds=self._now,
                end_seconds=self._now + count * step_seconds,
                launch=self._launch,
                first_step=self._step + 1,
                step_seconds=step_seconds,
            )
        )
        self._now += count * step_seconds
        self._step += count
        if failure is not None and until == failure.at_seconds:
            self._fail(failure)
        elif until == limits[0]:
            self._save()

    def _save(self) -> None:
        run = self._run
        self._stretch("checkpoint", run.checkpoint_seconds)
        self._saved = self._step
        every = run.evaluate_every_seconds
        if every is not None and self._now - self._evaluated >= every:
            self._stretch("eval", run.evaluate_seconds)
            self._evaluated = self._now

    def _fail(self, failure: Failure) -> None:
        self._failures.pop(0)
        self._launch += 1
        self._stretch("recovery", failure.down_seconds)
        self._step = self._saved
        self._resumed.append(self._saved)

    def _stretch(self, kind: SegmentKind, seconds: float) -> None:
        end = min(self._now + seconds, self._end)
        if end > self._now:
            self._segments.append(
                Segment(kind=kind, begin_seconds=self._now, end_seconds=end, launch=self._launch)
            )
            self._now = end
