"""``/healthz`` and ``/readyz``: is the process alive, has the first page data."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse
from pydantic import BaseModel


class Health(BaseModel):
    """One word."""

    status: str


def router(ready: Callable[[], bool]) -> APIRouter:
    """Both probes; open to everybody, for they tell nothing."""
    api = APIRouter(tags=["operation"])
    waiting: dict[int | str, dict[str, Any]] = {
        503: {"model": Health, "description": "The first page has no data yet."}
    }

    @api.get("/healthz")
    async def healthz() -> Health:
        """The process answers."""
        return Health(status="ok")

    def is_ready() -> bool:
        return ready()

    @api.get("/readyz", response_model=Health, responses=waiting)
    def readyz(*, is_ready: Annotated[bool, Depends(is_ready)]) -> JSONResponse:
        """The first page has data."""
        status = "ready" if is_ready else "waiting for data"
        return JSONResponse({"status": status}, status_code=200 if is_ready else 503)

    return api
