"""The HTTP application, put together from its routers."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.responses import RedirectResponse
from starlette.types import Receive, Scope, Send

from flopwatch.query import Query
from flopwatch.wire import Batch
from flopwatch_collector.alerting.desk import AlertDesk
from flopwatch_collector.alerting.rehearsal import Rehearse
from flopwatch_collector.api import (
    alerts,
    audit,
    bodies,
    costs,
    errors,
    export,
    health,
    ingest,
    job_facts,
    jobs,
    leases,
    login,
    metrics,
    nodes,
    query,
    reports,
    whoami,
)
from flopwatch_collector.api.access import UiGate, needs
from flopwatch_collector.api.doors import Doors
from flopwatch_collector.api.same_site import SameSite
from flopwatch_collector.bookkeeping.cost_book import CostBook
from flopwatch_collector.config import CollectorSettings
from flopwatch_collector.ingest.accept import Ingest
from flopwatch_collector.model import Fleet, JobRecord
from flopwatch_collector.past import Past
from flopwatch_collector.reports.service import Reports
from flopwatch_collector.schedulers.assembling import Assembled
from flopwatch_collector.views.alerts import AlertSource
from flopwatch_collector.views.of_teams import OfTeams

Mount = Callable[[FastAPI, Query, str], object]
"""Adds the pages to the application: (application, data, prefix)."""
UI_PREFIX = "/ui/"


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """What the application serves."""

    settings: CollectorSettings
    doors: Doors
    ingest: Ingest
    fleet: Fleet
    desk: job_facts.Desk
    """Where facts of jobs are declared."""
    query: Query
    metrics: metrics.Metrics
    ready: Callable[[], bool]
    version: str
    mount: Mount | None = None
    reports: Reports | None = None
    costs: CostBook | None = None
    """Where the site's costs are saved."""
    schedulers: Assembled | None = None
    declared: Callable[[JobRecord], None] = lambda _: None
    """Told of a job of which something was declared."""
    alert_desk: AlertDesk | None = None
    """Where people say something to alerts."""
    knows_alert: Callable[[str], bool] = lambda _: False
    """Whether there is an alert of a fingerprint."""
    alert_source: AlertSource | None = None
    """The alerts as they stand, and the rules."""
    past: Callable[[float], Past] | None = None
    """What rehearsals need of nodes, fleet and budgets."""
    rehearse: Rehearse | None = None
    """What the alert rules would have said of the last so many seconds."""


class Application(FastAPI):
    """FastAPI's, with pushes taken before it."""

    def __init__(self, intake: ingest.Intake, **described: Any) -> None:
        super().__init__(**described)
        self._intake = intake

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._intake.takes(scope):
            await self._intake(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def build(
    parts: Parts, lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None
) -> FastAPI:
    """The application; ``mount`` is called last, so API routes win and unknown paths stay 404."""
    intake = ingest.Intake(
        ingest.IngestParts(
            ingest=parts.ingest, settings=parts.settings, metrics=parts.metrics, access=parts.doors.access
        )
    )
    app = Application(
        intake,
        title="flopwatch",
        version=parts.version,
        summary="What the GPUs of a training cluster really achieve",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan or _nothing,
    )
    errors.install(app)
    _add_routes(app, parts, intake)
    _describe(app)
    if parts.mount is not None:
        _add_pages(app, parts)
    app.add_middleware(bodies.LimitedBodies)
    app.add_middleware(audit.Audited, audit=parts.doors.audit)
    app.add_middleware(SameSite, access=parts.doors.access, public_url=parts.settings.public_url)
    return app


def _add_routes(app: FastAPI, parts: Parts, intake: ingest.Intake) -> None:
    access = parts.doors.access
    read, of_teams = needs(access, "read"), needs(access, "read", of_teams=True)
    app.include_router(ingest.router(intake))
    app.include_router(query.router(OfTeams(parts.query), of_teams))
    app.include_router(export.router(OfTeams(parts.query), of_teams))
    app.include_router(jobs.router(parts.fleet, read))
    if parts.reports is not None:
        app.include_router(reports.router(parts.reports, read))
    app.include_router(
        job_facts.router(
            job_facts.JobFactsParts(
                desk=parts.desk,
                read=read,
                operate=needs(parts.doors.access, "operate"),
                changed=parts.declared,
            )
        )
    )
    _add_alerts(app, parts)
    app.include_router(metrics.router(parts.metrics, read))
    app.include_router(health.router(parts.ready))
    _add_schedulers(app, parts)
    if parts.costs is not None:
        app.include_router(
            costs.router(costs.CostParts(book=parts.costs, read=read, operate=needs(access, "operate")))
        )
    app.include_router(audit.router(parts.doors.audit, needs(access, "operate")))
    app.include_router(whoami.router(of_teams))
    app.include_router(login.router(_login_parts(parts)))


def _login_parts(parts: Parts) -> login.LoginParts:
    settings, doors = parts.settings, parts.doors
    over_tls = settings.tls_cert is not None or (settings.public_url or "").startswith("https:")
    return login.LoginParts(
        access=doors.access,
        sessions=doors.sessions,
        audit=doors.audit,
        home=UI_PREFIX,
        secure=over_tls or doors.settings.secure_cookies == "yes",
        simulated=lambda: parts.fleet.state().simulated,
        provider=doors.provider,
        address=settings.public_url,
    )


def _add_alerts(app: FastAPI, parts: Parts) -> None:
    """What people say to alerts, and the rules."""
    if parts.alert_desk is None:
        return
    read = needs(parts.doors.access, "read")
    app.include_router(
        alerts.router(
            alerts.AlertParts(
                desk=parts.alert_desk,
                read=read,
                operate=needs(parts.doors.access, "operate"),
                knows=parts.knows_alert,
                source=parts.alert_source,
                rehearse=parts.rehearse,
                past=parts.past,
            )
        )
    )


def _add_schedulers(app: FastAPI, parts: Parts) -> None:
    """What schedulers and operators say of jobs and nodes."""
    if parts.schedulers is None:
        return
    read, operate = needs(parts.doors.access, "read"), needs(parts.doors.access, "operate")
    app.include_router(
        leases.router(
            leases.LeaseParts(
                assembled=parts.schedulers,
                state=parts.fleet.state,
                read=read,
                push=needs(parts.doors.access, "schedule"),
                clock=parts.schedulers.polls.clock,
            )
        )
    )
    app.include_router(
        nodes.router(
            nodes.NodeParts(
                states=parts.schedulers.nodes,
                state=parts.fleet.state,
                read=read,
                operate=operate,
                clock=parts.schedulers.polls.clock,
            )
        )
    )


def _add_pages(app: FastAPI, parts: Parts) -> None:
    app.add_middleware(UiGate, access=parts.doors.access, prefix=UI_PREFIX, login="/login")

    @app.get("/", include_in_schema=False)
    async def home() -> RedirectResponse:
        return RedirectResponse(UI_PREFIX)

    if parts.mount is not None:
        parts.mount(app, OfTeams(parts.query), UI_PREFIX)


def _describe(app: FastAPI) -> None:
    """Give the OpenAPI document the wire's schema."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title=app.title, version=app.version, summary=app.summary, routes=app.routes
            )
            _, schemas = msgspec.json.schema_components([Batch], ref_template="#/components/schemas/{name}")
            known = document.setdefault("components", {}).setdefault("schemas", {})
            known.update({name: schema for name, schema in schemas.items() if name not in known})
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend the document


@asynccontextmanager
async def _nothing(_: FastAPI) -> AsyncIterator[None]:
    yield
