"""``/api/v1/leases``, ``/api/v1/queue``, ``/api/v1/schedulers``: what schedulers say, for those we do not read."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from flopwatch.wire import QueueSnapshot
from flopwatch_collector.api import bodies
from flopwatch_collector.api.access import Caller
from flopwatch_collector.api.errors import FieldProblem, documented
from flopwatch_collector.api.query import CallerNeed, each_once
from flopwatch_collector.compute.holds import lease_end
from flopwatch_collector.ingest.decode import shown
from flopwatch_collector.model import FleetState, LeaseRecord
from flopwatch_collector.schedulers.assembling import Assembled
from flopwatch_collector.schedulers.node_states import gpus_named
from flopwatch_collector.schedulers.placing import Fleet
from flopwatch_collector.schedulers.polling import LIMITS, Limits
from flopwatch_collector.schedulers.reading import Allocation, Reading, ScheduledJob
from flopwatch_collector.schedulers.telling import About, told

MOST_LEASES = 10_000
LATEST_SECONDS = 32_503_680_000.0
Name = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=r"^[^\x00-\x1f\x7f]+$")]
JobName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f/@]+$")]
Seconds = Annotated[float, Field(ge=0.0, le=LATEST_SECONDS)]


class LeaseBody(BaseModel):
    """One job's share of one node. The same job, node and start again replaces what was said."""

    model_config = ConfigDict(extra="forbid", strict=True)

    scheduler: Literal["slurm", "kubernetes", "other"] = "other"
    job: JobName
    """The scheduler's id of the job: the same on all its nodes."""
    node: Name
    cluster: Name = "default"
    gpus: Annotated[list[Name | int], Field(max_length=1024)] | None = None
    """UUIDs, slots or indices; absent: only their number is known."""
    gpu_count: Annotated[int, Field(ge=1, le=1024)] | None = None
    start_seconds: Seconds
    end_seconds: Seconds | None = None
    """Absent: the job still holds them."""
    exit_reason: Name | None = None
    submit_seconds: Seconds | None = None
    user: Name | None = None
    account: Name | None = None
    qos: Name | None = None
    name: Name | None = None
    share_ratio: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0


class LeasesBody(BaseModel):
    """Leases to open, change or close."""

    model_config = ConfigDict(extra="forbid", strict=True)

    leases: Annotated[list[LeaseBody], Field(min_length=1, max_length=MOST_LEASES)]


class QueueBody(BaseModel):
    """What waits in one partition."""

    model_config = ConfigDict(extra="forbid", strict=True)

    cluster: Name = "default"
    partition: Annotated[str, StringConstraints(max_length=253)] = ""
    pending_jobs: Annotated[int, Field(ge=0, le=1 << 40)]
    pending_gpus: Annotated[int, Field(ge=0, le=1 << 40)]
    largest_request_gpus: Annotated[int, Field(ge=0, le=1 << 40)] | None = None
    time_seconds: Seconds | None = None
    """Absent: now."""


class Taken(BaseModel):
    """It is durable."""

    taken: int


class LeaseEntry(BaseModel):
    """Who holds which GPUs of a node."""

    lease_id: str
    job_id: str
    cluster: str
    node: str
    gpus: list[str]
    source: str
    user: str | None
    account: str | None
    qos: str | None
    share_ratio: float
    start_seconds: float
    end_seconds: float | None


class LeasesAnswer(BaseModel):
    """Leases, the newest first."""

    leases: list[LeaseEntry]


class LimitEntry(BaseModel):
    """The most GPUs that somebody may hold at once."""

    scheduler: str
    cluster: str
    kind: str
    name: str
    gpus: int
    used_gpus: int | None
    told_seconds: float


class SchedulerEntry(BaseModel):
    """How the reading of one scheduler fares."""

    name: str
    kind: str
    cluster: str
    read_seconds: float | None
    problem: str | None
    running_jobs: int | None
    pending_gpus: int | None


class SchedulersAnswer(BaseModel):
    """What is read, and the limits that were found."""

    schedulers: list[SchedulerEntry]
    limits: list[LimitEntry]


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseParts:
    """What the routes work with."""

    assembled: Assembled
    state: Callable[[], FleetState]
    read: CallerNeed
    push: CallerNeed
    """Those who may say what schedulers say."""
    clock: Callable[[], float] = time.time


def router(parts: LeaseParts) -> APIRouter:
    """Leases and the queue."""
    api = APIRouter(tags=["schedulers"], dependencies=[Depends(each_once)])
    refusals = documented(400, 401, 403, 413, 415, 422, 429, 500, 503)

    @api.post("/api/v1/leases", responses=refusals, openapi_extra=bodies.schema(LeasesBody))
    async def leases(request: Request, _: Annotated[Caller, Depends(parts.push)]) -> Taken:
        """Open, change or close leases; the same again changes nothing."""
        body = await bodies.read(request, LeasesBody)
        await bodies.durably(take_leases, parts, body.leases)
        return Taken(taken=len(body.leases))

    @api.get(
        "/api/v1/leases", dependencies=[Depends(parts.read)], responses=documented(401, 403, 422, 429, 500)
    )
    async def held(
        *,
        open: Annotated[bool, Query(description="Only those that last")] = True,  # noqa: A002 - the parameter's name
        limit: Annotated[int, Query(ge=1, le=MOST_LEASES)] = 1000,
    ) -> LeasesAnswer:
        """Who holds which GPUs."""
        return LeasesAnswer(leases=entries(parts.state(), only_open=open)[:limit])

    @api.post("/api/v1/queue", responses=refusals, openapi_extra=bodies.schema(QueueBody))
    async def queue(request: Request, _: Annotated[Caller, Depends(parts.push)]) -> Taken:
        """Say what waits in a partition; it counts until it is said again, an hour at most."""
        body = await bodies.read(request, QueueBody)
        await bodies.durably(take_queue, parts, body)
        return Taken(taken=1)

    @api.get(
        "/api/v1/schedulers",
        dependencies=[Depends(parts.read)],
        responses=documented(401, 403, 422, 429, 500),
    )
    async def schedulers() -> SchedulersAnswer:
        """How the reading of schedulers fares, and the limits they told."""
        return await bodies.durably(_schedulers, parts)

    return api


def _schedulers(parts: LeaseParts) -> SchedulersAnswer:
    known = parts.assembled.nodes.control.load(LIMITS, Limits)
    return SchedulersAnswer(
        schedulers=[
            SchedulerEntry(**{name: getattr(health, name) for name in SchedulerEntry.model_fields})
            for health in parts.assembled.polls.health()
        ],
        limits=[
            LimitEntry(
                scheduler=name,
                cluster=told_last.cluster,
                kind=each.kind,
                name=each.name,
                gpus=each.gpus,
                used_gpus=each.used_gpus,
                told_seconds=told_last.time_seconds,
            )
            for name, told_last in sorted(known.items())
            for each in told_last.limits
        ],
    )


def take_leases(parts: LeaseParts, leases: list[LeaseBody]) -> None:
    """Make leases durable.

    Raises:
        Refused: 422: a node, a GPU or a time that cannot be meant.
        Unavailable: they cannot be made durable now.
    """
    now = parts.clock()
    by_cluster: dict[str, list[ScheduledJob]] = {}
    fleets: dict[str, Fleet] = {}
    state = parts.state()
    for position, lease in enumerate(leases):
        fleet = fleets.setdefault(lease.cluster, Fleet(state=state, cluster=lease.cluster))
        by_cluster.setdefault(lease.cluster, []).append(_job(lease, fleet, f"leases.{position}"))
    for cluster, jobs in by_cluster.items():
        reading = Reading(time_seconds=now, jobs=tuple(jobs))
        parts.assembled.delivery.deliver(cluster, told(reading, fleets[cluster]), now)


def _job(lease: LeaseBody, fleet: Fleet, field: str) -> ScheduledJob:
    if lease.end_seconds is not None and lease.end_seconds < lease.start_seconds:
        raise bodies.invalid(
            FieldProblem(
                field=f"{field}.end_seconds", value=shown(lease.end_seconds), allowed="start_seconds or later"
            )
        )
    return ScheduledJob(
        scheduler=lease.scheduler,
        scheduler_job_id=lease.job,
        ref=f"{lease.scheduler}:{lease.job}",
        state="running" if lease.end_seconds is None else "ended",
        name=lease.name,
        user=lease.user,
        account=lease.account,
        qos=lease.qos,
        submit_seconds=lease.submit_seconds,
        start_seconds=lease.start_seconds,
        end_seconds=lease.end_seconds,
        exit_reason=lease.exit_reason,
        allocations=(_share(lease, fleet, field),),
        share_ratio=lease.share_ratio,
        lease_source="api",
    )


def _share(lease: LeaseBody, fleet: Fleet, field: str) -> Allocation:
    """The lease's GPUs on its node.

    Raises:
        Refused: 422: the node or a GPU is not known, or neither GPUs nor their number are given.
    """
    name = fleet.name_of(lease.node)
    if name not in fleet.nodes:
        known = ", ".join(sorted(fleet.nodes)[:5]) or "none yet"
        raise bodies.invalid(
            FieldProblem(
                field=f"{field}.node",
                value=shown(lease.node),
                allowed=f"a node of cluster {fleet.cluster!r}, such as {known}",
            )
        )
    if lease.gpus is None:
        if lease.gpu_count is None:
            problem = FieldProblem(field=f"{field}.gpus", value="absent", allowed="GPUs, or gpu_count")
            raise bodies.invalid(problem)
        return Allocation(node=name, gpu_count=lease.gpu_count)
    number = fleet.nodes[name].number
    uuids: list[str] = []
    for position, gpu in enumerate(lease.gpus):
        found = gpus_named(fleet.state, number, [str(gpu)])
        if not found:
            have = ", ".join(each.slot for each in fleet.gpus(name)) or "none"
            raise bodies.invalid(
                FieldProblem(
                    field=f"{field}.gpus.{position}", value=shown(gpu), allowed=f"a GPU of {name}: {have}"
                )
            )
        uuids += [each.uuid for each in found]
    return Allocation(node=name, gpu_count=len(set(uuids)), uuids=tuple(dict.fromkeys(uuids)))


def take_queue(parts: LeaseParts, body: QueueBody) -> None:
    """Make a snapshot durable.

    Raises:
        Refused: 422: the cluster has no nodes.
        Unavailable: it cannot be made durable now.
    """
    fleet = Fleet(state=parts.state(), cluster=body.cluster)
    place = min(fleet.nodes, default=None)
    if place is None:
        raise bodies.invalid(
            FieldProblem(field="cluster", value=shown(body.cluster), allowed="a cluster with nodes")
        )
    now = parts.clock()
    snapshot = QueueSnapshot(
        time_seconds=now if body.time_seconds is None else body.time_seconds,
        partition=body.partition,
        pending_jobs=body.pending_jobs,
        pending_gpus=body.pending_gpus,
        largest_request_gpus=body.largest_request_gpus,
    )
    parts.assembled.delivery.deliver(body.cluster, {place: About(queues=(snapshot,))}, now)


def entries(state: FleetState, *, only_open: bool) -> list[LeaseEntry]:
    """Leases, the newest first."""
    result = [_entry(lease, state) for lease in state.leases.values() if lease.job in state.jobs]
    chosen = [each for each in result if each.end_seconds is None or not only_open]
    return sorted(chosen, key=lambda each: (-each.start_seconds, each.lease_id))


def _entry(lease: LeaseRecord, state: FleetState) -> LeaseEntry:
    job = state.jobs[lease.job]
    node: Any = state.nodes.get(int(lease.lease_id.rpartition("@")[2].partition(":")[0] or 0))
    return LeaseEntry(
        lease_id=lease.lease_id.rpartition("@")[0],
        job_id=job.job_id,
        cluster=job.cluster,
        node="" if node is None else node.name,
        gpus=[state.gpus[gpu].uuid for gpu in lease.gpus if gpu in state.gpus],
        source=lease.source,
        user=job.user,
        account=job.account,
        qos=lease.qos,
        share_ratio=lease.share_ratio,
        start_seconds=lease.start_seconds,
        end_seconds=lease_end(lease, job),
    )
