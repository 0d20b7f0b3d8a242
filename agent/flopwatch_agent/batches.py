"""Puts batches together: what goes with every one, what only when it changed, and at least once a minute."""

import dataclasses
from dataclasses import dataclass

from flopwatch.wire import WIRE_VERSION, Batch, FollowedLog, GpuDevice, GpuSample, JobSighting, NodeFacts
from flopwatch_agent.source import Inventory, Readings

REPEAT_SECONDS = 60.0
END_REPEATS = 3
MAX_GAPS = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeIdentity:
    """Who sends."""

    node: str
    cluster: str
    boot_id: str
    machine_id: str | None
    agent_version: str
    interval_seconds: float
    simulated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """Everything that one batch is made of."""

    now: float
    monotonic: float
    spool: str
    sequence: int
    readings: Readings
    inventory: Inventory
    expected_gpus: tuple[str, ...] = ()
    sightings: tuple[JobSighting, ...] = ()
    ended: tuple[JobSighting, ...] = ()
    logs: tuple[FollowedLog, ...] = ()
    gaps: tuple[str, ...] = ()
    spool_dropped: int = 0


class BatchMaker:
    """Remembers what the collector was told, so that it is told again only when it changed or a minute passed."""

    def __init__(self, identity: NodeIdentity) -> None:
        self._identity = identity
        self._facts: NodeFacts | None = None
        self._facts_at = self._gpus_at = float("-inf")
        self._gpus: tuple[GpuDevice, ...] | None = None
        self._ended: dict[str, tuple[JobSighting, int]] = {}

    def make(self, moment: Moment) -> Batch:
        """The batch of a moment."""
        who, readings = self._identity, moment.readings
        return Batch(
            version=WIRE_VERSION,
            node=who.node,
            cluster=who.cluster,
            spool=moment.spool,
            sequence=moment.sequence,
            boot_id=who.boot_id,
            sampled_at_seconds=moment.now,
            monotonic_seconds=moment.monotonic,
            interval_seconds=who.interval_seconds,
            agent_version=who.agent_version,
            simulated=who.simulated,
            node_facts=self._node_facts(moment),
            gpus=self._inventory(moment),
            gpu_samples=with_jobs(readings, moment.sightings),
            node_samples=readings.node_samples,
            port_samples=readings.port_samples,
            job_samples=readings.job_samples,
            jobs=(*moment.sightings, *self._endings(moment.ended)),
            steps=readings.steps,
            phases=readings.phases,
            sessions=readings.sessions,
            findings=readings.findings,
            events=readings.events,
        )

    def forget_told(self) -> None:
        """The last batch was lost: tell everything with the next one."""
        self._facts_at = self._gpus_at = float("-inf")

    def _node_facts(self, moment: Moment) -> NodeFacts | None:
        facts = NodeFacts(
            machine_id=self._identity.machine_id,
            expected_gpus=moment.expected_gpus,
            nvml=moment.inventory.nvml,
            driver_version=moment.inventory.driver_version,
            permission_gaps=tuple(dict.fromkeys((*moment.inventory.gaps, *moment.gaps)))[:MAX_GAPS],
            logs=moment.logs,
            spool_dropped_batches=moment.spool_dropped,
        )
        due = moment.monotonic - self._facts_at >= REPEAT_SECONDS
        if not due and self._facts is not None and still(facts) == still(self._facts):
            return None
        self._facts, self._facts_at = facts, moment.monotonic
        return facts

    def _inventory(self, moment: Moment) -> tuple[GpuDevice, ...] | None:
        gpus = moment.inventory.gpus
        due = moment.monotonic - self._gpus_at >= REPEAT_SECONDS
        if gpus == self._gpus and not due:
            return None
        self._gpus, self._gpus_at = gpus, moment.monotonic
        return gpus

    def _endings(self, ended: tuple[JobSighting, ...]) -> tuple[JobSighting, ...]:
        """Ends are told a few times: a batch may be given up when the spool is full."""
        self._ended.update({item.ref: (item, END_REPEATS) for item in ended})
        told = tuple(item for item, _ in self._ended.values())
        self._ended = {ref: (item, left - 1) for ref, (item, left) in self._ended.items() if left > 1}
        return told


def still(facts: NodeFacts) -> tuple[object, ...]:
    """What the facts say, without what changes with every read of a log."""
    return (
        facts.machine_id,
        facts.expected_gpus,
        facts.nvml,
        facts.driver_version,
        facts.permission_gaps,
        facts.spool_dropped_batches,
        tuple((item.job, item.path, item.alive, item.problem) for item in facts.logs),
    )


def owners_of(sightings: tuple[JobSighting, ...]) -> dict[str, str | None]:
    """By GPU: the one job that holds it; None where several do."""
    owners: dict[str, str | None] = {}
    for job in sightings:
        for gpu in job.gpus:
            owners[gpu] = None if gpu in owners else job.ref
    return owners


def with_jobs(readings: Readings, sightings: tuple[JobSighting, ...]) -> tuple[GpuSample, ...]:
    """GPU samples with the job whose process holds the GPU; a GPU that several jobs share names none."""
    owners = owners_of(sightings)
    return tuple(
        sample if (owner := owners.get(sample.gpu)) == sample.job else dataclasses.replace(sample, job=owner)
        for sample in readings.gpu_samples
    )
