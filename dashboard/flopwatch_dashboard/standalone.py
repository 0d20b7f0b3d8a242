"""The dashboard as its own process: it asks a collector over HTTP and hands its CSV on, or asks another source."""

from typing import Literal

from fastapi import FastAPI, Request, Response

from flopwatch import viewer
from flopwatch.query import Query
from flopwatch.viewer import Viewer
from flopwatch_dashboard.app import mount
from flopwatch_dashboard.client import CollectorUnavailable, HttpQuery
from flopwatch_dashboard.forwarding import Collector
from flopwatch_dashboard.sign_in import SignIn


def application(query: HttpQuery) -> FastAPI:
    """An application with the dashboard, its health, and the CSV downloads of the collector."""
    api = _bare()

    # Not a coroutine: it waits for the collector, so it belongs in a thread.
    @api.get("/api/v1/export/{name}.csv")
    def export(name: Literal["ledger", "days", "jobs", "gpus"], request: Request) -> Response:
        asked = f"?{request.url.query}" if request.url.query else ""
        try:
            body, kind = query.fetch(f"/api/v1/export/{name}.csv{asked}")
        except CollectorUnavailable as error:
            return Response(str(error), status_code=502, media_type="text/plain")
        disposition = {"content-disposition": f'attachment; filename="flopwatch-{name}.csv"'}
        return Response(body, media_type=kind, headers=disposition)

    mount(api, query, who=_reader)
    return api


def signed_in(query: HttpQuery, collector: Collector) -> FastAPI:
    """The same for people who sign in as at the collector: each sees and changes there what they may."""
    api = _bare()
    mount(api, query, who=viewer.current)
    api.add_middleware(SignIn, collector=collector)
    return api


def application_of(query: Query) -> FastAPI:
    """The same over another source of data, which has no CSV to hand on."""
    api = _bare()

    @api.get("/api/v1/export/{name}.csv")
    async def export(name: str) -> Response:
        words = f"{name}.csv is not available from this source of data: only a collector has it\n"
        return Response(words, status_code=404, media_type="text/plain")

    mount(api, query, who=_reader)
    return api


def _reader() -> Viewer:
    """Whoever looks at a dashboard that asks nobody to sign in: changes are made at the collector's pages."""
    return Viewer(role="viewer", has_desk=False)


def _bare() -> FastAPI:
    api = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @api.get("/healthz")
    async def healthz() -> dict[str, bool]:
        return {"ok": True}

    return api
