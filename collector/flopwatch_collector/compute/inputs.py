"""What the ledger is computed from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from flopwatch.answers.goodput import Liability
from flopwatch_collector.compute.straggler import Straggling
from flopwatch_collector.compute.throttle import Throttling
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import Columns, Gpu, JobRecord, LeaseRecord, Node


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerPolicy:
    """What decides between buckets beside the data."""

    idle_grace_seconds: float = 300.0
    elastic_nodes: tuple[str, ...] = ()
    """Names of nodes that come and go, ``*`` for any text."""


Liable = Mapping[int, Liability]
"""By session number: whose loss its end is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobWork:
    """What a job's steps were worth, parallel to its timeline's steps, and whose loss its interruptions are."""

    useful_seconds: npt.NDArray[np.float64] | None = None
    straggler_seconds: float | None = None
    """Usual time of one step while a straggler is confirmed."""
    straggling: Straggling | None = None
    """What confirmed stragglers took of single steps; used where no usual time is given for all."""
    throttling: Throttling | None = None
    liable: Liable = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerInputs:
    """All that is known of a stretch of time, with what lies just before and after it.

    ``samples`` begin at least the idle grace and 2.5 intervals before the stretch and reach 2.5 intervals beyond it;
    ``evidence`` are samples of other times (none of them in ``samples``) that decide whether a silence was a hang.
    """

    now: float
    nodes: Mapping[int, Node]
    gpus: Mapping[int, Gpu]
    jobs: Mapping[int, JobRecord]
    leases: tuple[LeaseRecord, ...]
    """Those that overlap the stretch, and all others of the same jobs."""
    timelines: Mapping[int, JobTimeline]
    """Of every job with a lease in the stretch; jobs without one here are not instrumented."""
    samples: Columns
    events: Columns
    """Of the whole past: windows of maintenance, spares and health are open until they end."""
    evidence: Columns = field(default_factory=dict)
    queues: Columns = field(default_factory=dict)
    """Queue snapshots of the stretch and the hour before it, as event rows."""
    work: Mapping[int, JobWork] = field(default_factory=dict)
    newest_seconds: Mapping[int, float] = field(default_factory=dict)
    """Time of each GPU's newest sample at all; where it is missing, that of its newest one in ``samples``."""
    idle_watts: Mapping[int, float] = field(default_factory=dict)
    elastic: frozenset[int] = frozenset()
    """Nodes that come and go: while they are silent and nobody holds them, they are no capacity."""
    policy: LedgerPolicy = LedgerPolicy()
    leases_by_job: Mapping[int, tuple[LeaseRecord, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_job: dict[int, list[LeaseRecord]] = {}
        for lease in self.leases:
            by_job.setdefault(lease.job, []).append(lease)
        object.__setattr__(self, "leases_by_job", {job: tuple(own) for job, own in by_job.items()})

    def leases_of(self, job: int) -> tuple[LeaseRecord, ...]:
        """The leases of one job."""
        return self.leases_by_job.get(job, ())
