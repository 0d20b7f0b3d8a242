"""Node → collector: what a batch holds. Versioned JSON; every value is a frozen dataclass.

``None`` (or a missing key) means *not known*: it is never sent as 0. Times are UTC epoch seconds on the
node's own clock. Counters are sent as counters; rates are made where they are read. A collector ignores
keys it does not know, so a newer agent may talk to an older collector; ``version`` says when it may not.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

from flopwatch.encoding import require_finite
from flopwatch.wire_hardware import GpuDevice, GpuSample, GpuState, JobSample, NodeSample, PortSample

__all__ = [
    "MAX_NAME_LENGTH",
    "SENT_AT_HEADER",
    "WIRE_VERSION",
    "Batch",
    "DtypeBasis",
    "Event",
    "Finding",
    "FollowedLog",
    "GpuDevice",
    "GpuSample",
    "GpuState",
    "JobKind",
    "JobSample",
    "JobSighting",
    "Lease",
    "NodeFacts",
    "NodeSample",
    "Phase",
    "PhaseKind",
    "PortSample",
    "QueueSnapshot",
    "RunFacts",
    "SessionMark",
    "SourceKind",
    "StepBasis",
    "StepRecord",
]  # fmt: skip

WIRE_VERSION: Literal[1] = 1
MAX_NAME_LENGTH = 253

StepBasis = Literal[
    "printed", "corrected", "derived_tokens", "derived_rate", "derived_counter", "derived_timestamps",
    "derived_bar_elapsed", "derived_samples", "sum_of_micro_steps", "arrival", "none",
]  # fmt: skip
JobKind = Literal["pretrain", "finetune", "rl", "eval", "inference", "interactive", "unknown"]
PhaseKind = Literal["startup", "data", "eval", "checkpoint", "generation", "communication"]
"""``communication`` lies inside steps: time in which a rank waited for the network and computed nothing."""
SourceKind = Literal["sdk", "file", "log"]
DtypeBasis = Literal["declared", "log", "assumed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowedLog:
    """A log the agent reads for a job: whether it is alive, and how far behind."""

    job: str
    path: str
    alive: bool
    lag_bytes: int | None = None
    last_read_seconds: float | None = None
    problem: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeFacts:
    """What changes rarely on a node: sent at start, on change, and every minute."""

    machine_id: str | None = None
    expected_gpus: tuple[str, ...] = ()
    """PCI addresses of all NVIDIA display controllers the kernel lists, also of those NVML lost."""
    nvml: Literal["ok", "absent", "failed"] = "absent"
    driver_version: str | None = None
    permission_gaps: tuple[str, ...] = ()
    """What could not be read and which permission is missing, one sentence each."""
    logs: tuple[FollowedLog, ...] = ()
    spool_dropped_batches: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFacts:
    """What one source said of a training run; several nodes may each know a part, the collector joins them."""

    source: Literal["declared", "sdk", "file", "log"]
    origin: str
    """Where it was found, for people: ``Megatron argument block``, ``SDK``, ``config.json``."""
    trainer: str | None = None
    shape: dict[str, Any] | None = None
    """Keys of ``flopwatch.flops.ModelShape.from_dict``."""
    parameter_count: int | None = None
    parameter_count_includes_embeddings: bool = True
    trained_parameter_count: int | None = None
    """Of these, those that are trained; fewer where the rest is frozen (LoRA)."""
    flops_per_token: float | None = None
    """As the trainer printed it: a cross-check, and a basis of last resort."""
    world_size: int | None = None
    global_batch_size: int | None = None
    sequence_length: int | None = None
    tokens_per_step: int | None = None
    micro_batches: int | None = None
    """Micro batches of an optimizer step on one data-parallel rank."""
    dtype: str | None = None
    dtype_basis: DtypeBasis | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    pipeline_chunks: int | None = None
    """Interleaved chunks of the model on each pipeline stage."""
    context_parallel: int | None = None
    expert_parallel: int | None = None
    data_parallel: int | None = None
    activation_recompute: str | None = None
    trainer_peak_flops: float | None = None
    kind: JobKind = "unknown"
    session: int = 0
    """Which launch in the file these facts belong to."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobSighting:
    """What one node sees of one job. The collector makes job and session keys from it, never the agent."""

    ref: str
    """Handle by which samples, steps and phases in this node's batches name the job."""
    scheduler: Literal["slurm", "kubernetes", "ray", "other", "none"] = "none"
    scheduler_job_id: str | None = None
    submit_time_seconds: float | None = None
    array_parent_id: str | None = None
    restart_count: int | None = None
    owner_uid: str | None = None
    """Kubernetes: UID of the topmost controlling owner."""
    uid: int | None = None
    user: str | None = None
    account: str | None = None
    name: str | None = None
    kind: JobKind = "unknown"
    master: str | None = None
    """Resolved ``MASTER_ADDR:MASTER_PORT``."""
    world_size: int | None = None
    ranks: tuple[int, ...] = ()
    start_time_seconds: float | None = None
    """Start of the job's oldest process on this node."""
    end_time_seconds: float | None = None
    exit_reason: str | None = None
    gpus: tuple[str, ...] = ()
    """UUIDs on this node that a process of the job uses."""
    gpu_ranks: tuple[int | None, ...] = ()
    """The rank whose process computes on each of ``gpus``, in their order; ``None`` where it is not known."""
    leased_gpus: tuple[str, ...] | None = None
    """UUIDs the scheduler gave out here; ``None`` when it could not be known."""
    waiting_for: str | None = None
    """Why no steps are seen yet: ``steps`` while its log is followed, else the sentence to show."""
    log_path: str | None = None
    mfu_target_ratio: float | None = None
    owner_contact: str | None = None
    declared_gpu_seconds: float | None = None
    run: tuple[RunFacts, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """``steps_covered`` optimizer steps that ended with ``step``, as one source saw them."""

    job: str
    source: SourceKind
    source_id: str
    """Which SDK process, file or endpoint: the same on every node that reads the same file."""
    step: int
    end_time_seconds: float
    seconds: float | None = None
    """Sum over the steps covered; ``None`` when the step time cannot be known."""
    steps_covered: int = 1
    basis: StepBasis = "printed"
    resolution_seconds: float | None = None
    rank: int | None = None
    session: int = 0
    """Which launch within the source; the collector makes the session key."""
    tokens: int | None = None
    """Sum over the steps covered, over all ranks."""
    padded_tokens: int | None = None
    sum_squared_document_tokens: float | None = None
    loss: float | Literal["inf", "-inf", "nan"] | None = None
    skipped_steps: int = 0
    steady: bool = True
    why_not_steady: str | None = None
    reported_flops_per_gpu: float | None = None
    reported_mfu_ratio: float | None = None
    data_wait_seconds: float | None = None

    def __post_init__(self) -> None:
        require_finite(self.end_time_seconds, "steps.end_time_seconds")
        if self.step < 0 or self.steps_covered < 1:
            raise ValueError(
                f"steps.step is {self.step}, steps_covered {self.steps_covered}; "
                "allowed: 0 or more, 1 or more"
            )
        if self.seconds is not None and not 0.0 <= self.seconds < math.inf:
            raise ValueError(f"steps.seconds is {self.seconds!r}; allowed: 0 or more, or absent")


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """A stretch of a run that is not a step. ``end_seconds`` is ``None`` while it lasts."""

    job: str
    kind: PhaseKind
    begin_seconds: float
    end_seconds: float | None = None
    source: SourceKind = "log"
    source_id: str = ""
    session: int = 0
    step: int | None = None
    blocking: bool = True
    committed: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionMark:
    """A launch of a job, as one source saw it begin or end."""

    job: str
    source_id: str
    session: int
    begin_seconds: float | None = None
    end_seconds: float | None = None
    exit_reason: str | None = None
    restart_number: int | None = None
    resumed_from_step: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """GPUs of this node that a scheduler gave to a job, from its own clock cut to the second."""

    lease_id: str
    job: str
    gpus: tuple[str, ...]
    source: Literal["slurm", "kubernetes", "prolog", "api", "process"]
    start_seconds: float
    end_seconds: float | None = None
    share_ratio: float = 1.0
    user: str | None = None
    account: str | None = None
    qos: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """Something that happened: an XID, a drain, a maintenance window, a spare, a change of health."""

    time_seconds: float
    kind: Literal[
        "xid", "drain", "maintenance", "spare", "health", "stranded", "queue", "counter_reset", "price", "agent"
    ]  # fmt: skip
    """``stranded``: the CPU or memory beside a GPU is taken, so that the scheduler cannot give it out."""
    gpu: str | None = None
    code: int | None = None
    value: str | None = None
    """For windows ``begin`` or ``end``; for health ``ok`` or ``faulty``."""
    text: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A doubt or a gap that people should see beside a job's figures."""

    job: str
    code: str
    """Stable name such as ``shared_log``, ``steps_lost``, ``unit_mismatch``."""
    text: str
    values: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueSnapshot:
    """Pending demand at one instant, as the scheduler told it."""

    time_seconds: float
    partition: str
    pending_jobs: int
    pending_gpus: int
    largest_request_gpus: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """One push of one node. (node, spool, sequence) identifies it: a collector takes it once."""

    version: Literal[1]
    node: str
    cluster: str
    spool: str
    """Random id of the spool folder: a new one when the folder was lost."""
    sequence: int
    boot_id: str
    sampled_at_seconds: float
    monotonic_seconds: float
    interval_seconds: float
    agent_version: str
    simulated: bool = False
    node_facts: NodeFacts | None = None
    gpus: tuple[GpuDevice, ...] | None = None
    """The whole inventory, or ``None`` when unchanged since the last batch that had it."""
    gpu_samples: tuple[GpuSample, ...] = ()
    node_samples: tuple[NodeSample, ...] = ()
    port_samples: tuple[PortSample, ...] = ()
    job_samples: tuple[JobSample, ...] = ()
    jobs: tuple[JobSighting, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    phases: tuple[Phase, ...] = ()
    sessions: tuple[SessionMark, ...] = ()
    leases: tuple[Lease, ...] = ()
    events: tuple[Event, ...] = ()
    findings: tuple[Finding, ...] = ()
    queues: tuple[QueueSnapshot, ...] = ()
    reporter: Literal["node", "scheduler"] = "node"
    """``scheduler``: told of the node, not by it; it is no sign of life of the node or of the jobs on it."""
    expected_gpu_count: int | None = None
    """How many GPUs the node has by the scheduler's or the site's inventory."""

    def __post_init__(self) -> None:
        for field in ("node", "cluster", "spool"):
            value = getattr(self, field)
            if not 0 < len(value) <= MAX_NAME_LENGTH:
                raise ValueError(f"{field} has {len(value)} characters; allowed: 1 to {MAX_NAME_LENGTH}")
        if self.sequence < 0:
            raise ValueError(f"sequence is {self.sequence}; allowed: 0 or more")
        if not 0.0 < (seconds := self.interval_seconds) <= 86_400.0:
            raise ValueError(f"interval_seconds is {seconds!r}; allowed: above 0, at most 86400")
        require_finite(self.sampled_at_seconds, "sampled_at_seconds")
        require_finite(self.monotonic_seconds, "monotonic_seconds")


SENT_AT_HEADER = "Flopwatch-Sent-At"
"""Wall time of sending, epoch seconds: no field, because a spooled body is sent as it was written."""
