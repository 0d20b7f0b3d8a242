"""``POST /api/v1/ingest``: where agents push."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from flopwatch.wire import SENT_AT_HEADER, Batch
from flopwatch_collector.api.access import Caller, retry_after
from flopwatch_collector.api.errors import FieldProblem, Refused, documented
from flopwatch_collector.api.limits import RateLimit
from flopwatch_collector.api.metrics import Metrics
from flopwatch_collector.config import CollectorSettings
from flopwatch_collector.ingest.accept import Ingest
from flopwatch_collector.ingest.decode import (
    BodyTooLarge,
    MalformedBatch,
    UnknownEncoding,
    read_batch,
    shorten,
)
from flopwatch_collector.store.port import Overloaded, Unavailable

SMALL_BODY_BYTES = 64 * 1024
UNAVAILABLE_RETRY_SECONDS = 10.0
CallerNeed = Callable[[Request], Awaitable[Caller]]


class IngestAnswer(BaseModel):
    """The batch is durable."""

    accepted: bool = True
    duplicate: bool
    """It had come before; nothing was changed."""


_ANSWERS = {known: IngestAnswer(duplicate=known).model_dump_json().encode() for known in (False, True)}


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestParts:
    """What the route works with."""

    ingest: Ingest
    settings: CollectorSettings
    metrics: Metrics
    caller: CallerNeed


_OPENAPI = {
    "parameters": [
        {
            "name": SENT_AT_HEADER,
            "in": "header",
            "required": False,
            "description": "Wall time of sending on the node, epoch seconds: shows a wrong clock.",
            "schema": {"type": "number"},
        }
    ],
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Batch"}}},
    },
}


def router(parts: IngestParts) -> APIRouter:
    """The ingest endpoint."""
    api = APIRouter(tags=["ingest"])
    limits = RateLimit(parts.settings.ingest_requests_per_second)

    @api.post(
        "/api/v1/ingest",
        summary="Push one batch of one node; answered when it is durable",
        response_model=None,
        responses={
            200: {"model": IngestAnswer, "description": "The batch is durable."},
            **documented(400, 401, 403, 413, 415, 422, 429, 500, 503),
        },
        openapi_extra=_OPENAPI,
    )
    async def ingest(request: Request) -> Response:
        """Take one batch, gzip or plain JSON. The same (node, spool, sequence) is taken once."""
        try:
            caller = await parts.caller(request)
            batch = await _read(request, parts.settings.max_body_bytes)
            sent_at = _sent_at(request)
            _check_rate(limits, f"{caller.address} {batch.node}")
            duplicate = await _accept(parts.ingest, batch, sent_at)
        except Refused as refused:
            parts.metrics.refused(refused.problem.error)
            raise
        return Response(_ANSWERS[duplicate], media_type="application/json")

    return api


async def _read(request: Request, max_body_bytes: int) -> Batch:
    """The batch in a request's body."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        message = f"content-type is {shorten(kind)!r}; allowed: application/json"
        raise Refused(415, "unsupported_content", message)
    body = await _body(request, max_body_bytes)
    encoding = request.headers.get("content-encoding", "")
    try:
        if len(body) <= SMALL_BODY_BYTES:
            return read_batch(body, encoding, max_body_bytes)
        return await asyncio.to_thread(read_batch, body, encoding, max_body_bytes)
    except BodyTooLarge as error:
        raise _too_large(max_body_bytes) from error
    except UnknownEncoding as error:
        raise Refused(415, "unsupported_encoding", str(error)) from error
    except MalformedBatch as error:
        raise _malformed(error) from error


async def _body(request: Request, max_body_bytes: int) -> bytes:
    """The body as it came, never more than the limit of it in memory."""
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > max_body_bytes:
            raise _too_large(max_body_bytes)
        parts.append(part)
    return b"".join(parts)


def _sent_at(request: Request) -> float | None:
    """The time of sending; none when the header is absent.

    Raises:
        Refused: the header is not a time.
    """
    text = request.headers.get(SENT_AT_HEADER)
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds < 1e11:
        field = FieldProblem(field=SENT_AT_HEADER, value=shorten(repr(text)), allowed="epoch seconds")
        raise Refused(422, "invalid", f"header {SENT_AT_HEADER} is not a time", fields=[field])
    return seconds


def _check_rate(limits: RateLimit, sender: str) -> None:
    wait = limits.wait_seconds(sender, time.monotonic())
    if wait > 0.0:
        raise Refused(
            429,
            "too_many_requests",
            "this node sends too often: see collector.ingest_requests_per_second",
            headers={"Retry-After": retry_after(wait)},
        )


async def _accept(ingest: Ingest, batch: Batch, sent_at: float | None) -> bool:
    """Whether the batch was a duplicate, once it is durable."""
    try:
        accepted = await asyncio.wrap_future(ingest.accept_batch(batch, sent_at_seconds=sent_at))
    except MalformedBatch as error:
        raise _malformed(error) from error
    except Overloaded as error:
        headers = {"Retry-After": retry_after(error.retry_after_seconds)}
        raise Refused(503, "overloaded", str(error), headers=headers) from error
    except Unavailable as error:
        headers = {"Retry-After": retry_after(UNAVAILABLE_RETRY_SECONDS)}
        raise Refused(503, "unavailable", str(error), headers=headers) from error
    return accepted.duplicate


def _malformed(error: MalformedBatch) -> Refused:
    fields = [FieldProblem(field=e.field, value=e.value, allowed=e.allowed) for e in error.errors]
    return Refused(422, "malformed", str(error), fields=fields)


def _too_large(limit: int) -> Refused:
    return Refused(413, "too_large", f"the body is larger than {limit} bytes: see collector.max_body_bytes")
