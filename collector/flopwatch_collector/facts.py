"""What the alert rules look at: jobs, nodes and the fleet at one moment. Views make it, rules read it."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from flopwatch.query import Cause, JobRow, Verdict
from flopwatch_collector.watched import BudgetHealth, NodeHealth, WatchedRun

NodeStanding: TypeAlias = Literal["out", "down", "spare"]
"""``out``: an operator, the settings or a scheduler took the node out of service; ``down``: a scheduler says that it
is out of order or does not answer; ``spare``: it is held back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFacts:
    """What rules may know of a job: its row, and where it stands this moment."""

    row: JobRow
    bucket: str | None
    """The ledger's bucket now; None when unknown."""
    bucket_since_seconds: float | None
    """Since when it has been in it without a break."""
    steps_since_start: int | None
    """Steps of the present launch."""
    report_gap_seconds: float | None
    """Usual time between two reports of steps."""
    data_seconds: float | None
    """Event time of the newest sample of its GPUs."""
    nodes: frozenset[str] = frozenset()
    """Names of the nodes it runs on."""
    owner_contact: str | None = None
    """Where the job's owner is reached, as the job declared it."""
    run: WatchedRun = field(default_factory=WatchedRun)
    likely_cause: Cause | None = None
    """Why it loses time, as the pages say it; ``row.cause`` is by where its time went today."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeFacts:
    """What rules may know of a node."""

    cluster: str
    node: str
    last_seen_seconds: float
    interval_seconds: float
    bucket: str | None
    """The bucket that all its GPUs are in now; None when they differ or are unknown."""
    gpus: int
    reported: bool = True
    """Whether its agent ever reported; else it is only told of by a scheduler or the settings."""
    standing: NodeStanding | None = None
    """What is declared of the whole node now; None: nothing."""
    maintenance: bool = False
    """Whether it is taken out of service for maintenance, with whatever runs on it."""
    health: NodeHealth = field(default_factory=NodeHealth)


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """Everything the rules look at in one evaluation."""

    now: float
    jobs: tuple[JobFacts, ...]
    nodes: tuple[NodeFacts, ...]
    verdict: Verdict | None
    cluster: str
    """Whose verdict it is: the cluster's name, or several joined by commas."""
    simulated: bool = False
    budgets: tuple[BudgetHealth, ...] = ()
