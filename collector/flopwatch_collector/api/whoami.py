"""``GET /api/v1/whoami``: who asks, and what they may do; a dashboard of its own process asks for its readers."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from pydantic import BaseModel

from flopwatch_collector.api.access import Caller
from flopwatch_collector.api.errors import documented
from flopwatch_collector.api.query import CallerNeed, each_once


class WhoAmI(BaseModel):
    """Who asks."""

    name: str | None
    role: Literal["agent", "viewer", "operator", "admin"] | None
    """None where nobody has to sign in: then everybody may do everything."""
    teams: list[str]
    """Whose jobs they see; none: everybody's."""
    way: Literal["open", "token", "session", "proxy"]


def router(of_teams: CallerNeed) -> APIRouter:
    """The route, for everybody who may read."""
    api = APIRouter(tags=["access"], dependencies=[Depends(each_once)])

    @api.get("/api/v1/whoami", responses=documented(401, 403, 422, 429, 500))
    async def whoami(caller: Annotated[Caller, Depends(of_teams)]) -> WhoAmI:
        """Who asks, by their token, session or proxy."""
        return WhoAmI(name=caller.name, role=caller.role, teams=list(caller.teams), way=caller.way)

    return api
