"""``/api/v1/costs``: the site's costs as they count, saved by operators, every version with who and why."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Request, Response
from fastapi import Query as Parameter
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from flopwatch.settings import SettingError
from flopwatch_collector.api import bodies
from flopwatch_collector.api.access import Caller
from flopwatch_collector.api.errors import FieldProblem, Refused, documented
from flopwatch_collector.api.query import CallerNeed, answers, as_json, each_once
from flopwatch_collector.bookkeeping.cost_book import CostBook, CostVersion, Overtaken
from flopwatch_collector.config_cost_file import read_costs
from flopwatch_collector.config_costs import CostSettings
from flopwatch_collector.ingest.decode import shorten

MOST_VERSIONS = 100
Comment = Annotated[
    str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]+$")
]


class CostsBody(BaseModel):
    """Costs to save: some inputs changed, or all of them anew."""

    model_config = ConfigDict(extra="forbid")

    changes: Annotated[dict[str, float], Field(max_length=200)] | None = None
    """Inputs by name (``own.capex_per_gpu``, of one group ``NAME.own.capex_per_gpu``); others stay as they are."""
    costs: dict[str, Any] | None = None
    """The whole of ``[costs]`` as the settings file has it, as JSON."""
    comment: Comment
    """Why, for the record."""
    version: Annotated[int, Field(ge=0)] | None = None
    """The version that these costs were made from: when another one counts, nothing is saved (409)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CostsAnswer:
    """The costs that count, and every saving, newest first."""

    source: str
    """``settings`` or ``saved``."""
    version: int
    """0 while nothing was ever saved."""
    settings_differ: bool
    """Saved costs count, and those of the settings were changed since."""
    costs: dict[str, Any]
    versions: tuple[CostVersion, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CostParts:
    """What the routes work with."""

    book: CostBook
    read: CallerNeed
    operate: CallerNeed


def router(parts: CostParts) -> APIRouter:
    """Read, save, and go back to the settings."""
    api = APIRouter(prefix="/api/v1", tags=["costs"], dependencies=[Depends(each_once)])
    refusals = (401, 403, 422, 429, 500)
    answer = answers(CostsAnswer, *refusals)

    @api.get("/costs", dependencies=[Depends(parts.read)], response_model=None, responses=answer)
    async def costs() -> Response:
        """The costs that count, and who saved them."""
        return await _told(parts.book)

    @api.put(
        "/costs",
        response_model=None,
        responses={**answer, **documented(409, 413, 415, 503)},
        openapi_extra=bodies.schema(CostsBody),
    )
    async def save(request: Request, caller: Annotated[Caller, Depends(parts.operate)]) -> Response:
        """Save costs for everyone: the pages, reports and alerts use them from now on."""
        body = await bodies.read(request, CostsBody)
        if (body.changes is None) == (body.costs is None):
            raise _refused("changes", "both or neither", "either changes or costs")
        await _kept(lambda: _save(parts.book, body, caller.name or caller.address))
        return await _told(parts.book)

    @api.delete("/costs", response_model=None, responses={**answer, **documented(404, 409, 503)})
    async def withdraw(
        caller: Annotated[Caller, Depends(parts.operate)],
        comment: Annotated[str, Parameter(max_length=500, description="Why, for the record.")] = "",
    ) -> Response:
        """Go back to the costs of the settings; what was saved stays in the history."""
        try:
            await _kept(lambda: parts.book.withdraw(caller.name or caller.address, comment))
        except KeyError:
            raise Refused(404, "not_found", "the settings' costs count already: nothing is saved") from None
        return await _told(parts.book)

    return api


def _save(book: CostBook, body: CostsBody, by: str) -> CostVersion:
    if body.changes is not None:
        return book.save(body.changes, by, body.comment, body.version)
    return book.replace(read_costs({"costs": body.costs or {}}, {}), by, body.comment, body.version)


async def _kept(work: Callable[[], CostVersion]) -> None:
    """Save.

    Raises:
        Refused: 409, another version counts; 422, an input is not known or not allowed; 503, it cannot be kept now.
    """
    try:
        await bodies.durably(work)
    except Overtaken as error:
        raise Refused(409, "conflict", f"{error}; look at the costs again") from error
    except SettingError as error:
        raise _refused(error.name, error.value, error.allowed) from error


def _refused(name: str, value: object, allowed: str) -> Refused:
    field = FieldProblem(field=name, value=shorten(str(value)), allowed=shorten(allowed))
    return Refused(422, "invalid", f"{name} is {field.value}; allowed: {allowed}", fields=[field])


async def _told(book: CostBook) -> Response:
    return as_json(await asyncio.to_thread(_answer, book))


def _answer(book: CostBook) -> CostsAnswer:
    told = book.told()
    return CostsAnswer(
        source="settings" if told is None else "saved",
        version=book.version(),
        settings_differ=told is not None and told.settings_differ,
        costs=_plain(book),
        versions=book.versions()[:MOST_VERSIONS],
    )


def _plain(book: CostBook) -> dict[str, Any]:
    """The costs without what is not given; those of a group are complete, what it takes from the site included."""
    known, usual = msgspec.to_builtins(book.current()), msgspec.to_builtins(CostSettings())
    return {name: _given(value) for name, value in known.items() if value != usual[name]}


def _given(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _given(each) for name, each in value.items() if each is not None}
    return [_given(each) for each in value] if isinstance(value, list) else value
