"""Jobs as a table and one job as a page."""

from dataclasses import dataclass
from typing import Any, Literal

from flopwatch.answers.alert import AlertRow, Severity
from flopwatch.answers.diagnosis import Diagnosis
from flopwatch.answers.frame import Series, Status
from flopwatch.answers.goodput import Goodput
from flopwatch.answers.ledger import Ledger, LedgerClass
from flopwatch.figure import FindingInfo, GpusBasis, MfuFigure, Standing, Term

JobState = Literal["waiting", "running", "stalled", "ended"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """The likely cause of waste: a code of the interface's text table, and its values."""

    code: str
    severity: Severity
    values: dict[str, Any]
    source: Literal["ledger", "diagnosis"] = "ledger"
    """``ledger``: by where its time went, ``cause.<code>`` in the text table; ``diagnosis``: the first of its
    diagnoses, ``diagnosis.<code>`` there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A run's MFU target and whose it is; ``ratio`` ``None`` means *no target set*."""

    ratio: float | None
    source: Literal["job", "team", "class", "default", "none"]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRow:
    """One line of the Jobs table."""

    job_id: str
    name: str
    cluster: str
    user: str | None
    account: str | None
    kind: str
    state: JobState
    scheduler: str
    scheduler_job_id: str | None
    waiting_for: str | None
    gpus: int | None
    gpus_basis: GpusBasis | None
    gpus_observed: int
    nodes: int
    gpu_model: str | None
    mfu: MfuFigure
    """Step MFU over the newest steady steps."""
    wall_mfu_ratio: float | None
    target: Target
    kernel_active_ratio: float | None
    tensor_active_ratio: float | None
    trend: tuple[float | None, ...]
    """MFU over the asked range, oldest first, at most 48 points."""
    start_seconds: float | None
    end_seconds: float | None
    last_step: int | None
    last_step_seconds: float | None
    waste_gpu_milliseconds: int
    waste_money: float | None
    waste_by_class: dict[str, int]
    cause: Cause | None
    findings: int
    trainer: str | None
    tracker_url: str | None = None
    """The run on the trainer's own dashboard, as it was declared; an ``http`` or ``https`` address."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Jobs:
    """The Jobs page: running and recent jobs."""

    status: Status
    range_seconds: float
    rows: tuple[JobRow, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionInfo:
    """One launch of a job."""

    session_id: str
    start_seconds: float | None
    end_seconds: float | None
    exit_reason: str | None
    first_step: int | None
    last_step: int | None
    resumed_from_step: int | None
    steps: int
    lost_steps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeInfo:
    """A node's part in a job, to be set beside the others."""

    node: str
    gpus: int
    kernel_active_ratio: float | None
    tensor_active_ratio: float | None
    power_watts: float | None
    sm_clock_hertz: float | None
    reporting: bool
    log_problem: str | None
    log_path: str | None = None
    """The file that this node reads the job's steps from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """Something that happened at a time: restart, checkpoint, evaluation, alert, event."""

    time_seconds: float
    end_seconds: float | None
    kind: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """A bucket the job was in, for its state strip."""

    start_seconds: float
    end_seconds: float
    bucket: str
    ledger_class: LedgerClass


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundFact:
    """What was found of the run, and where."""

    name: str
    """``trainer``, ``shape``, ``parameter_count``, ``world_size``, ``global_batch_size``, ``sequence_length``,
    ``tokens_per_step`` or ``dtype``."""
    value: int | str | None
    """``None`` for the shape, which is told whole."""
    source: Literal["declared", "sdk", "log", "file"]
    origin: str
    """In words: ``Megatron argument block``, ``config.json``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """The Job page."""

    status: Status
    range_seconds: float
    row: JobRow
    series: Series
    """Columns ``mfu``, ``kernel_active``, ``tensor_active``, ``power_watts``, ``memory_used_ratio``,
    ``nic_bytes_per_second``, ``nvlink_bytes_per_second``."""
    steps: Series
    """Columns ``step_seconds`` (per step), ``tokens_per_second``, ``loss``, ``step``; thinned records."""
    step_percentiles: dict[str, float | None]
    """``p50``, ``p90``, ``p99`` of the step time in seconds."""
    ledger: Ledger
    """Of this job over the range: capacity is the GPU time it held."""
    sessions: tuple[SessionInfo, ...]
    nodes: tuple[NodeInfo, ...]
    marks: tuple[Mark, ...]
    strip: tuple[Stretch, ...]
    shape: dict[str, Any]
    shape_origin: str | None
    arithmetic: tuple[Term, ...]
    findings: tuple[FindingInfo, ...]
    alerts: tuple[AlertRow, ...]
    found: tuple[FoundFact, ...] = ()
    """What is known of the run, each from its most trusted source; what is missing is not known."""
    standing: Standing | None = None
    """Where the MFU stands among what is reachable; ``None`` without one."""
    goodput: Goodput | None = None
    """How much of the run's time in the range was kept; ``None`` for a job that never reported of its run."""
    diagnosis: tuple[Diagnosis, ...] = ()
    """Likely causes of its loss, most GPU time first, three at most; empty for a job that does not run."""
