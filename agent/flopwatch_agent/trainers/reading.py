"""One row as it was read, before it is placed in a session and timed."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from flopwatch_agent.trainers.bars import Bar
from flopwatch_agent.trainers.clocks import Stamp
from flopwatch_agent.trainers.crosscheck import CrossCheck
from flopwatch_agent.trainers.grammar import Grammar

NEAR_STEPS = 100
"""A log whose first step is no later began with the run, even if nothing says so."""
NEAR_WITH_HEADER_STEPS = 1_000
"""The same where the log shows a configuration before it."""

_KEPT_ROWS = 4_096
"""So many rows of a launch are known again when a log shipper or a rotation brings their lines once more."""
_SHOWN_SECOND = 1.0
"""A bar shows whole seconds: two drawings of one moment may lie that far apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """When and by whom something was said."""

    stamp: Stamp | None = None
    arrived_at_seconds: float | None = None
    rank: int | None = None


NOWHERE = Origin()


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a grammar read, where and when."""

    grammar: Grammar
    values: Mapping[str, float]
    step: int
    family: str
    origin: Origin = NOWHERE
    bar: Bar | None = None

    @property
    def stamp(self) -> Stamp | None:
        """The time in the line."""
        return self.origin.stamp

    @property
    def rank(self) -> int | None:
        """The rank that printed it, where the line is labelled."""
        return self.origin.rank

    def get(self, name: str) -> float | None:
        """A quantity of the row, ``None`` when the line does not have it."""
        return self.values.get(name)


@dataclass(kw_only=True, slots=True)
class Launch:
    """The session that is going on, as far as the rows to come need it."""

    index: int = 0
    base_step: int | None = None
    """The step before the first of this session; ``None`` while it cannot be known."""
    announced: bool = False
    """Whether the log told of the launch."""
    previous: Reading | None = None
    first_bar: Bar | None = None
    timed_bar: Bar | None = None
    """The row's drawing since which the bar's clock of whole seconds has not moved."""
    begin_stamp: Stamp | None = None
    """When the line that announced the launch was printed."""
    interval: int | None = None
    window: int | None = None
    """Steps that a running rate goes over, where the rows showed it."""
    rank: int | None = None
    rows: int = 0
    timed_rows: int = 0
    rated: bool = False
    """A row had the figure of the trainer's own timer."""
    steady_seconds: deque[float] = field(default_factory=lambda: deque(maxlen=33))
    seen: deque[int] = field(default_factory=lambda: deque(maxlen=256))
    pauses: set[str] = field(default_factory=set)
    """Kinds of the marks since the row before."""
    latest: deque[Reading] = field(default_factory=lambda: deque(maxlen=8))
    """The latest rows, to know a late rank's line by."""
    printed: deque[tuple[float | None, ...]] = field(default_factory=lambda: deque(maxlen=_KEPT_ROWS))
    """What tells each row from one that was run again."""
    bursts: bool = False
    """Rows came together: the writer buffers, so an arrival is no time of a step."""
    check: CrossCheck = field(default_factory=CrossCheck)
    totals: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=512))
    """Steps and the token counter that runs on over sessions."""
    base_total: float | None = None
    """That counter at the step this session went on from."""

    def ended_at(self, step: int | None) -> bool:
        """Whether ``step`` is the last one printed: a resume from there loses none and repeats none."""
        return self.previous is not None and self.previous.step == step

    def settled(self, factors: Mapping[str, float]) -> float | None:
        """The factor by which printed times are wrong; once it is known, the times kept so far are right too."""
        before, factor = self.check.factor, self.check.settle(factors)
        if before is None and factor is not None:
            right = [seconds * factor for seconds in self.steady_seconds]
            self.steady_seconds.clear()
            self.steady_seconds.extend(right)
        return factor

    def numbers(self, bar: Bar, reading: Reading) -> bool:
        """Whether the row belongs to this drawing below it; a first row above all drawings does."""
        before = reading.bar
        if before is None:
            return bar.n > reading.step
        if self.previous is not None and self.interval and before.n == self.previous.step + self.interval:
            return False
        late = bar.elapsed_seconds - before.elapsed_seconds
        return bar.total == before.total and bar.n > before.n and late <= _SHOWN_SECOND

    def note(self, reading: Reading) -> None:
        """A row was accepted."""
        self.seen.append(reading.step)
        self.latest.append(reading)
        moment = _moment(reading)
        if moment is not None:
            self.printed.append(moment)

    def repeats(self, reading: Reading) -> bool:
        """Whether this very line was read before: a step that is run again has another time."""
        if self.previous is None or reading.step > self.previous.step:
            return False
        moment = _moment(reading)
        return moment is not None and moment in self.printed

    def note_bar(self, bar: Bar | None) -> None:
        """A row came with this drawing."""
        before = self.timed_bar or self.first_bar
        if bar is not None and (before is None or before.elapsed_seconds != bar.elapsed_seconds):
            self.timed_bar = bar

    def fresh_base(self, reading: Reading, *, header_seen: bool) -> int | None:
        """Where the count of this session begins, for its first row."""
        if self.base_step is not None:
            return self.base_step
        base = min(reading.grammar.first_step, max(reading.step, 0)) - 1
        stated = reading.get("covered") or 0
        near = reading.step - base <= max(NEAR_WITH_HEADER_STEPS if header_seen else NEAR_STEPS, stated)
        return base if self.index == 0 and (near or self.announced) else None


def _moment(reading: Reading) -> tuple[float | None, ...] | None:
    """The row with its time; ``None`` without a time stamp or a time of four digits."""
    stamp = reading.stamp.seconds if reading.stamp else None
    seconds, elapsed, loss = (reading.get(name) for name in ("seconds", "elapsed_seconds", "loss"))
    timed = seconds or elapsed
    if stamp is None and (timed is None or float(f"{timed:.3g}") == timed):
        return None
    return (float(reading.step), stamp, seconds, elapsed, loss if loss == loss else None)  # noqa: PLR0124 - nan


def comes_late(reading: Reading, waiting: Reading | None) -> bool:
    """Whether another rank prints a step that the first has left behind."""
    ranks = (reading.rank, waiting.rank if waiting else None)
    return waiting is not None and None not in ranks and ranks[0] != ranks[1] and reading.step < waiting.step
