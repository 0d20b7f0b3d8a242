"""What a scheduler says at one instant, in words that are no scheduler's own."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

SchedulerKind: TypeAlias = Literal["slurm", "kubernetes", "other"]
JobState: TypeAlias = Literal["pending", "running", "ended"]
Trouble: TypeAlias = Literal["drain", "health"]
"""``drain``: takes no new work, as somebody asked; ``health``: out of order."""


class SchedulerUnreachable(Exception):
    """A scheduler cannot be asked, or answers what is none of its answers; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocation:
    """A job's share of one node. Which GPUs is said by index or by UUID; else only how many."""

    node: str
    gpu_count: int
    indices: tuple[int, ...] | None = None
    uuids: tuple[str, ...] | None = None
    ref: str | None = None
    """The node's own handle of this part of the job, where it is not that of the job."""
    part: str = ""
    """Tells apart several shares of one job on one node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduledJob:
    """A job as its scheduler knows it. Times are the scheduler's, in seconds."""

    scheduler: SchedulerKind
    scheduler_job_id: str
    ref: str
    """The handle by which agents name the job."""
    state: JobState
    name: str | None = None
    owner_uid: str | None = None
    user: str | None = None
    account: str | None = None
    qos: str | None = None
    partition: str = ""
    submit_seconds: float | None = None
    start_seconds: float | None = None
    end_seconds: float | None = None
    exit_reason: str | None = None
    array_parent_id: str | None = None
    together_id: str | None = None
    """Jobs with the same one start together or not at all."""
    restart_count: int = 0
    requested_gpus: int = 0
    """While it waits."""
    waiting_jobs: int = 1
    """Tasks of an array that wait together."""
    reason: str | None = None
    """Why it waits, in the scheduler's word."""
    allocations: tuple[Allocation, ...] = ()
    share_ratio: float = 1.0
    lease_source: Literal["slurm", "kubernetes", "api"] = "api"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduledNode:
    """A node as its scheduler knows it."""

    name: str
    host_name: str | None = None
    gpu_count: int | None = None
    trouble: Trouble | None = None
    trouble_since_seconds: float | None = None
    trouble_text: str = ""
    drained: bool = False
    """Whether it was drained or cordoned, also where it is out of order besides."""
    maintenance: bool = False
    maintenance_since_seconds: float | None = None
    maintenance_text: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuLimit:
    """The most GPUs that somebody may hold at once."""

    kind: Literal["qos", "qos_per_user", "qos_per_account", "namespace"]
    name: str
    gpus: int
    used_gpus: int | None = None
    """As the scheduler counts; None where it does not say."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """All that a scheduler said at one instant. ``None``: this part could not be read."""

    time_seconds: float
    jobs: tuple[ScheduledJob, ...]
    nodes: tuple[ScheduledNode, ...] | None = None
    limits: tuple[GpuLimit, ...] | None = None
    problems: tuple[str, ...] = ()
    """What was left out and why, one sentence each."""
