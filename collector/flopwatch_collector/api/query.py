"""``GET /api/v1/query/…``: the answers the dashboard is made of."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi import Query as Parameter

from flopwatch import query
from flopwatch.settings import SettingError
from flopwatch_collector.api.access import Caller
from flopwatch_collector.api.errors import FieldProblem, Refused, documented
from flopwatch_collector.ingest.decode import shorten

LONGEST_RANGE_SECONDS = 3 * 366 * 86_400.0
LATEST_SECONDS = 1e11
CallerNeed = Callable[[Request], Awaitable[Caller]]
T = TypeVar("T")


async def asked_range(
    seconds: Annotated[
        float, Parameter(gt=0.0, le=LONGEST_RANGE_SECONDS, description="How far back, in seconds.")
    ] = 86_400.0,
    cluster: Annotated[str | None, Parameter(max_length=253, description="Only this cluster.")] = None,
    points: Annotated[int, Parameter(ge=1, le=10_000, description="How many points a graph can show.")] = 600,
    end: Annotated[
        float | None,
        Parameter(
            ge=0.0, le=LATEST_SECONDS, description="Where the range ends, epoch seconds; left out: now."
        ),
    ] = None,
) -> query.Range:
    """What a request asks for."""
    return query.Range(seconds=seconds, cluster=cluster, points=points, end_seconds=end)


async def asked_of_team(
    asked: Annotated[query.Range, Depends(asked_range)],
    team: Annotated[
        str | None, Parameter(min_length=1, max_length=253, description="Also the ledger of this team.")
    ] = None,
) -> query.Range:
    """What a request for ledgers asks for."""
    return replace(asked, team=team)


async def each_once(request: Request) -> None:
    """Refuse a parameter that is given twice: which of them counts would be a guess.

    Raises:
        Refused: 422.
    """
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if names.count(name) > 1:
            field = FieldProblem(
                field=shorten(name), value=f"given {names.count(name)} times", allowed="given once"
            )
            raise Refused(422, "invalid", f"parameter {field.field} is {field.value}", fields=[field])


Asked = Annotated[query.Range, Depends(asked_range)]
AskedOfTeam = Annotated[query.Range, Depends(asked_of_team)]
Overrides = Annotated[
    str,
    Parameter(
        max_length=4000, description="Inputs to change: `own.capex_per_gpu=40000,cloud.uplift_ratio=0.1`."
    ),
]
PlaceName = Annotated[str, Path(max_length=253, description="Name of the node, or UUID of the GPU.")]
JobId = Annotated[str, Path(max_length=253, description="Id of the job, as `jobs` lists it.")]


def overrides_of(text: str) -> dict[str, float]:
    """Changed inputs by name.

    Raises:
        Refused: 422, it is no list of names with numbers.
    """
    result = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, number = part.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not name.strip() or not math.isfinite(value):
            field = FieldProblem(
                field="overrides", value=shorten(part), allowed="name=number, separated by commas"
            )
            raise Refused(422, "invalid", "parameter overrides is no list of name=number", fields=[field])
        result[name.strip()] = value
    return result


async def changed_economy(source: query.Query, asked: query.Range, changed: dict[str, float]) -> Response:
    """The economy with inputs changed.

    Raises:
        Refused: 422, an input is not known, or its value not allowed.
    """
    try:
        return as_json(await asyncio.to_thread(source.economy, asked, changed))
    except SettingError as error:
        problem = FieldProblem(
            field="overrides",
            value=shorten(f"{error.name}={error.value}"),
            allowed=shorten(error.allowed),
        )
        raise Refused(422, "invalid", str(error), fields=[problem]) from error


def as_json(answer: object) -> Response:
    """An answer of the Query port as JSON."""
    return Response(msgspec.json.encode(answer), media_type="application/json")


def answers(kind: type[Any], *statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI's words for a route that answers with a value of the Query port."""
    return {200: {"model": kind, "description": (kind.__doc__ or "").strip()}, **documented(*statuses)}


def router(source: query.Query, caller: CallerNeed) -> APIRouter:
    """All questions of the Query port, as JSON."""
    api = APIRouter(
        prefix="/api/v1/query", tags=["query"], dependencies=[Depends(caller), Depends(each_once)]
    )
    refusals = (401, 403, 422, 429, 500)

    @api.get("/status", response_model=None, responses=answers(query.Status, 401, 403, 429, 500))
    async def status() -> Response:
        """The frame of every page: clusters, time of the data, price, version."""
        return as_json(await asyncio.to_thread(source.status))

    @api.get("/fleet", response_model=None, responses=answers(query.Fleet, *refusals))
    async def fleet(asked: AskedOfTeam) -> Response:
        """The fleet against its breakeven line: tiles, days, ledger, curves, jobs wasting most, alerts."""
        return as_json(await asyncio.to_thread(source.fleet, asked))

    @api.get("/jobs", response_model=None, responses=answers(query.Jobs, *refusals))
    async def jobs(asked: Asked) -> Response:
        """All running jobs, and those that ended within the range."""
        return as_json(await asyncio.to_thread(source.jobs, asked))

    @api.get("/jobs/{job_id}", response_model=None, responses=answers(query.Job, *refusals, 404))
    async def job(job_id: JobId, asked: Asked) -> Response:
        """One job with its arithmetic, launches, nodes and ledger."""
        return as_json(found(await asyncio.to_thread(source.job, job_id, asked), f"job {job_id[:80]!r}"))

    _node_routes(api, source)

    @api.get("/economy", response_model=None, responses=answers(query.Economy, *refusals))
    async def economy(asked: Asked, overrides: Overrides = "") -> Response:
        """Own and rented GPU-hours: costs, the line between them, decisions, sensitivity, demand, gates."""
        return await changed_economy(source, asked, overrides_of(overrides))

    @api.get("/alerts", response_model=None, responses=answers(query.Alerts, *refusals))
    async def alerts(asked: Asked) -> Response:
        """Active alerts, and those that were within the range."""
        return as_json(await asyncio.to_thread(source.alerts, asked))

    return api


def _node_routes(api: APIRouter, source: query.Query) -> None:
    """All GPUs, one node, one GPU."""
    refusals = (401, 403, 422, 429, 500)

    @api.get("/nodes", response_model=None, responses=answers(query.Nodes, *refusals))
    async def nodes(asked: Asked) -> Response:
        """Every GPU as it is now, column by column, and its node; the range is not looked at."""
        return as_json(await asyncio.to_thread(source.nodes, asked))

    @api.get("/nodes/{node}", response_model=None, responses=answers(query.NodePage, *refusals, 404))
    async def node(node: PlaceName, asked: Asked) -> Response:
        """One node: GPUs, network ports, health, jobs that ran there, courses over time."""
        return as_json(found(await asyncio.to_thread(source.node, node, asked), f"node {node[:80]!r}"))

    @api.get("/gpus/{uuid}", response_model=None, responses=answers(query.GpuPage, *refusals, 404))
    async def gpu(uuid: PlaceName, asked: Asked) -> Response:
        """One GPU by its UUID: its newest sample, health, jobs, courses over time."""
        return as_json(found(await asyncio.to_thread(source.gpu, uuid, asked), f"GPU {uuid[:80]!r}"))


def found(answer: T | None, what: str) -> T:
    """The answer.

    Raises:
        Refused: 404, there is none.
    """
    if answer is None:
        raise Refused(404, "not_found", f"there is no {what}")
    return answer
