"""A scheduler's reading as batches about nodes: the way of everything that is told of the fleet. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from flopwatch.wire import WIRE_VERSION, Batch, Event, Finding, JobSighting, Lease, QueueSnapshot
from flopwatch_collector.model import JobRecord, LeaseRecord
from flopwatch_collector.schedulers.placing import Chosen, Fleet, chosen, held_by_others, used_by
from flopwatch_collector.schedulers.reading import Allocation, Reading, ScheduledJob

EVIDENCE_SECONDS: Final = 600.0
"""A job that its node's agent has not seen on any GPU for so long is said to hold GPUs that are not known."""


@dataclass(kw_only=True)
class About:
    """What is told of one node."""

    jobs: dict[str, JobSighting] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    queues: tuple[QueueSnapshot, ...] = ()
    gpu_count: int | None = None
    touched: list[tuple[float, float]] = field(default_factory=list)
    """Times of which figures are to be made anew."""

    def batch(self, head: "Head", node: str) -> Batch:
        """The batch that tells it."""
        return Batch(
            version=WIRE_VERSION,
            node=node,
            cluster=head.cluster,
            spool=head.spool,
            sequence=head.sequence,
            boot_id="",
            sampled_at_seconds=head.time_seconds,
            monotonic_seconds=0.0,
            interval_seconds=head.interval_seconds,
            agent_version="",
            simulated=head.simulated,
            jobs=tuple(self.jobs.values()),
            leases=tuple(self.leases),
            findings=tuple(self.findings),
            events=tuple(self.events),
            queues=self.queues,
            reporter="scheduler",
            expected_gpu_count=self.gpu_count,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """What all batches of one telling have in common."""

    cluster: str
    spool: str
    sequence: int
    time_seconds: float
    interval_seconds: float
    simulated: bool = False


@dataclass(kw_only=True)
class Known:
    """What is known of leases and jobs, by what schedulers and nodes call them."""

    fleet: Fleet
    leases: dict[str, list[LeaseRecord]] = field(default_factory=dict)
    """By the id that the scheduler's words gave them."""
    on_node: dict[int, list[LeaseRecord]] = field(default_factory=dict)
    parts: dict[tuple[int, str], JobRecord] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for lease in self.fleet.state.leases.values():
            self.leases.setdefault(lease.lease_id.rpartition("@")[0], []).append(lease)
            self.on_node.setdefault(node_of(lease), []).append(lease)
        for job in self.fleet.state.jobs.values():
            for part in job.parts:
                self.parts[part.node, part.ref] = job

    def lease(self, name: str, node: str) -> LeaseRecord | None:
        """The lease of that id on the node."""
        known = self.fleet.nodes.get(node)
        number = None if known is None else known.number
        return next((each for each in self.leases.get(name, ()) if node_of(each) == number), None)


def node_of(lease: LeaseRecord) -> int:
    """The number of a lease's node; 0 where its id has none."""
    text = lease.lease_id.rpartition("@")[2].partition(":")[0]
    return int(text) if text.isdigit() else 0


def told(reading: Reading, fleet: Fleet) -> dict[str, About]:
    """By the agents' name of the node: its GPUs, jobs and leases, and what has ended since."""
    result: dict[str, About] = inventory(reading, fleet)
    hosts = {node.name: fleet.name_of(node) for node in reading.nodes or ()}
    known = Known(fleet=fleet)
    for job in reading.jobs:
        for share in job.allocations:
            name = hosts.get(share.node) or fleet.name_of(share.node)
            place = _Place(known=known, node=name, now=reading.time_seconds)
            _tell(result.setdefault(name, About()), job, share, place)
    return result


def inventory(reading: Reading, fleet: Fleet) -> dict[str, About]:
    """By the agents' name of the node: how many GPUs it has."""
    return {
        fleet.name_of(node): About(gpu_count=node.gpu_count)
        for node in reading.nodes or ()
        if node.gpu_count is not None
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    known: Known
    node: str
    now: float


def lease_id(job: ScheduledJob, share: Allocation, start: float) -> str:
    """The same for one share of one start of a job, however often it is told."""
    return "/".join(part for part in (job.ref, str(int(start)), share.part) if part)


def _tell(about: About, job: ScheduledJob, share: Allocation, place: _Place) -> None:
    """Add a share, unless it is over and known to be."""
    started = job.start_seconds if job.start_seconds is not None else job.submit_seconds
    start = float(int(place.now if started is None else started))
    name = lease_id(job, share, start)
    before = place.known.lease(name, place.node)
    end = None if job.end_seconds is None else float(int(job.end_seconds))
    if before is not None and end is not None and before.end_seconds == end:
        return
    found = _placed(job, share, place, (name, start))
    about.jobs[job.ref] = sighting(job)
    about.leases.append(
        Lease(
            lease_id=name,
            job=job.ref,
            gpus=tuple(gpu.uuid for gpu in found.gpus),
            source=job.lease_source,
            start_seconds=start,
            end_seconds=job.end_seconds,
            share_ratio=job.share_ratio,
            user=job.user,
            account=job.account,
            qos=job.qos,
        )
    )
    if before is None or set(before.gpus) != {gpu.number for gpu in found.gpus}:
        about.touched.append((start, place.now if job.end_seconds is None else job.end_seconds))
    elif end is not None:
        about.touched.append((min(end, before.end_seconds or end), max(end, before.end_seconds or place.now)))
    if not found.known and place.now - start > EVIDENCE_SECONDS:
        about.findings.append(_unknown(job, share, place.node, found))


def _placed(job: ScheduledJob, share: Allocation, place: _Place, own: tuple[str, float]) -> Chosen:
    (name, start), known = own, place.known
    gpus, node = known.fleet.gpus(place.node), known.fleet.nodes.get(place.node)
    if share.indices is not None or share.uuids is not None or node is None:
        return chosen(share, gpus, frozenset(), frozenset())
    before = known.lease(name, place.node)
    if before is not None and job.end_seconds is not None and len(before.gpus) == share.gpu_count:
        return Chosen(gpus=tuple(gpu for gpu in gpus if gpu.number in before.gpus), known=True)
    held = held_by_others(known.on_node.get(node.number, ()), name, start, job.end_seconds)
    used = used_by(known.parts.get((node.number, job.ref)), node.number)
    return chosen(share, gpus, used, held)


def sighting(job: ScheduledJob) -> JobSighting:
    """The job as a node would name it."""
    return JobSighting(
        ref=job.ref,
        scheduler=job.scheduler,
        scheduler_job_id=job.scheduler_job_id,
        submit_time_seconds=job.submit_seconds,
        array_parent_id=job.array_parent_id,
        restart_count=job.restart_count,
        owner_uid=job.owner_uid,
        user=job.user,
        account=job.account,
        name=job.name,
        start_time_seconds=job.start_seconds,
        end_time_seconds=job.end_seconds,
        exit_reason=job.exit_reason,
    )


def _unknown(job: ScheduledJob, share: Allocation, node: str, found: Chosen) -> Finding:
    return Finding(
        job=job.ref,
        code="leased_gpus_not_told",
        text=(
            f"The scheduler tells that the job holds {share.gpu_count} GPUs of {node}, not which ones: "
            f"{len(found.gpus)} that nobody else holds are counted as its own"
        ),
        values={"node": node, "gpus": share.gpu_count},
    )


def closed(reading: Reading, fleet: Fleet, prefix: str) -> dict[str, About]:
    """By node: open leases of which the scheduler no longer speaks, ended when it says or now."""
    running = {job.ref: job for job in reading.jobs if job.state == "running"}
    ended = {job.ref: job for job in reading.jobs if job.state == "ended"}
    names = {node.number: node.name for node in fleet.nodes.values()}
    result: dict[str, About] = {}
    for lease in fleet.state.leases.values():
        name, node = lease.lease_id.rpartition("@")[0], names.get(node_of(lease))
        ref, start = _parts(name)
        if lease.end_seconds is not None or node is None or not name.startswith(prefix) or start is None:
            continue
        goes_on = running.get(ref)
        if goes_on is not None and int(goes_on.start_seconds or start) == start:
            continue
        about = result.setdefault(node, About())
        gpus = tuple(fleet.state.gpus[gpu].uuid for gpu in lease.gpus if gpu in fleet.state.gpus)
        open_lease = _Open(lease=lease, name=name, ref=ref, gpus=gpus, over=goes_on is None)
        _close(about, open_lease, ended.get(ref), reading.time_seconds)
    return result


def _parts(name: str) -> tuple[str, int | None]:
    """(handle of the job, start) in a lease's id."""
    ref, *more = name.split("/")
    return ref, int(more[0]) if more and more[0].isdigit() else None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Open:
    lease: LeaseRecord
    name: str
    ref: str
    gpus: tuple[str, ...]
    over: bool
    """Whether the job is over with it; else it has begun anew."""


def _close(about: About, held: _Open, job: ScheduledJob | None, now: float) -> None:
    """End a lease, and the job where it is over."""
    end = job.end_seconds if job is not None and job.end_seconds is not None else now
    if held.over:
        known = job if job is not None else _forgotten(held.ref)
        about.jobs[held.ref] = JobSighting(
            ref=held.ref,
            scheduler=known.scheduler,
            scheduler_job_id=known.scheduler_job_id,
            owner_uid=known.owner_uid,
            end_time_seconds=end,
            exit_reason=known.exit_reason,
        )
    lease = held.lease
    about.leases.append(
        Lease(
            lease_id=held.name,
            job=held.ref,
            gpus=held.gpus,
            source=lease.source if lease.source in ("slurm", "kubernetes") else "api",
            start_seconds=lease.start_seconds,
            end_seconds=max(end, lease.start_seconds),
            share_ratio=lease.share_ratio,
            qos=lease.qos,
        )
    )
    about.touched.append((end, now))


def _forgotten(ref: str) -> ScheduledJob:
    """A job of which the scheduler knows nothing any more."""
    scheduler, _, number = ref.partition(":")
    kind = scheduler if scheduler in ("slurm", "kubernetes") else "other"
    return ScheduledJob(scheduler=kind, scheduler_job_id=number, ref=ref, state="ended")  # type: ignore[arg-type]


def partitions(snapshots: Iterable[QueueSnapshot]) -> frozenset[str]:
    """Partitions in which something waits."""
    return frozenset(each.partition for each in snapshots if each.pending_jobs)
