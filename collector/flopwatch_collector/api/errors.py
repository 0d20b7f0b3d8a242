"""Answers that are errors: one shape, no traceback, nothing of the request echoed beyond a short value."""

import logging
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from flopwatch_collector.ingest.decode import shown
from flopwatch_collector.store.port import TooSlow, Unavailable

log = logging.getLogger(__name__)


class FieldProblem(BaseModel):
    """What is wrong with one field or parameter."""

    field: str
    value: str
    allowed: str


class Problem(BaseModel):
    """Why a request was not done."""

    error: str
    """A stable word."""
    message: str
    fields: list[FieldProblem] = []


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(
        self,
        status: int,
        error: str,
        message: str,
        *,
        fields: list[FieldProblem] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.problem = Problem(error=error, message=message, fields=fields or [])
        self.headers = dict(headers or {})


def response(refused: Refused) -> JSONResponse:
    """The answer to a refused request."""
    return JSONResponse(refused.problem.model_dump(), status_code=refused.status, headers=refused.headers)


def install(app: FastAPI) -> None:
    """Give every error of the application the one shape."""
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(TooSlow, _too_slow)
    app.add_exception_handler(Unavailable, _unavailable)
    app.add_exception_handler(Exception, _unexpected)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, Refused):
        raise error
    return response(error)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise error
    fields = [
        FieldProblem(
            field=".".join(str(part) for part in problem["loc"][1:]) or "body",
            value=shown(problem.get("input")),
            allowed=str(problem["msg"]),
        )
        for problem in error.errors()
    ]
    text = "; ".join(f"{each.field} is {each.value}; allowed: {each.allowed}" for each in fields)
    return response(Refused(422, "invalid", text, fields=fields))


async def _http(_: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    words = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}
    headers = dict(error.headers or {})
    return response(
        Refused(error.status_code, words.get(error.status_code, "refused"), error.detail, headers=headers)
    )


async def _too_slow(_: Request, error: Exception) -> JSONResponse:
    return response(Refused(503, "too_slow", str(error)))


async def _unavailable(_: Request, error: Exception) -> JSONResponse:
    return response(Refused(503, "unavailable", str(error), headers={"Retry-After": "5"}))


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return internal()


def internal() -> JSONResponse:
    """The answer where the collector itself failed."""
    return response(Refused(500, "internal", "the collector failed to answer; its log says why"))


def documented(*statuses: int) -> dict[int | str, dict[str, object]]:
    """OpenAPI's words for the error statuses that a route may answer with."""
    return {status: {"model": Problem, "description": _MEANINGS[status]} for status in statuses}


_MEANINGS = {
    400: "The request is not well-formed.",
    401: "No token, or one that is not known.",
    403: "The token's role does not allow this.",
    404: "There is no such thing.",
    409: "What is asked for does not fit what is there now.",
    411: "The body has no length.",
    413: "Too large a body: `collector.max_body_bytes` after decompression at ingest, at most 4 MiB elsewhere.",
    415: "The content encoding is neither gzip nor identity, or the content is not JSON.",
    422: "A field or a parameter is not allowed; `fields` says which and why. Do not send it again.",
    429: "Too many requests of this sender; `Retry-After` says how many seconds to wait.",
    500: "The collector failed; its log says why.",
    503: "Nothing can be taken at present; `Retry-After` says how many seconds to wait.",
}
