"""The fleet GPU by GPU, one node, one GPU: what they do now, their health, and what happened to them."""

from dataclasses import dataclass, field
from typing import Literal

from flopwatch.answers.alert import AlertRow
from flopwatch.answers.frame import Series, Status
from flopwatch.answers.ledger import Ledger, LedgerClass

Health = Literal["ok", "warning", "critical", "unknown"]
HEALTHS: tuple[Health, ...] = ("ok", "warning", "critical", "unknown")
"""``unknown``: it does not report, so nothing can be said."""

GPU_VALUES = (
    "kernel_active_ratio", "tensor_active_ratio", "sm_active_ratio", "memory_used_ratio", "power_watts",
    "temperature_celsius", "sm_clock_hertz", "nic_bytes_per_second", "mfu_ratio",
)  # fmt: skip
"""What a heat-map can show: the newest sample of each GPU; of the network, all ports of its node; of MFU, its job."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobRef:
    """A job by name."""

    job_id: str
    """Empty where the reader may not see the job."""
    name: str
    account: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeRow:
    """One node as it is now."""

    node: str
    cluster: str
    rack: str | None
    """By the site's pattern of node names; ``None`` without one, or where it does not fit."""
    gpu_model: str | None
    gpus: int
    """Slots with a GPU."""
    gpus_reporting: int
    last_seen_seconds: float | None
    """``None``: no agent has ever reported."""
    health: Health
    problems: tuple[str, ...] = ()
    """Codes, worst first: ``silent``, ``gpu_lost``, ``xid``, ``throttled``, ``alert``, ``agent`` …"""
    declared: tuple[str, ...] = ()
    """``maintenance``, ``spare``, ``drain``, ``faulty``."""

    @property
    def reporting(self) -> bool:
        """Whether any of its GPUs reports."""
        return self.gpus_reporting > 0


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuColumns:
    """All GPUs, column by column, in the order of their nodes and then of their index."""

    node: tuple[int, ...]
    """Place in ``Nodes.nodes``."""
    index: tuple[int, ...]
    """Index on the node."""
    bucket: tuple[int, ...]
    """Place in ``Nodes.buckets``: what its time counts as now."""
    health: tuple[int, ...]
    """Place in ``HEALTHS``."""
    job: tuple[int, ...]
    """Place in ``Nodes.jobs``; -1: none."""
    reporting: tuple[bool, ...]
    """Values of a GPU that does not report are those it had last."""
    values: dict[str, tuple[float | None, ...]]
    """By ``GPU_VALUES``; a column that nobody can fill is not there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Nodes:
    """The Nodes page."""

    status: Status
    nodes: tuple[NodeRow, ...]
    """By cluster and name."""
    gpus: GpuColumns
    buckets: tuple[str, ...]
    """Ledger buckets; empty where this source of data has no ledger."""
    classes: tuple[LedgerClass, ...]
    """The class of each bucket."""
    jobs: tuple[JobRef, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuRow:
    """One GPU as it is now."""

    uuid: str
    node: str
    slot: str | None
    index: int | None
    model: str | None
    state: str
    """As on the wire: ``ok``, ``lost``, ``reset_required``, ``unreadable``."""
    reason: str | None
    bucket: str | None
    job: JobRef | None
    health: Health
    problems: tuple[str, ...]
    reporting: bool
    sample_seconds: float | None
    values: dict[str, float | None]
    """``GPU_VALUES``, and what else its newest sample holds: clocks, counters of errors, processes."""
    throttles: tuple[str, ...] = ()
    """Why its clock is held down now: ``power_cap``, ``hw_slowdown``, ``sw_thermal``, ``hw_thermal``,
    ``power_brake``."""
    memory_total_bytes: int | None = None
    max_sm_clock_hertz: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PortRow:
    """One network port: its newest rates and its link."""

    port: str
    role: str
    transmit_bytes_per_second: float | None
    receive_bytes_per_second: float | None
    link_up: bool | None
    link_rate_bits_per_second: float | None
    errors: int | None
    """Since its driver began to count."""
    new_errors: int | None
    """Within the last minutes that were read."""
    waits_per_second: float | None
    """Ticks a second in which it had data and could not send."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HealthEvent:
    """Something that an agent, a scheduler or an operator said of a node or GPU."""

    time_seconds: float
    kind: str
    gpu: str | None
    code: int | None
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RanHere:
    """A job that had GPUs of the node or the GPU within the range."""

    job: JobRef
    gpus: int
    start_seconds: float | None
    end_seconds: float | None
    exit_reason: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredRow:
    """What holds of a node or GPU, and who said so."""

    declaration: str
    gpu: str | None
    since_seconds: float
    until_seconds: float | None
    source: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LemonInfo:
    """How often a node was at fault in the last two weeks."""

    incidents: int
    jobs: int
    kinds: tuple[str, ...]
    keeps_appearing: bool
    """More often than chance explains."""
    expected: float | None
    """Incidents that a node of this fleet has in the same time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePage:
    """One node."""

    status: Status
    range_seconds: float
    row: NodeRow
    gpus: tuple[GpuRow, ...]
    series: Series
    """Columns ``kernel_active``, ``tensor_active``, ``node_power_watts`` (all GPUs), ``hottest_celsius``,
    ``nic_transmit``, ``nic_receive``."""
    ports: tuple[PortRow, ...] = ()
    events: tuple[HealthEvent, ...] = ()
    """The newest first."""
    jobs: tuple[RanHere, ...] = ()
    """The newest first."""
    declared: tuple[DeclaredRow, ...] = ()
    alerts: tuple[AlertRow, ...] = ()
    lemon: LemonInfo | None = None
    ledger: Ledger | None = None
    """Where the node's GPU time of the range went."""
    facts: dict[str, str] = field(default_factory=dict)
    """``driver``, ``machine_id``, ``nvml``, ``interval_seconds``, ``clock_offset_seconds``."""
    agent_problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuPage:
    """One GPU."""

    status: Status
    range_seconds: float
    row: GpuRow
    cluster: str
    series: Series
    """Columns ``kernel_active``, ``sm_active``, ``tensor_active``, ``dram_active``, ``power_watts``,
    ``temperature_celsius``, ``memory_temperature_celsius``, ``memory_used_ratio``, ``sm_clock_hertz``,
    ``memory_clock_hertz``."""
    events: tuple[HealthEvent, ...] = ()
    jobs: tuple[RanHere, ...] = ()
    alerts: tuple[AlertRow, ...] = ()
    slot_history: tuple[tuple[str, float, float | None], ...] = ()
    """(UUID, from, until) of the GPUs that were in its slot, the newest first."""
