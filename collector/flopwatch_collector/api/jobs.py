"""``GET /api/v1/jobs``: every job known, in a few fields, for scripts."""

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi import Query as Parameter
from pydantic import BaseModel

from flopwatch_collector.api.errors import documented
from flopwatch_collector.api.query import CallerNeed, each_once
from flopwatch_collector.model import Fleet, FleetState, JobRecord


class JobEntry(BaseModel):
    """A job as it is known now."""

    job_id: str
    cluster: str
    name: str
    kind: str
    scheduler: str
    scheduler_job_id: str | None
    user: str | None
    account: str | None
    nodes: list[str]
    world_size: int | None
    start_seconds: float | None
    end_seconds: float | None
    exit_reason: str | None
    last_seen_seconds: float


class JobEntries(BaseModel):
    """Jobs, the newest first."""

    jobs: list[JobEntry]
    simulated: bool


def router(fleet: Fleet, caller: CallerNeed) -> APIRouter:
    """The plain list of jobs."""
    api = APIRouter(tags=["jobs"], dependencies=[Depends(caller), Depends(each_once)])

    @api.get("/api/v1/jobs", responses=documented(401, 403, 422, 429, 500))
    def jobs(
        cluster: Annotated[str | None, Parameter(max_length=253)] = None,
        *,
        running: Annotated[bool, Parameter(description="Only jobs that have not ended.")] = False,
        limit: Annotated[int, Parameter(ge=1, le=10_000)] = 1_000,
    ) -> JobEntries:
        """Jobs by the time they were last seen, newest first."""
        state = fleet.state()
        chosen = [
            job
            for job in state.jobs.values()
            if cluster in (None, job.cluster) and not (running and job.end_seconds is not None)
        ]
        chosen.sort(key=lambda job: job.last_seen_seconds, reverse=True)
        return JobEntries(jobs=[_entry(job, state) for job in chosen[:limit]], simulated=state.simulated)

    return api


def _entry(job: JobRecord, state: FleetState) -> JobEntry:
    numbers = sorted({part.node for part in job.parts})
    return JobEntry(
        job_id=job.job_id,
        cluster=job.cluster,
        name=job.name,
        kind=job.kind,
        scheduler=job.scheduler,
        scheduler_job_id=job.scheduler_job_id,
        user=job.user,
        account=job.account,
        nodes=[state.nodes[number].name for number in numbers],
        world_size=job.world_size,
        start_seconds=job.start_seconds,
        end_seconds=job.end_seconds,
        exit_reason=job.exit_reason,
        last_seen_seconds=job.last_seen_seconds,
    )
