"""``POST /api/v1/ingest``: where agents push."""

import asyncio
import logging
import math
import time
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from flopwatch.wire import SENT_AT_HEADER, Batch
from flopwatch_collector.api.access import Access, address_of, retry_after
from flopwatch_collector.api.answers import Answers
from flopwatch_collector.api.errors import FieldProblem, Refused, documented, internal, response
from flopwatch_collector.api.limits import RateLimit
from flopwatch_collector.api.metrics import Metrics
from flopwatch_collector.config import CollectorSettings
from flopwatch_collector.ingest.accept import Accepted, Ingest
from flopwatch_collector.ingest.decode import (
    BodyTooLarge,
    MalformedBatch,
    UnknownEncoding,
    read_batch,
    shorten,
)
from flopwatch_collector.store.port import Overloaded, Unavailable

PATH = "/api/v1/ingest"
SMALL_BODY_BYTES = 64 * 1024
UNAVAILABLE_RETRY_SECONDS = 10.0

log = logging.getLogger(__name__)


class IngestAnswer(BaseModel):
    """The batch is durable."""

    accepted: bool = True
    duplicate: bool
    """It had come before; nothing was changed."""


_ANSWERS = {known: IngestAnswer(duplicate=known).model_dump_json().encode() for known in (False, True)}
_MESSAGES: dict[bool, tuple[Message, Message]] = {
    known: (
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(answer)).encode()),
            ],
        },
        {"type": "http.response.body", "body": answer},
    )
    for known, answer in _ANSWERS.items()
}


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestParts:
    """What the endpoint works with."""

    ingest: Ingest
    settings: CollectorSettings
    metrics: Metrics
    access: Access


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


class Intake:
    """The endpoint as a bare ASGI application.

    It takes more requests than everything else together: what a framework does for each one, routing, a request
    object, dependencies, was more than half of its cost.
    """

    def __init__(self, parts: IngestParts) -> None:
        self._parts = parts
        self._limits = RateLimit(parts.settings.ingest_requests_per_second)
        self._answers: Answers[Accepted] = Answers()

    def takes(self, scope: Scope) -> bool:
        """Whether a request is for this endpoint."""
        return bool(scope["type"] == "http" and scope["path"] == PATH and scope["method"] == "POST")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            duplicate = await self.take(Headers(scope=scope), address_of(scope), receive)
        except ClientDisconnect:
            return
        except Refused as refused:
            await response(refused)(scope, receive, send)
        except Exception:
            log.exception("POST %s failed", PATH)
            await internal()(scope, receive, send)
        else:
            for message in _MESSAGES[duplicate]:
                await send(message)

    async def take(self, headers: Headers, address: str, receive: Receive) -> bool:
        """Whether the batch had come before, once it is durable.

        Raises:
            Refused: it is not taken; says why.
            ClientDisconnect: the sender went away before the body was there.
        """
        try:
            caller = await self._parts.access.caller(headers, address, "ingest", changes=True)
            batch = await _read(headers, receive, self._parts.settings.max_body_bytes)
            sent_at = _sent_at(headers)
            _check_rate(self._limits, f"{caller.address} {batch.node}")
            return await self._accept(batch, sent_at)
        except Refused as refused:
            self._parts.metrics.refused(refused.problem.error)
            raise

    async def _accept(self, batch: Batch, sent_at: float | None) -> bool:
        try:
            waiting = self._parts.ingest.accept_checked(batch, sent_at_seconds=sent_at)
            accepted = await self._answers.of(waiting)
        except MalformedBatch as error:
            raise _malformed(error) from error
        except Overloaded as error:
            headers = {"Retry-After": retry_after(error.retry_after_seconds)}
            raise Refused(503, "overloaded", str(error), headers=headers) from error
        except Unavailable as error:
            headers = {"Retry-After": retry_after(UNAVAILABLE_RETRY_SECONDS)}
            raise Refused(503, "unavailable", str(error), headers=headers) from error
        return accepted.duplicate


def router(intake: Intake) -> APIRouter:
    """The endpoint in the application's document."""
    api = APIRouter(tags=["ingest"])

    @api.post(
        PATH,
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
        duplicate = await intake.take(request.headers, address_of(request.scope), request.receive)
        return Response(_ANSWERS[duplicate], media_type="application/json")

    return api


async def _read(headers: Headers, receive: Receive, max_body_bytes: int) -> Batch:
    """The batch in a request's body."""
    kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        message = f"content-type is {shorten(kind)!r}; allowed: application/json"
        raise Refused(415, "unsupported_content", message)
    body = await _body(receive, max_body_bytes)
    encoding = headers.get("content-encoding", "")
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


async def _body(receive: Receive, max_body_bytes: int) -> bytes:
    """The body as it came, never more than the limit of it in memory."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part = message.get("body", b"")
        size += len(part)
        if size > max_body_bytes:
            raise _too_large(max_body_bytes)
        parts.append(part)
        more = message.get("more_body", False)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _sent_at(headers: Headers) -> float | None:
    """The time of sending; none when the header is absent.

    Raises:
        Refused: the header is not a time.
    """
    text = headers.get(SENT_AT_HEADER)
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


def _malformed(error: MalformedBatch) -> Refused:
    fields = [FieldProblem(field=e.field, value=e.value, allowed=e.allowed) for e in error.errors]
    return Refused(422, "malformed", str(error), fields=fields)


def _too_large(limit: int) -> Refused:
    return Refused(413, "too_large", f"the body is larger than {limit} bytes: see collector.max_body_bytes")
