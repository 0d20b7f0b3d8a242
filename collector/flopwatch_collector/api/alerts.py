"""``/api/v1/alerts/…``: silences, acknowledgements and comments, with a line for each change on who made it."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Response
from fastapi import Query as Parameter
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from flopwatch_collector.alerting.desk import AlertDesk, Silence
from flopwatch_collector.alerting.matchers import Matcher, MatcherError, checked
from flopwatch_collector.alerting.rehearsal import Rehearsal
from flopwatch_collector.api.access import Caller
from flopwatch_collector.api.errors import FieldProblem, Refused, documented
from flopwatch_collector.api.query import CallerNeed, answers, as_json, each_once
from flopwatch_collector.ingest.decode import shorten

LONGEST_REHEARSAL_SECONDS = 31 * 86_400.0
LONGEST_SILENCE_SECONDS = 366 * 86_400.0
Text = Annotated[
    str, StringConstraints(min_length=1, max_length=2_000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]+$")
]
Who = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")]
Fingerprint = Annotated[
    str, Path(pattern=r"^[0-9a-f]{64}$", description="The alert's fingerprint, as the query answers it.")
]
SilenceId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$", description="Id of the silence.")]


class MatcherBody(BaseModel):
    """One condition on one label, as Alertmanager has it."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]{0,63}$")]
    """``alertname``, ``severity``, ``cluster``, ``job_id``, ``node``, ``team``, ``job`` …"""
    value: Annotated[str, StringConstraints(max_length=500)]
    is_regex: bool = Field(default=False, alias="isRegex")
    is_equal: bool = Field(default=True, alias="isEqual")


class SilenceBody(BaseModel):
    """A silence to make: alerts that all matchers fit are shown and not sent."""

    model_config = ConfigDict(extra="forbid")

    matchers: Annotated[list[MatcherBody], Field(min_length=1, max_length=20)]
    start_seconds: float | None = None
    """Default: now."""
    end_seconds: float
    created_by: Who | None = None
    """Default: the name of the token."""
    comment: Text


class WordBody(BaseModel):
    """A word on an alert."""

    model_config = ConfigDict(extra="forbid")

    comment: Text
    by: Who | None = None
    """Default: the name of the token."""


class SilenceAnswer(BaseModel):
    """A silence."""

    silence_id: str
    matchers: list[str]
    start_seconds: float
    end_seconds: float
    created_by: str
    comment: str
    created_seconds: float


class SilencesAnswer(BaseModel):
    """Silences, the first to end first."""

    silences: list[SilenceAnswer]


class WordAnswer(BaseModel):
    """What was said of an alert."""

    fingerprint: str
    by: str
    comment: str
    seconds: float


class AuditLine(BaseModel):
    """Who did what."""

    seconds: float
    by: str
    action: str
    subject: str


class AuditAnswer(BaseModel):
    """Changes, newest first."""

    entries: list[AuditLine]


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertParts:
    """What the routes work with."""

    desk: AlertDesk
    read: CallerNeed
    operate: CallerNeed
    knows: Callable[[str], bool]
    """Whether there is an alert of this fingerprint."""
    clock: Callable[[], float] = time.time
    rehearse: Callable[[float], Rehearsal] | None = None
    """What the rules would have said of the last so many seconds."""


def router(parts: AlertParts) -> APIRouter:
    """What people say to alerts."""
    api = APIRouter(prefix="/api/v1/alerts", tags=["alerts"], dependencies=[Depends(each_once)])
    _add_silences(api, parts)
    _add_words(api, parts)
    _add_rehearsal(api, parts)

    @api.get("/audit", dependencies=[Depends(parts.operate)], responses=documented(401, 403, 429, 500))
    async def audit() -> AuditAnswer:
        """Who silenced, acknowledged and commented, newest first."""
        found = await asyncio.to_thread(parts.desk.audit)
        return AuditAnswer(
            entries=[
                AuditLine(seconds=one.seconds, by=one.by, action=one.action, subject=one.subject)
                for one in found[:1_000]
            ]
        )

    return api


def _add_silences(api: APIRouter, parts: AlertParts) -> None:
    refusals = (401, 403, 422, 429, 500)

    @api.get("/silences", dependencies=[Depends(parts.read)], responses=documented(*refusals))
    async def silences(*, expired: bool = False) -> SilencesAnswer:
        """Silences that hold or will; with ``expired`` also those that have ended."""
        now = parts.clock()
        words = await asyncio.to_thread(parts.desk.words)
        found = sorted(words.silences.values(), key=lambda one: one.end_seconds)
        return SilencesAnswer(
            silences=[_silence_answer(one) for one in found if expired or one.end_seconds > now]
        )

    @api.post("/silences", responses=documented(400, *refusals, 503))
    async def silence(body: SilenceBody, caller: Annotated[Caller, Depends(parts.operate)]) -> SilenceAnswer:
        """Silence what all matchers fit, until the end."""
        asked = silence_of(body, _who(caller, body.created_by), parts.clock())
        return _silence_answer(await asyncio.to_thread(parts.desk.silence, asked))

    @api.delete("/silences/{silence_id}", responses=documented(*refusals, 404, 503))
    async def unsilence(
        silence_id: SilenceId, caller: Annotated[Caller, Depends(parts.operate)]
    ) -> SilenceAnswer:
        """End a silence now; it is kept among the expired."""
        try:
            ended = await asyncio.to_thread(parts.desk.unsilence, silence_id, _who(caller, None))
        except KeyError:
            raise Refused(404, "not_found", f"there is no silence {silence_id}") from None
        return _silence_answer(ended)


def _add_words(api: APIRouter, parts: AlertParts) -> None:
    refusals = (400, 401, 403, 404, 422, 429, 500, 503)

    @api.post("/{fingerprint}/ack", responses=documented(*refusals))
    async def acknowledge(
        fingerprint: Fingerprint, body: WordBody, caller: Annotated[Caller, Depends(parts.operate)]
    ) -> WordAnswer:
        """Take an alert: it is not repeated until it fires anew."""
        _require_known(parts, fingerprint)
        made = await asyncio.to_thread(
            parts.desk.acknowledge, fingerprint, _who(caller, body.by), body.comment
        )
        return WordAnswer(fingerprint=fingerprint, by=made.by, comment=made.comment, seconds=made.seconds)

    @api.post("/{fingerprint}/comments", responses=documented(*refusals))
    async def comment(
        fingerprint: Fingerprint, body: WordBody, caller: Annotated[Caller, Depends(parts.operate)]
    ) -> WordAnswer:
        """Say a word on an alert."""
        _require_known(parts, fingerprint)
        made = await asyncio.to_thread(parts.desk.comment, fingerprint, _who(caller, body.by), body.comment)
        return WordAnswer(fingerprint=fingerprint, by=made.by, comment=made.text, seconds=made.seconds)


def _add_rehearsal(api: APIRouter, parts: AlertParts) -> None:
    rehearse = parts.rehearse
    if rehearse is None:
        return

    @api.get(
        "/rehearsal",
        dependencies=[Depends(parts.read)],
        response_model=None,
        responses=answers(Rehearsal, 401, 403, 422, 429, 500),
    )
    async def rehearsal(
        seconds: Annotated[
            float, Parameter(gt=0.0, le=LONGEST_REHEARSAL_SECONDS, description="How far back, in seconds.")
        ] = 604_800.0,
    ) -> Response:
        """What the rules, as they are set, would have said of the past of the largest jobs."""
        return as_json(await asyncio.to_thread(rehearse, seconds))


def _require_known(parts: AlertParts, fingerprint: str) -> None:
    if not parts.knows(fingerprint):
        raise Refused(404, "not_found", f"there is no alert {fingerprint}")


def _who(caller: Caller, claimed: str | None) -> str:
    """The name that is kept: a token's own counts; without tokens what is claimed, else the address."""
    if caller.token is not None:
        return (
            caller.token.name if claimed in (None, caller.token.name) else f"{claimed} ({caller.token.name})"
        )
    return claimed or caller.address


def silence_of(body: SilenceBody, by: str, now: float) -> Silence:
    """The silence that is asked for.

    Raises:
        Refused: 422, a matcher or a time is not allowed.
    """
    start = now if body.start_seconds is None else body.start_seconds
    if not max(start, now) < body.end_seconds <= max(start, now) + LONGEST_SILENCE_SECONDS:
        raise _invalid(
            "end_seconds", body.end_seconds, "later than now and start_seconds, by at most 366 days"
        )
    try:
        matchers = tuple(checked(Matcher(**one.model_dump())) for one in body.matchers)
    except MatcherError as error:
        raise _invalid("matchers", str(error), "expressions that can be compiled") from error
    if all(matcher.matches({}) for matcher in matchers):
        raise _invalid("matchers", "all fit an alert without labels", "at least one that does not")
    return Silence(
        silence_id="",
        matchers=matchers,
        start_seconds=start,
        end_seconds=body.end_seconds,
        created_by=by,
        comment=body.comment,
        created_seconds=now,
    )


def _invalid(name: str, value: Any, allowed: str) -> Refused:
    field = FieldProblem(field=name, value=shorten(str(value)), allowed=allowed)
    return Refused(422, "invalid", f"{name} is {field.value}; allowed: {allowed}", fields=[field])


def _silence_answer(one: Silence) -> SilenceAnswer:
    return SilenceAnswer(
        silence_id=one.silence_id,
        matchers=[str(matcher) for matcher in one.matchers],
        start_seconds=one.start_seconds,
        end_seconds=one.end_seconds,
        created_by=one.created_by,
        comment=one.comment,
        created_seconds=one.created_seconds,
    )
