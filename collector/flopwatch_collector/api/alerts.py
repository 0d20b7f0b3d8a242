"""``/api/v1/alerts/…``: silences, acknowledgements and comments, with a line for each change on who made it."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends

from flopwatch_collector.alerting.desk import AlertDesk, Silence
from flopwatch_collector.alerting.hushing import labels_of_row
from flopwatch_collector.alerting.matchers import Matcher, MatcherError, all_match, checked
from flopwatch_collector.alerting.rehearsal import Rehearse
from flopwatch_collector.api import alert_rules
from flopwatch_collector.api.access import Caller
from flopwatch_collector.api.alert_bodies import (
    AuditAnswer,
    AuditLine,
    Fingerprint,
    FittingAnswer,
    MatcherBody,
    MatchersBody,
    SilenceAnswer,
    SilenceBody,
    SilenceId,
    SilencesAnswer,
    WordAnswer,
    WordBody,
)
from flopwatch_collector.api.errors import FieldProblem, Refused, documented
from flopwatch_collector.api.query import CallerNeed, each_once
from flopwatch_collector.ingest.decode import shorten
from flopwatch_collector.past import Past
from flopwatch_collector.views.alerts import AlertSource

LONGEST_SILENCE_SECONDS = 366 * 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertParts:
    """What the routes work with."""

    desk: AlertDesk
    read: CallerNeed
    operate: CallerNeed
    knows: Callable[[str], bool]
    """Whether there is an alert of this fingerprint."""
    clock: Callable[[], float] = time.time
    source: AlertSource | None = None
    """The alerts as they stand, and the rules."""
    rehearse: Rehearse | None = None
    """What the rules would have said of the last so many seconds."""
    past: Callable[[float], Past] | None = None
    """What rehearsals elsewhere need of nodes, fleet and budgets."""


def router(parts: AlertParts) -> APIRouter:
    """What people say to alerts."""
    api = APIRouter(prefix="/api/v1/alerts", tags=["alerts"], dependencies=[Depends(each_once)])
    _add_silences(api, parts)
    _add_changes(api, parts)
    _add_words(api, parts)

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

    if parts.source is not None:
        _add_fitting(api, parts, parts.source)
        alert_rules.add(
            api,
            alert_rules.RuleParts(
                source=parts.source, rehearse=parts.rehearse, past=parts.past, read=parts.read, operate=parts.operate,
                clock=parts.clock,
            ),
        )  # fmt: skip
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

    @api.post("/silences", responses=documented(400, *refusals, 413, 503))
    async def silence(body: SilenceBody, caller: Annotated[Caller, Depends(parts.operate)]) -> SilenceAnswer:
        """Silence what all matchers fit, until the end."""
        asked = silence_of(body, _who(caller, body.created_by), parts.clock())
        return _silence_answer(await asyncio.to_thread(parts.desk.silence, asked))


def _add_changes(api: APIRouter, parts: AlertParts) -> None:
    """Of silences that were made."""
    refusals = (401, 403, 422, 429, 500)

    @api.put("/silences/{silence_id}", responses=documented(400, *refusals, 404, 413, 503))
    async def amend(
        silence_id: SilenceId, body: SilenceBody, caller: Annotated[Caller, Depends(parts.operate)]
    ) -> SilenceAnswer:
        """Change a silence that has not ended: its matchers, times and comment."""
        who = _who(caller, body.created_by)
        asked = replace(silence_of(body, who, parts.clock()), silence_id=silence_id)
        try:
            changed = await asyncio.to_thread(parts.desk.amend, asked, who)
        except KeyError:
            raise Refused(404, "not_found", f"there is no silence {silence_id} that has not ended") from None
        return _silence_answer(changed)

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


def _add_fitting(api: APIRouter, parts: AlertParts, source: AlertSource) -> None:
    @api.post(
        "/fitting",
        dependencies=[Depends(parts.read)],
        responses=documented(400, 401, 403, 413, 422, 429, 500),
    )
    async def fitting(body: MatchersBody) -> FittingAnswer:
        """Which active alerts would be silenced by these matchers; nothing is changed."""
        matchers = _matchers(body.matchers)
        rows = await asyncio.to_thread(source.active)
        return FittingAnswer(
            fingerprints=[row.fingerprint for row in rows if all_match(matchers, labels_of_row(row))]
        )


def _add_words(api: APIRouter, parts: AlertParts) -> None:
    refusals = (401, 403, 404, 422, 429, 500, 503)

    @api.post("/{fingerprint}/ack", responses=documented(400, *refusals, 413))
    async def acknowledge(
        fingerprint: Fingerprint, body: WordBody, caller: Annotated[Caller, Depends(parts.operate)]
    ) -> WordAnswer:
        """Take an alert: it is not repeated until it fires anew."""
        _require_known(parts, fingerprint)
        made = await asyncio.to_thread(
            parts.desk.acknowledge, fingerprint, _who(caller, body.by), body.comment
        )
        return WordAnswer(fingerprint=fingerprint, by=made.by, comment=made.comment, seconds=made.seconds)

    @api.delete("/{fingerprint}/ack", responses=documented(*refusals))
    async def release(
        fingerprint: Fingerprint, caller: Annotated[Caller, Depends(parts.operate)]
    ) -> WordAnswer:
        """Give a taken alert back: it is repeated again."""
        try:
            gone = await asyncio.to_thread(parts.desk.release, fingerprint, _who(caller, None))
        except KeyError:
            raise Refused(404, "not_found", f"nobody has taken an alert {fingerprint}") from None
        return WordAnswer(fingerprint=fingerprint, by=gone.by, comment=gone.comment, seconds=gone.seconds)

    @api.post("/{fingerprint}/comments", responses=documented(400, *refusals, 413))
    async def comment(
        fingerprint: Fingerprint, body: WordBody, caller: Annotated[Caller, Depends(parts.operate)]
    ) -> WordAnswer:
        """Say a word on an alert."""
        _require_known(parts, fingerprint)
        made = await asyncio.to_thread(parts.desk.comment, fingerprint, _who(caller, body.by), body.comment)
        return WordAnswer(fingerprint=fingerprint, by=made.by, comment=made.text, seconds=made.seconds)


def _require_known(parts: AlertParts, fingerprint: str) -> None:
    if not parts.knows(fingerprint):
        raise Refused(404, "not_found", f"there is no alert {fingerprint}")


def _who(caller: Caller, claimed: str | None) -> str:
    """The name that is kept: the caller's own counts; where nobody has to sign in what is claimed, else the address."""
    if caller.name is not None:
        return caller.name if claimed in (None, caller.name) else f"{claimed} ({caller.name})"
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
    matchers = _matchers(body.matchers)
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


def _matchers(bodies: Sequence[MatcherBody]) -> tuple[Matcher, ...]:
    try:
        return tuple(checked(Matcher(**one.model_dump())) for one in bodies)
    except MatcherError as error:
        raise _invalid("matchers", str(error), "expressions that can be compiled") from error


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
