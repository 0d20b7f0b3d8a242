"""Who changed what and when: a line for each change made with the right to operate, each sign-in, and each refusal."""

import asyncio
import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi import Query as Parameter
from pydantic import BaseModel
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flopwatch_collector.api.access import SAFE_METHODS, Caller
from flopwatch_collector.api.errors import FieldProblem, Refused, documented
from flopwatch_collector.api.query import LATEST_SECONDS, CallerNeed, each_once
from flopwatch_collector.store.port import Control

KIND = "audit"
KEPT_SECONDS = 365 * 86_400.0
MOST_KEPT = 20_000
TIDY_EVERY = 200
LONGEST_BODY = 1_000
LONGEST_SUBJECT = 1_500
_OF_PROGRAMS = ("/api/v1/ingest", "/api/v1/leases", "/api/v1/queue", "/api/v1/alerts/fitting")
"""What is pushed or only asks: no change that a person makes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One thing that was done."""

    seconds: float
    by: str
    address: str
    action: str
    subject: str


class Audit:
    """Keeps the lines. Safe for threads."""

    def __init__(self, control: Control, clock: Callable[[], float] = time.time) -> None:
        self._control = control
        self._clock = clock
        self._written = 0

    async def note(self, by: str, address: str, action: str, subject: str) -> None:
        """Keep a line; it is durable on return."""
        line = Line(
            seconds=self._clock(), by=by, address=address, action=action, subject=subject[:LONGEST_SUBJECT]
        )
        await asyncio.to_thread(self._keep, line)

    def lines(self) -> tuple[Line, ...]:
        """What was done, newest first."""
        known = self._control.load(KIND, Line).values()
        return tuple(sorted(known, key=lambda line: line.seconds, reverse=True))

    def _keep(self, line: Line) -> None:
        self._control.save(KIND, {secrets.token_hex(8): line})
        self._written += 1
        if self._written % TIDY_EVERY == 1:
            self._tidy(line.seconds)

    def _tidy(self, now: float) -> None:
        known = sorted(self._control.load(KIND, Line).items(), key=lambda pair: pair[1].seconds)
        gone = {key for key, line in known if line.seconds < now - KEPT_SECONDS}
        gone |= {key for key, _ in known[: max(0, len(known) - MOST_KEPT)]}
        if gone:
            self._control.delete(KIND, sorted(gone))


class Audited:
    """Around the application: writes the line of a change before its answer goes out."""

    def __init__(self, app: ASGIApp, audit: Audit) -> None:
        self._app = app
        self._audit = audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        changes = scope["type"] == "http" and scope["method"] not in SAFE_METHODS
        if not changes or not scope["path"].startswith("/api/") or scope["path"].startswith(_OF_PROGRAMS):
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        body = b""

        async def read() -> Message:
            nonlocal body
            message = await receive()
            if message["type"] == "http.request" and len(body) < LONGEST_BODY:
                body += message.get("body", b"")
            return message

        async def told(message: Message) -> None:
            caller = state.get("caller")
            if message["type"] == "http.response.start" and message["status"] < 400 and caller is not None:
                await self._line(scope, caller, body)
            await send(message)

        await self._app(scope, read, told)

    async def _line(self, scope: Scope, caller: Caller, body: bytes) -> None:
        action = f"{scope['method']} {scope['path']}"
        subject = body[:LONGEST_BODY].decode("utf-8", "replace")
        await self._audit.note(caller.name or caller.address, caller.address, action, subject)


class LineAnswer(BaseModel):
    """One thing that was done."""

    seconds: float
    by: str
    """The name of a token or person; the address where nobody has to sign in."""
    address: str
    action: str
    """Method and path of a change, or ``signed in``, ``signed out``, ``sign-in refused``."""
    subject: str
    """The beginning of the change's body."""


class AuditAnswer(BaseModel):
    """What was done, newest first."""

    entries: list[LineAnswer]
    matching: int
    """How many lines fit, beyond ``limit`` too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """Which lines are asked for."""

    by: str = ""
    what: str = ""
    begin: float = 0.0
    end: float = math.inf

    def has(self, line: Line) -> bool:
        """Whether the line is one of them."""
        return (
            self.begin <= line.seconds <= self.end
            and self.by.casefold() in f"{line.by} {line.address}".casefold()
            and self.what.casefold() in f"{line.action} {line.subject}".casefold()
        )


async def _chosen(
    by: Annotated[str, Parameter(max_length=200, description="Part of a name or address.")] = "",
    what: Annotated[str, Parameter(max_length=200, description="Part of an action or its content.")] = "",
    begin: Annotated[
        float, Parameter(alias="from", ge=0.0, le=LATEST_SECONDS, description="Not before, epoch seconds.")
    ] = 0.0,
    end: Annotated[
        float, Parameter(alias="to", ge=0.0, le=LATEST_SECONDS, description="Not after, epoch seconds.")
    ] = LATEST_SECONDS,
) -> Chosen:
    """The lines that a request asks for.

    Raises:
        Refused: 422, the range ends before it begins.
    """
    if end < begin:
        field = FieldProblem(field="to", value=f"{end:g}", allowed=f"from ({begin:g}) or later")
        raise Refused(422, "invalid", f"parameter to is {end:g}; allowed: {field.allowed}", fields=[field])
    return Chosen(by=by, what=what, begin=begin, end=end)


def router(audit: Audit, operate: CallerNeed) -> APIRouter:
    """``GET /api/v1/audit``."""
    api = APIRouter(prefix="/api/v1", tags=["audit"], dependencies=[Depends(each_once)])

    @api.get("/audit", dependencies=[Depends(operate)], responses=documented(401, 403, 422, 429, 500))
    async def lines(
        chosen: Annotated[Chosen, Depends(_chosen)],
        limit: Annotated[int, Parameter(ge=1, le=MOST_KEPT, description="How many at most.")] = 1_000,
    ) -> AuditAnswer:
        """Who changed what and when, who signed in, and whose sign-in was refused."""
        found = [line for line in await asyncio.to_thread(audit.lines) if chosen.has(line)]
        return AuditAnswer(
            entries=[
                LineAnswer(
                    seconds=one.seconds,
                    by=one.by,
                    address=one.address,
                    action=one.action,
                    subject=one.subject,
                )
                for one in found[:limit]
            ],
            matching=len(found),
        )

    return api
