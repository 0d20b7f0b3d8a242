"""What a source is, and the values it gives: the way from reading to sending."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from flopwatch.wire import (
    Event,
    Finding,
    FollowedLog,
    GpuDevice,
    GpuSample,
    JobSample,
    JobSighting,
    NodeSample,
    Phase,
    PortSample,
    SessionMark,
    StepRecord,
)
from flopwatch_agent.nic_affinity import Affinity
from flopwatch_agent.slurm_output import SlurmFile
from flopwatch_agent.xids import XidCount


@dataclass(frozen=True, kw_only=True, slots=True)
class Readings:
    """What one read of a source gave; an empty tuple means nothing new."""

    gpu_samples: tuple[GpuSample, ...] = ()
    node_samples: tuple[NodeSample, ...] = ()
    port_samples: tuple[PortSample, ...] = ()
    job_samples: tuple[JobSample, ...] = ()
    steps: tuple[StepRecord, ...] = ()
    phases: tuple[Phase, ...] = ()
    sessions: tuple[SessionMark, ...] = ()
    findings: tuple[Finding, ...] = ()
    events: tuple[Event, ...] = ()


NOTHING = Readings()
READING_NAMES = tuple(field.name for field in dataclasses.fields(Readings))


class Source(Protocol):
    """Reads one part of the node."""

    name: str

    def read(self, now: float) -> Readings:
        """What is new at ``now`` (epoch seconds)."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class JobProcess:
    """One process of a job, and what decides what may be read for it."""

    pid: int
    start_ticks: int
    start_time_seconds: float
    uid: int
    groups: frozenset[int]
    is_top: bool = False
    rank: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ObservedJob:
    """A job as this node sees it now, with the processes it was seen by."""

    sighting: JobSighting
    processes: tuple[JobProcess, ...] = ()
    config_paths: tuple[str, ...] = ()
    """Model configurations that the job's command line names; they never leave the node."""
    output_paths: tuple[str, ...] = ()
    """Folders that the command lines name for the run's own files; they never leave the node."""
    shared_paths: tuple[str, ...] = ()
    """Folders that the environment names, or custom puts into the working folder: other runs may write there too."""
    output_files: tuple[SlurmFile, ...] = ()
    """Where the scheduler may put the job's output; they never leave the node."""
    metrics_ports: tuple[int, ...] = ()
    """Ports that the command lines name for a trainer's Prometheus endpoint."""
    model_caches: tuple[str, ...] = ()
    """Folders in which models were downloaded."""
    declared_model: str | None = None
    """``FLOPWATCH_MODEL``: a configuration's path or a shape in JSON."""
    declared_parameters: int | None = None
    findings: tuple[Finding, ...] = ()
    ended: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Inventory:
    """The GPUs of the node, and how NVML is."""

    nvml: Literal["ok", "absent", "failed"] = "absent"

    reason: str | None = None
    driver_version: str | None = None
    gpus: tuple[GpuDevice, ...] = ()
    gaps: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceHealth:
    """How one source's last read went."""

    name: str
    success: bool
    read_seconds: float
    duration_seconds: float
    errors: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """Everything ``/metrics`` tells, as of ``now``: replaced as a whole, never changed."""

    now: float
    interval_seconds: float
    inventory: Inventory = Inventory()
    gpu_samples: tuple[GpuSample, ...] = ()
    port_samples: tuple[PortSample, ...] = ()
    node_sample: NodeSample | None = None
    job_samples: tuple[JobSample, ...] = ()
    jobs: tuple[JobSighting, ...] = ()
    logs: tuple[FollowedLog, ...] = ()
    last_steps: tuple[StepRecord, ...] = ()
    gpu_details: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By UUID: what is told here only, by ``name`` or ``name/label``."""
    xids: tuple[XidCount, ...] = ()
    affinity: tuple[Affinity, ...] = ()
    health: tuple[SourceHealth, ...] = ()
    counters: tuple[tuple[str, int], ...] = ()
    turned_seconds: float | None = None
    """When the agent's loop turned last."""


def joined(parts: Iterable[Readings]) -> Readings:
    """All parts' values in one."""
    collected = [part for part in parts if part != NOTHING]
    if len(collected) <= 1:
        return collected[0] if collected else NOTHING
    values = {
        name: tuple(item for part in collected for item in getattr(part, name)) for name in READING_NAMES
    }
    return Readings(**values)
