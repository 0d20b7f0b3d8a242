"""A scheduler's reading as batches about nodes: the way of everything that is told of the fleet. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from flopwatch.wire import WIRE_VERSION, Batch, Event, Finding, JobSighting, Lease, QueueSnapshot
from flopwatch_collector.model import JobRecord, LeaseRecord
from flopwatch_collector.schedulers.placing import Chosen, Evidence, Fleet, chosen, held_by_others, used_by
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
    shares = [
        _share(job, share, hosts.get(share.node) or fleet.name_of(share.node), reading.time_seconds)
        for job in reading.jobs
        for share in job.allocations
    ]
    place = _Placing(known=known, now=reading.time_seconds, told=frozenset(each.name for each in shares))
    for each in sorted(shares, key=place.order):
        place.tell(result.setdefault(each.node, About()), each)
    return result


def inventory(reading: Reading, fleet: Fleet) -> dict[str, About]:
    """By the agents' name of the node: how many GPUs it has."""
    return {
        fleet.name_of(node): About(gpu_count=node.gpu_count)
        for node in reading.nodes or ()
        if node.gpu_count is not None
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Share:
    """A job's share of a node."""

    job: ScheduledJob
    share: Allocation
    node: str
    name: str
    """The lease's id."""
    start: float

    @property
    def is_counted(self) -> bool:
        """Whether only the number of GPUs is told."""
        return self.share.indices is None and self.share.uuids is None


def _share(job: ScheduledJob, share: Allocation, node: str, now: float) -> _Share:
    started = job.start_seconds if job.start_seconds is not None else job.submit_seconds
    start = float(int(now if started is None else started))
    return _Share(job=job, share=share, node=node, name=lease_id(job, share, start), start=start)


def lease_id(job: ScheduledJob, share: Allocation, start: float) -> str:
    """The same for one share of one start of a job, however often it is told."""
    return "/".join(part for part in (job.ref, str(int(start)), share.part) if part)


@dataclass(kw_only=True)
class _Placing:
    """Finds the GPUs of all shares of one reading: no two get the same unless they are told so."""

    known: Known
    now: float
    told: frozenset[str]
    """Ids of all leases of the reading."""
    _taken: dict[str, set[int]] = field(default_factory=dict)
    """By node: GPUs of shares that last."""

    def order(self, share: _Share) -> tuple[bool, bool, bool]:
        """Shares of which most is known come first."""
        return (
            share.is_counted,
            not self._used(share),
            self.known.lease(share.name, share.node) is None,
        )

    def _used(self, share: _Share) -> frozenset[int]:
        node = self.known.fleet.nodes.get(share.node)
        if node is None:
            return frozenset()
        return used_by(self.known.parts.get((node.number, share.job.ref)), share.job.ref, node.number)

    def tell(self, about: About, share: _Share) -> None:
        """Add a share, unless it is over and known to be."""
        job = share.job
        before = self.known.lease(share.name, share.node)
        end = None if job.end_seconds is None else float(int(job.end_seconds))
        if before is not None and end is not None and before.end_seconds == end:
            return
        found = self._placed(share, before)
        if end is None:
            self._taken.setdefault(share.node, set()).update(gpu.number for gpu in found.gpus)
        about.jobs[job.ref] = sighting(job)
        about.leases.append(_lease(share, found))
        if before is None or set(before.gpus) != {gpu.number for gpu in found.gpus}:
            about.touched.append((share.start, self.now if end is None else end))
        elif end is not None:
            was = before.end_seconds
            about.touched.append((min(end, was or end), max(end, was or self.now)))
        if not found.known and self.now - share.start > EVIDENCE_SECONDS:
            about.findings.append(_unknown(job, share.share, share.node, found))

    def _placed(self, share: _Share, before: LeaseRecord | None) -> Chosen:
        gpus, node = self.known.fleet.gpus(share.node), self.known.fleet.nodes.get(share.node)
        if not share.is_counted or node is None:
            return chosen(share.share, gpus, Evidence())
        own = frozenset(() if before is None else before.gpus)
        if share.job.end_seconds is not None and len(own) == share.share.gpu_count:
            return Chosen(gpus=tuple(gpu for gpu in gpus if gpu.number in own), known=True)
        held = held_by_others(
            self.known.on_node.get(node.number, ()), self.told, share.start, share.job.end_seconds
        )
        taken = frozenset(self._taken.get(share.node, ()))
        return chosen(share.share, gpus, Evidence(used=self._used(share), before=own, held=held | taken))


def _lease(share: _Share, found: Chosen) -> Lease:
    job = share.job
    return Lease(
        lease_id=share.name,
        job=job.ref,
        gpus=tuple(gpu.uuid for gpu in found.gpus),
        source=job.lease_source,
        start_seconds=share.start,
        end_seconds=job.end_seconds,
        share_ratio=job.share_ratio,
        user=job.user,
        account=job.account,
        qos=job.qos,
    )


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
