"""What the reader gives out: rows, phases, sessions, findings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from flopwatch.wire import RunFacts, StepBasis
from flopwatch_agent.trainers.numbers import Loss

MarkKind = Literal["eval", "checkpoint", "generation"]
NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """``steps_covered`` optimizer steps that end with ``step``."""

    step: int
    seconds: float | None = None
    """Sum over the steps covered; ``None`` when the log does not tell."""
    steps_covered: int | None = 1
    """Over how many steps the time was taken. ``None``: not known."""
    steps_advanced: int | None = None
    """Distance from the row before; less than ``steps_covered`` where the trainer's windows overlap."""
    basis: StepBasis = "none"
    resolution_seconds: float | None = None
    """Worth of the last printed digit, for one step."""
    tokens: float | None = None
    """Positions in one optimizer step, over all ranks."""
    loss: Loss | None = None
    session: int = 0
    superseded: bool = False
    steady: bool = True
    why_not_steady: str | None = None
    tflops_per_gpu: float | None = None
    mfu: float | None = None
    hfu: float | None = None
    tokens_per_second_per_gpu: float | None = None
    printed_step_seconds: float | None = None
    """What the line says, where ``seconds`` is corrected."""
    samples: float | None = None
    skipped_steps: int = 0
    data_wait_seconds: float | None = None
    rank: int | None = None
    end_time_seconds: float | None = None
    """Epoch seconds, from the line or from its arrival."""
    family: str = ""
    extras: Mapping[str, float] = field(default_factory=lambda: NOTHING)
    """Other figures of the line that one family prints, by the name they have in ``logs check``."""

    @property
    def step_seconds(self) -> float | None:
        """Mean seconds of one optimizer step."""
        return None if self.seconds is None else self.seconds / (self.steps_covered or 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class PhaseMark:
    """A line that tells of an evaluation, a checkpoint or a rollout."""

    kind: MarkKind
    session: int
    after_step: int | None
    seconds: float | None = None
    """How long it took, where the lines tell."""
    begin_time_seconds: float | None = None
    end_time_seconds: float | None = None
    committed: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionInfo:
    """One launch of the trainer as the log shows it."""

    session: int
    begin_time_seconds: float | None = None
    end_time_seconds: float | None = None
    resumed_from_step: int | None = None
    lost_steps: int | None = None
    """Steps of the session before that are run again."""
    exit_reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LogFinding:
    """A doubt or a gap that people should see."""

    code: str
    text: str
    values: Mapping[str, float] = field(default_factory=lambda: NOTHING)


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """What became known since it was last taken."""

    steps: tuple[Row, ...] = ()
    phases: tuple[PhaseMark, ...] = ()
    runs: tuple[RunFacts, ...] = ()
    sessions: tuple[SessionInfo, ...] = ()
    findings: tuple[LogFinding, ...] = ()
    family: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Parsed:
    """Everything a finished file tells."""

    steps: tuple[Row, ...] = ()
    phases: tuple[PhaseMark, ...] = ()
    runs: tuple[RunFacts, ...] = ()
    sessions: tuple[SessionInfo, ...] = ()
    findings: tuple[LogFinding, ...] = ()
    facts: tuple[Mapping[str, object], ...] = ()
    """What was found of the run, one mapping a session, by the names of ``facts_table``."""
    rollouts: tuple[Mapping[str, float], ...] = ()
    family: str | None = None
