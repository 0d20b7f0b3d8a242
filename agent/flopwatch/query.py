"""Collector → dashboard: the Query port and its answers.

Every figure comes with its basis; ``None`` is *unknown*. Answers carry codes and values, never sentences:
the surface has two languages. GPU time is integer milliseconds so that sums
are exact; ``money`` is in ``Status.currency`` and ``None`` without a price.
"""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from flopwatch.figure import Basis, FindingInfo, GpusBasis, MfuFigure, Standing, Term

__all__ = [
    "LEDGER_CLASSES", "WASTE_CLASSES", "AlertRow", "AlertState", "Alerts", "Basis", "Cause", "ClassAmount",
    "ClusterInfo", "Day", "FindingInfo", "Fleet", "GpusBasis", "Job", "JobRow", "JobState", "Jobs", "Ledger",
    "LedgerClass", "Mark", "MfuFigure", "NodeInfo", "Query", "Range", "Series", "SessionInfo", "Severity", "Standing",
    "Status", "Stretch", "Target", "Term", "Tile", "Verdict", "VerdictCode",
]  # fmt: skip

JobState = Literal["waiting", "running", "stalled", "ended"]
Severity = Literal["critical", "warning", "info"]
AlertState = Literal["pending", "firing", "clearing", "resolved", "no_data"]
LedgerClass = Literal[
    "down", "unallocated", "allocated_idle", "stalled", "in_job_loss", "productive", "unmeasured", "unknown"
]
LEDGER_CLASSES: tuple[LedgerClass, ...] = (
    "down", "unallocated", "allocated_idle", "stalled", "in_job_loss", "productive", "unmeasured", "unknown",
)  # fmt: skip
WASTE_CLASSES: tuple[LedgerClass, ...] = ("allocated_idle", "stalled", "in_job_loss")
VerdictCode = Literal[
    "above_sustained", "above_not_sustained", "below", "below_sustained", "insufficient_data"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterInfo:
    """One cluster's size: slots known, and how many have reported lately."""

    name: str
    nodes: int
    gpus: int
    gpus_reporting: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """What every page shows in its frame."""

    version: str
    now_seconds: float
    data_time_seconds: float | None
    """Event time of the newest sample; pages say *data is N s old* from it."""
    generation: int
    """Rises whenever an answer may have changed: the key for memoising."""
    simulated: bool
    time_zone: str
    currency: str
    price_per_gpu_hour: float | None
    price_is_example: bool
    clusters: tuple[ClusterInfo, ...]
    history_progress_ratio: float | None = None
    """Share of older history that is filled in; ``None`` when nothing is being filled in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """The likely cause of waste: a code of the interface's text table, and its values."""

    code: str
    severity: Severity
    values: dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A run's MFU target and whose it is; ``ratio`` ``None`` means *no target set*."""

    ratio: float | None
    source: Literal["job", "team", "class", "default", "none"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassAmount:
    """GPU time of one class, its buckets, and its money."""

    name: LedgerClass
    gpu_milliseconds: int
    money: float | None
    buckets: dict[str, int]
    """GPU milliseconds by bucket of ``waste`` accounting, reasons as ``BUCKET:reason``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ledger:
    """Where GPU time went. The classes add up to ``capacity_gpu_milliseconds`` exactly."""

    start_seconds: float
    end_seconds: float
    provisional_from_seconds: float | None
    capacity_gpu_milliseconds: int
    classes: tuple[ClassAmount, ...]
    """In the order of ``LEDGER_CLASSES``, all eight, also the empty ones."""
    waste_gpu_milliseconds: int
    waste_money: float | None
    billable_ratio: float | None
    """U_bill = (leased - held empty - held idle) / capacity; ``None`` without capacity."""
    billable_upper_ratio: float | None
    """The same with UNKNOWN counted as billable."""
    allocated_ratio: float | None
    unknown_ratio: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Day:
    """One local calendar day's utilisation."""

    day: str
    """ISO date in ``Status.time_zone``."""
    billable_ratio: float | None
    unknown_ratio: float | None
    capacity_gpu_milliseconds: int
    complete: bool
    valid: bool
    """Known samples cover at least 90 % of capacity."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The fleet against the utilisation at which owning beats renting."""

    code: VerdictCode
    line_ratio: float
    line_source: Literal["default", "costs"]
    mean_30d_ratio: float | None
    valid_days: int
    days_above: int
    days_total: int
    sustained: bool
    days_in_state: int
    """Days since the sustained state was entered; days needed when data do not suffice."""
    cost_at_mean: float | None
    """Money a billable GPU-hour costs at the 30-day mean: price of a capacity hour / mean."""
    cost_at_line: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """Values over time; every column is as long as ``time_seconds``, gaps are ``None``."""

    level: str
    """What it was read from: ``raw``, ``5m`` or ``1h``."""
    step_seconds: float
    time_seconds: tuple[float, ...]
    columns: dict[str, tuple[float | None, ...]]


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


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertRow:
    """One alert: its identity labels, where it stands, and what to say."""

    fingerprint: str
    rule: str
    severity: Severity
    state: AlertState
    labels: dict[str, str]
    values: dict[str, Any]
    """For the text table: ``alert.<rule>`` takes them."""
    active_since_seconds: float | None
    fired_seconds: float | None
    resolved_seconds: float | None
    resolved_reason: str | None
    stale: bool
    summary: str
    """English, as sent to the channels."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """One number with its reference and its recent course."""

    value: float | None
    reference: float | None
    spark: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """The Fleet page. All ledger figures derive from the same ledger answer."""

    status: Status
    range_seconds: float
    verdict: Verdict
    utilisation: Tile
    """U_bill of today so far; the reference is the breakeven line."""
    mfu: Tile
    """Fleet training MFU of running instrumented jobs; the reference is their GPU-weighted target."""
    mfu_coverage_ratio: float | None
    """Share of leased GPU time whose job has an MFU."""
    waste: Tile
    """Wasted GPU-hours today."""
    waste_money: Tile
    """Cost of today's waste; the reference is yesterday's at the same time of day."""
    waste_money_per_day: float | None
    alerts_by_severity: dict[str, int]
    ledger_today: Ledger
    days: tuple[Day, ...]
    """The last 30 days, oldest first, today last."""
    series: Series
    """Columns ``kernel_active``, ``tensor_active``, ``mfu`` as ratios over ``range_seconds``."""
    mfu_target_ratio: float | None
    top_jobs: tuple[JobRow, ...]
    """Jobs that wasted most today, most first."""
    alerts: tuple[AlertRow, ...]
    mfu_by_money_ratio: float | None = None
    """The same mean as the tile's, every job weighted by what its GPU time cost; ``None`` without a price."""


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
    standing: Standing | None = None
    """Where the MFU stands among what is reachable; ``None`` without one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alerts:
    """Active alerts and the newest history."""

    status: Status
    active: tuple[AlertRow, ...]
    history: tuple[AlertRow, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """What is asked: how far back, which cluster, how many points a graph can show."""

    seconds: float = 86_400.0
    cluster: str | None = None
    points: int = 600


class Query(Protocol):
    """The dashboard's only way to data. Methods may block; callers run them in a thread."""

    def status(self) -> Status:
        """The frame of every page."""
        ...

    def fleet(self, asked: Range) -> Fleet:
        """The Fleet page."""
        ...

    def jobs(self, asked: Range) -> Jobs:
        """All running jobs and those that ended within the range."""
        ...

    def job(self, job_id: str, asked: Range) -> Job | None:
        """One job, or None when there is no such job."""
        ...

    def alerts(self, asked: Range) -> Alerts:
        """Active alerts, and those that were within the range."""
        ...
