"""Bodies of requests: JSON of a bounded size, checked, each wrong field with its value and what is allowed."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flopwatch_collector.api.access import retry_after
from flopwatch_collector.api.errors import FieldProblem, Refused, response
from flopwatch_collector.ingest.decode import MalformedBatch, shorten, shown
from flopwatch_collector.store.port import Overloaded, Unavailable

MAX_BODY_BYTES = 4 << 20
RETRY_SECONDS = 10.0
B = TypeVar("B", bound=BaseModel)
R = TypeVar("R")


class LimitedBodies:
    """In front of every route: no more of a body than ``MAX_BODY_BYTES`` is taken, whoever sends it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; 413 for a body that is longer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        told = Headers(scope=scope).get("content-length", "")
        if told.isdecimal() and int(told) > MAX_BODY_BYTES:
            await response(_too_large())(scope, receive, send)
            return
        taken = 0

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > MAX_BODY_BYTES:
                raise HTTPException(413, _too_large().problem.message)
            return message

        await self._app(scope, counted, send)


def _too_large() -> Refused:
    return Refused(413, "too_large", f"the body is larger than {MAX_BODY_BYTES} bytes")


async def read(request: Request, kind: type[B]) -> B:
    """The body as ``kind``; ``LimitedBodies`` bounds it.

    Raises:
        Refused: 415, or 422 with the fields.
    """
    told = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if told != "application/json":
        message = f"content-type is {shorten(told)!r}; allowed: application/json"
        raise Refused(415, "unsupported_content", message)
    try:
        return kind.model_validate_json(await request.body())
    except ValidationError as error:
        problems = [
            FieldProblem(
                field=".".join(map(str, problem["loc"])) or "body",
                value=shown(problem.get("input")),
                allowed=str(problem["msg"]),
            )
            for problem in error.errors(include_url=False, include_context=False)
        ]
        raise invalid(*problems) from error


def invalid(*problems: FieldProblem) -> Refused:
    """The refusal of wrong fields."""
    text = "; ".join(f"{each.field} is {each.value}; allowed: {each.allowed}" for each in problems)
    return Refused(422, "invalid", text, fields=list(problems))


async def durably(work: Callable[..., R], *arguments: Any) -> R:
    """Do what waits for the disk in another thread.

    Raises:
        Refused: 503: it cannot be made durable now; 422: a number that no column can hold.
    """
    try:
        return await asyncio.to_thread(work, *arguments)
    except MalformedBatch as error:
        raise invalid(
            *(FieldProblem(field=each.field, value=each.value, allowed=each.allowed) for each in error.errors)
        ) from error
    except (Unavailable, Overloaded) as error:
        headers = {"Retry-After": retry_after(RETRY_SECONDS)}
        raise Refused(503, "unavailable", str(error), headers=headers) from error


def schema(kind: type[BaseModel]) -> dict[str, Any]:
    """What the document says of a body that a route reads itself."""
    told = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    definitions = told.pop("$defs", {})
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _inlined(told, definitions)}},
        }
    }


def _inlined(part: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(part, dict):
        reference = str(part.get("$ref", "")).rpartition("/")[2]
        if reference in definitions:
            return _inlined(definitions[reference], definitions)
        return {key: _inlined(value, definitions) for key, value in part.items()}
    return [_inlined(each, definitions) for each in part] if isinstance(part, list) else part
