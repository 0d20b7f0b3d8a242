"""What is kept of the past of nodes, the fleet and budgets, for rehearsals of rules. Values only."""

from dataclasses import dataclass

from flopwatch.query import Verdict
from flopwatch_collector.compute.detection.peers import Suspect
from flopwatch_collector.watched import BudgetHealth


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeStretch:
    """A time in which all GPUs of a node were in one bucket that rules look at: ``FAULT`` or ``UNKNOWN``."""

    start_seconds: float
    end_seconds: float
    bucket: str
    out: bool = False
    """It had been taken out of service."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuEvent:
    """An XID that no application causes."""

    time_seconds: float
    gpu: str
    code: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ThrottleStretch:
    """A time in which a GPU told the same reasons, one of them a slowdown, for its clock."""

    start_seconds: float
    end_seconds: float
    gpu: str
    index: int | None
    reasons: int


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuErrorsAt:
    """Memory errors, or rows that were replaced, that a GPU's counters rose by."""

    time_seconds: float
    gpu: str
    index: int | None
    uncorrected: int = 0
    remapped: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class SuspectAt:
    """Who held a job up in a window of five minutes that ended then."""

    time_seconds: float
    job_id: str
    suspect: Suspect


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePast:
    """A node that was faulty or silent as a whole, or whose GPUs were; others have nothing for rules to find."""

    cluster: str
    node: str
    gpus: int
    stretches: tuple[NodeStretch, ...] = ()
    events: tuple[GpuEvent, ...] = ()
    throttles: tuple[ThrottleStretch, ...] = ()
    errors: tuple[GpuErrorsAt, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetMoment:
    """Where fleet and budgets stood at a time."""

    time_seconds: float
    verdict: Verdict | None = None
    budgets: tuple[BudgetHealth, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Past:
    """All of it, by windows of five minutes."""

    start_seconds: float = 0.0
    end_seconds: float = 0.0
    cluster: str = ""
    nodes: tuple[NodePast, ...] = ()
    moments: tuple[FleetMoment, ...] = ()
    """Oldest first."""
    suspects: tuple[SuspectAt, ...] = ()
    """Oldest first."""
    known: bool = False
    """Whether anything was kept of nodes and fleet."""
    raw_start_seconds: float | None = None
    """From when on raw samples were looked at for throttling, errors and suspects; None: not at all."""
