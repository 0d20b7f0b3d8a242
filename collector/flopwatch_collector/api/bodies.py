"""Bodies of requests: JSON of a bounded size, checked, each wrong field with its value and what is allowed."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from flopwatch_collector.api.access import retry_after
from flopwatch_collector.api.errors import FieldProblem, Refused
from flopwatch_collector.ingest.decode import MalformedBatch, shorten, shown
from flopwatch_collector.store.port import Overloaded, Unavailable

MAX_BODY_BYTES = 4 << 20
RETRY_SECONDS = 10.0
B = TypeVar("B", bound=BaseModel)
R = TypeVar("R")


async def read(request: Request, kind: type[B]) -> B:
    """The body as ``kind``, never more than 4 MiB of it in memory.

    Raises:
        Refused: 413, 415, or 422 with the fields.
    """
    told = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if told != "application/json":
        message = f"content-type is {shorten(told)!r}; allowed: application/json"
        raise Refused(415, "unsupported_content", message)
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise Refused(413, "too_large", f"the body is larger than {MAX_BODY_BYTES} bytes")
    try:
        return kind.model_validate_json(body)
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
