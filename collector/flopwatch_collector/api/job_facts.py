"""``/api/v1/jobs/{job_id}/facts``: what was found of a job and from where, and what an operator declares of it."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Protocol, get_args

from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from flopwatch.accelerator import DTYPES, dtype_of
from flopwatch.blocks import ShapeError
from flopwatch.wire import JobKind
from flopwatch_collector.api.access import Caller, retry_after
from flopwatch_collector.api.errors import FieldProblem, Refused, documented
from flopwatch_collector.api.query import CallerNeed, JobId, each_once
from flopwatch_collector.compute.runs import TRUST
from flopwatch_collector.ingest.declared import FACTS, MODEL, shape_of
from flopwatch_collector.ingest.decode import shorten, shown
from flopwatch_collector.model import DeclaredFact, JobRecord
from flopwatch_collector.store.port import Unavailable

MAX_BODY_BYTES = 1 << 20
RETRY_SECONDS = 10.0
Count = Annotated[int, Field(ge=1, le=1 << 50)]
FactName = Literal[
    "model", "name", "kind", "mfu_target_ratio", "parameter_count", "world_size", "global_batch_size",
    "sequence_length", "tokens_per_step", "dtype", "declared_gpu_hours", "tracker_url",
]  # fmt: skip
From = Literal["declared", "sdk", "log", "file", "scheduler"]


class Desk(Protocol):
    """Where facts are asked for and declared."""

    def found(self, job_id: str) -> JobRecord | None:
        """A job without what was declared."""
        ...

    def declared_of(self, number: int) -> Mapping[str, DeclaredFact]:
        """What is declared of it, by name."""
        ...

    def declare(self, number: int, facts: Mapping[str, DeclaredFact]) -> None:
        """Set facts, durably."""
        ...

    def withdraw(self, number: int, fact: str) -> bool:
        """Forget one; whether it was declared."""
        ...


class DeclaredBody(BaseModel):
    """Facts to declare. What is left out, or null, stays as it is."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str | dict[str, Any] | None = None
    """A well-known name, the object of a Hugging Face config.json, or a shape's own keys."""
    name: (
        Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")] | None
    ) = None
    kind: JobKind | None = None
    mfu_target_ratio: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    parameter_count: Count | None = None
    world_size: Count | None = None
    """GPUs of the whole run."""
    global_batch_size: Count | None = None
    """Sequences of one optimizer step over all ranks."""
    sequence_length: Count | None = None
    tokens_per_step: Count | None = None
    dtype: str | None = None
    declared_gpu_hours: Annotated[float, Field(gt=0.0, le=1e12)] | None = None
    """What the job may take; beyond 1.2 times of it is told."""
    tracker_url: (
        Annotated[
            str, StringConstraints(max_length=2048, pattern=r"^https?://[^\s\x00-\x1f\x7f<>\"'`\\\\]+$")
        ]
        | None
    ) = None
    """The run on the trainer's own dashboard, which the job's page links to."""


class FoundFact(BaseModel):
    """One source's word on a fact."""

    value: Any
    source: From
    origin: str


class DeclaredEntry(BaseModel):
    """The declared word on a fact."""

    value: Any
    origin: str
    declared_seconds: float
    declared_by: str | None


class FactEntry(BaseModel):
    """A fact: declared, found, and which of them counts."""

    fact: FactName
    used: From | None
    """Whose word counts; null where nobody knows."""
    declared: DeclaredEntry | None
    found: list[FoundFact]
    """The most trusted first."""


class JobFactsAnswer(BaseModel):
    """Everything known of a job that its MFU, its name and its target are made from."""

    job_id: str
    facts: list[FactEntry]


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFactsParts:
    """What the routes work with."""

    desk: Desk
    read: CallerNeed
    operate: CallerNeed
    changed: Callable[[JobRecord], None]
    """Told of a job whose facts count from now on."""
    clock: Callable[[], float] = time.time


def router(parts: JobFactsParts) -> APIRouter:
    """The facts of one job."""
    api = APIRouter(tags=["jobs"], dependencies=[Depends(each_once)])
    path = "/api/v1/jobs/{job_id}/facts"
    refusals = (401, 403, 404, 422, 429, 500)

    @api.get(path, dependencies=[Depends(parts.read)], responses=documented(*refusals))
    async def facts(job_id: JobId) -> JobFactsAnswer:
        """What was found of the job, from where, and what was declared."""
        return answer(parts.desk, _job(parts.desk, job_id))

    @api.put(
        path,
        responses=documented(400, *refusals, 413, 415, 503),
        openapi_extra=_body_schema(),
    )
    async def declare(
        job_id: JobId, request: Request, caller: Annotated[Caller, Depends(parts.operate)]
    ) -> JobFactsAnswer:
        """Declare facts of the job: they beat what was found. Facts that are not given stay as they are."""
        body = await read_body(request)
        job = _job(parts.desk, job_id)
        await _durably(parts.desk.declare, job.number, checked(body, parts.clock(), caller.name))
        parts.changed(job)
        return answer(parts.desk, job)

    @api.delete(path + "/{fact}", responses=documented(*refusals, 503))
    async def withdraw(
        job_id: JobId, fact: Annotated[FactName, Path()], _: Annotated[Caller, Depends(parts.operate)]
    ) -> JobFactsAnswer:
        """Forget a declared fact: what was found counts again."""
        job = _job(parts.desk, job_id)
        if not await _durably(parts.desk.withdraw, job.number, fact):
            raise Refused(404, "not_found", f"{fact} is not declared for this job")
        parts.changed(job)
        return answer(parts.desk, job)

    return api


def _body_schema() -> dict[str, Any]:
    schema = DeclaredBody.model_json_schema()
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _job(desk: Desk, job_id: str) -> JobRecord:
    job = desk.found(job_id)
    if job is None:
        raise Refused(404, "not_found", f"there is no job {shorten(repr(job_id))}")
    return job


async def _durably(change: Callable[..., Any], number: int, what: Any) -> Any:
    """Make a change in another thread, for it waits for the disk."""
    try:
        return await asyncio.to_thread(change, number, what)
    except Unavailable as error:
        headers = {"Retry-After": retry_after(RETRY_SECONDS)}
        raise Refused(503, "unavailable", str(error), headers=headers) from error


async def read_body(request: Request) -> DeclaredBody:
    """The facts in a request's body, never more than 1 MiB of it in memory.

    Raises:
        Refused: 413, 415, or 422 with the field.
    """
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(
            415, "unsupported_content", f"content-type is {shorten(kind)!r}; allowed: application/json"
        )
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise Refused(413, "too_large", f"the body is larger than {MAX_BODY_BYTES} bytes")
    try:
        return DeclaredBody.model_validate_json(body)
    except ValidationError as error:
        raise _refused(
            [
                FieldProblem(
                    field=".".join(map(str, problem["loc"][:1])) or "body",
                    value=shown(problem.get("input")),
                    allowed=str(problem["msg"]),
                )
                for problem in error.errors(include_url=False, include_context=False)
            ]
        ) from error


def checked(body: DeclaredBody, now: float, by: str | None) -> dict[str, DeclaredFact]:
    """The facts in a body, by name, the model as a shape and the number format by its common name.

    Raises:
        Refused: 422: none is given, or a value is not understood.
    """
    given = {name: value for name, value in body.model_dump().items() if value is not None}
    if not given:
        raise _refused(
            [FieldProblem(field="body", value="no fact", allowed=f"one or more of {', '.join(FACTS)}")]
        )
    facts = {name: DeclaredFact(value=value, seconds=now, by=by) for name, value in given.items()}
    if MODEL in given:
        shape, origin = _shape(given[MODEL])
        facts[MODEL] = DeclaredFact(value=shape, seconds=now, by=by, origin=origin)
    if "dtype" in given:
        facts["dtype"] = DeclaredFact(value=_dtype(given["dtype"]), seconds=now, by=by)
    return facts


def _shape(model: str | Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    try:
        return shape_of(model)
    except ShapeError as error:
        field = MODEL if error.field == MODEL else f"{MODEL}.{error.field}"
        value, _, allowed = str(error).removeprefix(f"{error.field} is ").rpartition("; allowed: ")
        problem = FieldProblem(field=shorten(field), value=shorten(value), allowed=allowed)
        raise _refused([problem]) from error


def _dtype(text: str) -> str:
    known = dtype_of(text)
    if known is None:
        problem = FieldProblem(field="dtype", value=shown(text), allowed=f"one of {', '.join(DTYPES)}")
        raise _refused([problem])
    return known


def _refused(problems: list[FieldProblem]) -> Refused:
    text = "; ".join(f"{each.field} is {each.value}; allowed: {each.allowed}" for each in problems)
    return Refused(422, "invalid", text, fields=problems)


def answer(desk: Desk, job: JobRecord) -> JobFactsAnswer:
    """All facts of a job, in the order of ``FactName``."""
    declared = desk.declared_of(job.number)
    return JobFactsAnswer(
        job_id=job.job_id, facts=[_entry(name, declared.get(name), job) for name in get_args(FactName)]
    )


def _entry(name: FactName, declared: DeclaredFact | None, job: JobRecord) -> FactEntry:
    found = found_of(job, name)
    entry = None
    if declared is not None:
        entry = DeclaredEntry(
            value=declared.value,
            origin=declared.origin,
            declared_seconds=declared.seconds,
            declared_by=declared.by,
        )
    used: From | None = "declared" if entry is not None else found[0].source if found else None
    return FactEntry(fact=name, used=used, declared=entry, found=found)


def found_of(job: JobRecord, name: FactName) -> list[FoundFact]:
    """What each source said of a fact, in the order of trust, each different word of a source once."""
    field = {MODEL: "shape"}.get(name, name)
    ordered = sorted(job.runs, key=lambda run: (TRUST[run.source], -run.session))
    told = [
        FoundFact(value=value, source=run.source, origin=run.origin)
        for run in ordered
        if (value := getattr(run, field, None)) not in (None, {}, "unknown")
    ]
    own = {
        "name": job.name,
        "kind": job.kind,
        "mfu_target_ratio": job.target_ratio,
        "declared_gpu_hours": job.declared_gpu_hours,
        "world_size": job.world_size,
    }.get(name)
    if own not in (None, "unknown"):
        word = FoundFact(value=own, source="scheduler", origin="scheduler or environment")
        told = [*told, word] if name == "world_size" else [word, *told]
    return [word for position, word in enumerate(told) if word not in told[:position]]
