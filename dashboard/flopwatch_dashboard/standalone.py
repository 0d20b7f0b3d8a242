"""The dashboard as its own process: it asks a collector over HTTP and hands its CSV on."""

from typing import Literal

from fastapi import FastAPI, Request, Response

from flopwatch_dashboard.app import mount
from flopwatch_dashboard.client import CollectorUnavailable, HttpQuery


def application(query: HttpQuery) -> FastAPI:
    """An application with the dashboard, its health, and the CSV downloads of the collector."""
    api = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @api.get("/healthz")
    async def healthz() -> dict[str, bool]:
        return {"ok": True}

    # Not a coroutine: it waits for the collector, so it belongs in a thread.
    @api.get("/api/v1/export/{name}.csv")
    def export(name: Literal["ledger", "days", "jobs"], request: Request) -> Response:
        asked = f"?{request.url.query}" if request.url.query else ""
        try:
            body, kind = query.fetch(f"/api/v1/export/{name}.csv{asked}")
        except CollectorUnavailable as error:
            return Response(str(error), status_code=502, media_type="text/plain")
        disposition = {"content-disposition": f'attachment; filename="flopwatch-{name}.csv"'}
        return Response(body, media_type=kind, headers=disposition)

    mount(api, query)
    return api
