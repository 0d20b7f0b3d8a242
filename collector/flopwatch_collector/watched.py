"""What rules and diagnosis watch of a run and of a node beyond its row: courses, silences, suspects, health.

Everything may be unknown: ``None``, or an empty tuple where nothing was seen.
"""

from dataclasses import dataclass

from flopwatch.answers.diagnosis import Diagnosis
from flopwatch_collector.compute.detection.overdue import Silence
from flopwatch_collector.compute.detection.peers import Suspect


@dataclass(frozen=True, kw_only=True, slots=True)
class StepHistory:
    """Kept, steady steps of one shape, batch and world size, oldest first.

    Warm-up, checkpoints and evaluations are left out.
    """

    config: str
    """Changes when shape, sequence length, batch or world size do."""
    seconds: tuple[float, ...]
    """Of single steps."""
    ratios: tuple[float, ...] = ()
    """Their MFU; empty where it is not known."""
    end_seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Frozen:
    """What an MFU alert that has begun is held against: the baseline does not learn the fault."""

    config: str
    baseline_ratio: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Spending:
    """A job's GPU-hours."""

    used_gpu_hours: float
    idle_gpu_hours: float = 0.0
    declared_gpu_hours: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedRun:
    """A job's run as rules see it."""

    steps: StepHistory | None = None
    frozen: Frozen | None = None
    trend: tuple[float | None, ...] = ()
    """MFU over the last day, oldest first: the reference that a slow slide does not pull down."""
    norm_ratio: float | None = None
    """What runs of its model class reach on this GPU."""
    silence: Silence | None = None
    suspects: tuple[Suspect | None, ...] = ()
    """Of the newest five-minute reports, newest last."""
    launches: tuple[float, ...] = ()
    """When it was launched, oldest first."""
    launches_without_progress: int | None = None
    """Launches since the newest checkpoint, the present one included."""
    saves_seconds: tuple[float, ...] = ()
    """How long blocking checkpoints took, oldest first."""
    checkpoint_share: float | None = None
    """Of the run's time over the last day."""
    spending: Spending | None = None
    diagnosis: tuple[Diagnosis, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuHealth:
    """One GPU's health."""

    gpu: str
    """Its UUID."""
    index: int | None = None
    """Its place among the GPUs of its node, as people know it."""
    state: str = "ok"
    """As on the wire: ``ok``, ``lost``, ``reset_required``, ``unreadable``."""
    reason: str | None = None
    clock_event_reasons: int | None = None
    fatal_xids: tuple[int, ...] = ()
    """Of the last ten minutes, those of applications left out."""
    new_uncorrected_errors: int | None = None
    """Within the last hour."""
    new_remapped_rows: int | None = None
    recovery_action: int | None = None
    """NVML's advice; 0 is none."""
    pcie_width: int | None = None
    usual_pcie_width: int | None = None
    """What most of its peers have, else the most that it could have."""
    pcie_generation: int | None = None
    """As the link was while the GPU was at work."""
    usual_pcie_generation: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PortHealth:
    """One network port's health."""

    port: str
    link_up: bool | None = None
    rate_bits_per_second: float | None = None
    best_rate_bits_per_second: float | None = None
    """The better of its own last day and of the same port on other nodes."""
    new_errors: int | None = None
    """Within the last five minutes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeHealth:
    """A node's parts."""

    gpus: tuple[GpuHealth, ...] = ()
    ports: tuple[PortHealth, ...] = ()
    agent_problems: tuple[str, ...] = ()
    """Why its agent cannot tell all it should: missing permissions, a log it cannot follow, an old driver."""
    incidents: int = 0
    """Of different jobs, where it is a node that keeps appearing; 0 otherwise."""
    expected_incidents: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetHealth:
    """A budget in its period."""

    name: str
    state: str
    """``ok``, ``warning``, ``critical``, ``unknown``."""
    used_ratio: float | None = None
    forecast_ratio: float | None = None
