"""``/api/v1/alerts/rules`` and ``/rehearsal``: the rules as they are set, and what they would have said of the past."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi import Query as Parameter

from flopwatch.answers.alert import AlertRow, RuleInfo
from flopwatch.settings import SettingError
from flopwatch_collector.alerting.rehearsal import Rehearsal, Rehearse
from flopwatch_collector.api.alert_bodies import LONGEST_REHEARSAL_SECONDS, Fingerprint, RuleChange, TrialBody
from flopwatch_collector.api.errors import FieldProblem, Refused
from flopwatch_collector.api.query import CallerNeed, answers, as_json
from flopwatch_collector.config_alerts import RuleSettings, rules_of
from flopwatch_collector.ingest.decode import shorten
from flopwatch_collector.past import Past
from flopwatch_collector.views.alerts import AlertSource
from flopwatch_collector.views.memo import Memo

KEPT_SECONDS = 60.0
"""A rehearsal is made once in this time, however many ask for it."""
Seconds = Annotated[
    float, Parameter(gt=0.0, le=LONGEST_REHEARSAL_SECONDS, description="How far back, in seconds.")
]


@dataclass(frozen=True, kw_only=True, slots=True)
class RulesAnswer:
    """Every rule, on what terms it holds here, and how often it fired."""

    range_seconds: float
    rules: tuple[RuleInfo, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertAnswer:
    """One alert: how it stands, and its earlier episodes, newest first."""

    now: AlertRow | None
    """``None`` while it does not hold."""
    earlier: tuple[AlertRow, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleParts:
    """What the routes work with."""

    source: AlertSource
    rehearse: Rehearse | None
    past: Callable[[float], Past] | None
    read: CallerNeed
    operate: CallerNeed
    clock: Callable[[], float]


def add(api: APIRouter, parts: RuleParts) -> None:
    """The routes about rules, and the one of a single alert, which must come after all with a word of their own."""
    if parts.rehearse is not None:
        _add_rehearsal(api, parts, parts.rehearse)
    if parts.past is not None:
        _add_past(api, parts, parts.past)
    _add_rules(api, parts)


def _add_past(api: APIRouter, parts: RuleParts, past: Callable[[float], Past]) -> None:
    @api.get(
        "/past",
        dependencies=[Depends(parts.read)],
        response_model=None,
        responses=answers(Past, 401, 403, 422, 429, 500),
    )
    async def kept(seconds: Seconds = 604_800.0) -> Response:
        """What rehearsals need of nodes, fleet and budgets: when nodes were faulty or silent, XIDs, verdicts."""
        return as_json(await asyncio.to_thread(past, seconds))


def _add_rules(api: APIRouter, parts: RuleParts) -> None:
    reads = [Depends(parts.read)]
    statuses = (401, 403, 422, 429, 500)

    @api.get("/rules", dependencies=reads, response_model=None, responses=answers(RulesAnswer, *statuses))
    async def rules(seconds: Seconds = 604_800.0) -> Response:
        """Every rule with its levels and times, and how often it fired within so many seconds."""
        found = await asyncio.to_thread(parts.source.rules, parts.clock() - seconds)
        return as_json(RulesAnswer(range_seconds=seconds, rules=found))

    @api.get(
        "/{fingerprint}",
        dependencies=reads,
        response_model=None,
        responses=answers(AlertAnswer, *statuses, 404),
    )
    async def alert(fingerprint: Fingerprint) -> Response:
        """One alert: how it stands, what was said of it, and its earlier episodes."""
        active, earlier = await asyncio.to_thread(_both, parts.source)
        known = [row for row in active if row.fingerprint == fingerprint]
        past = tuple(row for row in earlier if row.fingerprint == fingerprint)
        if not known and not past:
            raise Refused(404, "not_found", f"there is no alert {fingerprint}")
        return as_json(AlertAnswer(now=known[0] if known else None, earlier=past))


def _both(source: AlertSource) -> tuple[tuple[AlertRow, ...], tuple[AlertRow, ...]]:
    return source.active(), source.history(0.0)


def _add_rehearsal(api: APIRouter, parts: RuleParts, rehearse: Rehearse) -> None:
    statuses = (401, 403, 422, 429, 500)
    kept = Memo(fresh_seconds=KEPT_SECONDS, oldest_seconds=KEPT_SECONDS)

    @api.get(
        "/rehearsal",
        dependencies=[Depends(parts.read)],
        response_model=None,
        responses=answers(Rehearsal, *statuses),
    )
    async def rehearsal(seconds: Seconds = 604_800.0) -> Response:
        """What the rules, as they are set, would have said of the past."""

        def made() -> Rehearsal:
            return kept.get(seconds, 0, parts.clock(), lambda: rehearse(seconds, {}))

        return as_json(await asyncio.to_thread(made))

    @api.post(
        "/rehearsal",
        dependencies=[Depends(parts.operate)],
        response_model=None,
        responses=answers(Rehearsal, 400, *statuses, 413),
    )
    async def trial(body: TrialBody) -> Response:
        """What the rules would have said of the past with these changes; nothing is changed."""
        try:
            changes = changes_of(body.rules)
            return as_json(await asyncio.to_thread(rehearse, body.seconds, changes))
        except SettingError as error:
            problem = FieldProblem(
                field=error.name, value=shorten(str(error.value)), allowed=shorten(error.allowed)
            )
            raise Refused(422, "invalid", str(error), fields=[problem]) from error


def changes_of(bodies: dict[str, RuleChange]) -> dict[str, RuleSettings]:
    """The changes as settings.

    Raises:
        SettingError: an unknown rule, or a level that it has not.
    """
    tables = {name: one.model_dump(by_alias=True, exclude_none=True) for name, one in bodies.items()}
    return rules_of("rules", tables)
