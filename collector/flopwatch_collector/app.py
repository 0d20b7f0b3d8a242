"""The collector put together: the only place that builds its parts."""

import asyncio
import importlib.metadata
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from fastapi import FastAPI

from flopwatch.query import Query
from flopwatch_collector import duty
from flopwatch_collector.accounting import Accounting, Terms
from flopwatch_collector.alerting import assembly
from flopwatch_collector.alerting.engine import AlertEngine
from flopwatch_collector.alerting.rehearsal import rehearsing
from flopwatch_collector.api import application
from flopwatch_collector.api.doors import doors_of
from flopwatch_collector.api.metrics import Metrics, Readout
from flopwatch_collector.api.tokens import Tokens
from flopwatch_collector.bookkeeping.cost_book import CostBook
from flopwatch_collector.bookkeeping.history import REACH_SECONDS
from flopwatch_collector.bookkeeping.prices import prices_of
from flopwatch_collector.config import CONTROL_FILE, Settings, data_folder
from flopwatch_collector.duty import Duty, SoleDuty
from flopwatch_collector.ingest.accept import GATHER_SECONDS, Ingest, Written
from flopwatch_collector.ingest.directory import Directory
from flopwatch_collector.ingest.forgetting import Horizons, forget
from flopwatch_collector.model import JobRecord
from flopwatch_collector.periodic import Periodic
from flopwatch_collector.prometheus.bridge import Bridge, BridgeSources, bridges
from flopwatch_collector.prometheus.exposition import FleetReadout, RemoteWriteReadout
from flopwatch_collector.readiness import Readiness
from flopwatch_collector.reports.service import Reports
from flopwatch_collector.reports.wiring import mailing_of
from flopwatch_collector.schedulers import assembling
from flopwatch_collector.schedulers.holding import holding
from flopwatch_collector.store import engines
from flopwatch_collector.store.control_sqlite import SqliteControl
from flopwatch_collector.store.desk import Desk
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import HOURLY_DAYS, Control, Store, StoreSettings
from flopwatch_collector.store.work import Work
from flopwatch_collector.views.query import CollectorQuery

STEPS_WARM_SECONDS = 3_600.0
JOB_REPORTS_SECONDS = 120.0
MAILING_SECONDS = 60.0


@dataclass(kw_only=True)
class Running:
    """A collector: its application, and its parts for whoever composes it with more."""

    settings: Settings
    control: Control
    store: Store
    directory: Directory
    ingest: Ingest
    accounting: Accounting
    query: Query
    exported: Query
    """The same for what is scraped and written, which nobody looks at."""
    tokens: Tokens
    costs: CostBook
    periodic: Periodic
    metrics: Metrics
    reports: Reports
    ready: Callable[[], bool]
    """Whether the first page has data."""
    bridges: tuple[Bridge, ...] = ()
    """Receivers of remote write."""
    schedulers: assembling.Assembled | None = None
    app: FastAPI = field(default_factory=FastAPI)
    _parts: ExitStack = field(default_factory=ExitStack, repr=False)

    def start(self) -> None:
        """Begin the periodic work; the application's lifespan calls it."""
        self.periodic.start()
        for bridge in self.bridges:
            bridge.start()
        if self.schedulers is not None:
            self.schedulers.polls.start()

    def stop(self) -> None:
        """Make durable what waits, and let the data folder go; may be called again."""
        self._parts.close()

    def is_protected(self) -> bool:
        """Whether somebody has to sign in."""
        return self.tokens.any_valid() or self.settings.sign_in.signs_in

    def owns(self, parts: ExitStack) -> None:
        """Take over what is to be closed at the end."""
        self._parts = parts

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """Work while the application is served."""
        self.start()
        try:
            yield
        finally:
            await asyncio.to_thread(self.stop)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    """What outlives the process, and the clock it is written by."""

    store: Store
    control: Control
    clock: Callable[[], float]
    duty: Duty = field(default_factory=SoleDuty)
    duty_control: Control
    """The control state for the work that only one of several collectors does."""
    refresh: Callable[[], None] | None = None
    """Takes over what other collectors measured."""


def build(
    settings: Settings,
    *,
    environ: Mapping[str, str],
    simulated: bool = False,
    mount: application.Mount | None = None,
    clock: Callable[[], float] = time.time,
) -> Running:
    """A collector on its data folder, ready to be served.

    Raises:
        StoreLocked: another process holds the data folder.
        Unavailable: ClickHouse or PostgreSQL cannot be reached.
        ValueError: the folder was written in another format.
        SettingError: a channel's file or a secret cannot be read.
    """
    with ExitStack() as parts:
        kept = _open(settings, environ, clock, parts)
        forget(kept.control, clock(), _horizons(settings))
        directory = Directory(
            kept.control,
            clock,
            simulated=simulated,
            latest=kept.store.latest_gpus,
            site_accelerators=settings.site_accelerators(),
        )
        now = clock()
        directory.warm_steps(kept.store.steps(now - STEPS_WARM_SECONDS, now))
        running = _wire(settings, kept, directory)
        parts.callback(running.ingest.close)
        parts.callback(running.periodic.stop)
        parts.callback(running.accounting.stop)
        _bridge(running, kept, parts, simulated=simulated)
        running.schedulers = _schedulers(running, kept)
        parts.callback(running.schedulers.polls.stop)
        running.app = application.build(_served(running, mount, clock), running.lifespan)
        running.owns(parts.pop_all())
        return running


def _horizons(settings: Settings) -> Horizons:
    """Jobs as long as there are figures of them; who held what as long as figures can be computed again."""
    details = max(settings.collector.rollup_days, REACH_SECONDS / 86_400.0)
    return Horizons(detail_days=details, record_days=max(details, HOURLY_DAYS))


def _open(
    settings: Settings, environ: Mapping[str, str], clock: Callable[[], float], parts: ExitStack
) -> _Kept:
    """The data folder, opened; the control state is closed last."""
    folder = data_folder(settings.collector, environ)
    if settings.collector.store == "clickhouse":
        opened = engines.clickhouse(settings.collector, folder, clock, parts)
        duties, fenced = duty.of(opened.control, opened.holder, settings.collector.lease_seconds)
        if duties.renew_seconds is None:
            parts.callback(Desk(folder, Work(opened.store, opened.control)).close)
        return _Kept(
            store=opened.store,
            control=opened.control,
            clock=clock,
            duty=duties,
            duty_control=fenced,
            refresh=opened.store.refresh if duties.renew_seconds is not None else None,
        )
    control = SqliteControl(folder / CONTROL_FILE)
    parts.callback(control.close)
    kept_days = settings.collector
    store = EmbeddedStore(
        StoreSettings(
            folder=folder,
            raw_days=kept_days.raw_days,
            raw_bytes=kept_days.raw_bytes,
            rollup_days=kept_days.rollup_days,
            flush_seconds=0.0,  # ingest has gathered what is committed together
        ),
        clock,
    )
    parts.callback(store.close)
    work = Work(store, control, lambda target: control.copy_to(target / CONTROL_FILE))
    parts.callback(Desk(folder, work).close)
    return _Kept(store=store, control=control, clock=clock, duty_control=control)


def _wire(settings: Settings, kept: _Kept, directory: Directory) -> Running:
    """All parts over an opened data folder."""
    metrics = Metrics()
    costs = CostBook(kept.control, settings.costs, kept.clock)
    accounting = _accounting(settings, kept, directory, costs)
    engine = _alerting(settings, kept)
    query = CollectorQuery(
        fleet=directory,
        store=kept.store,
        accounting=accounting,
        alerts=engine,
        settings=settings,
        clock=kept.clock,
        declared=partial(holding, kept.control),
        costs=costs,
    )
    reports = Reports(query, kept.duty_control, clock=kept.clock)
    periodic = _clockwork(settings, kept, (accounting, query, engine), reports, directory)
    readiness = Readiness(kept.store, accounting, kept.clock)
    written = _on_written(metrics, accounting, readiness)
    ingest = Ingest(directory, kept.control, kept.store, clock=kept.clock, written=written)
    ingest.gather_seconds = GATHER_SECONDS
    metrics.read(Readout(ingest.stats, kept.store.stats, directory.state, periodic.ages, kept.duty.has))
    return Running(
        settings=settings,
        control=kept.control,
        store=kept.store,
        directory=directory,
        ingest=ingest,
        accounting=accounting,
        query=query,
        exported=query.aside(),
        tokens=Tokens(kept.control, kept.clock),
        costs=costs,
        periodic=periodic,
        metrics=metrics,
        reports=reports,
        ready=readiness.is_ready,
    )


def _bridge(running: Running, kept: _Kept, parts: ExitStack, *, simulated: bool) -> None:
    """Fleet, jobs and alerts at ``/metrics``, and by remote write to whom the settings name."""
    sources = BridgeSources(
        query=running.exported,
        accounting=running.accounting,
        fleet=running.directory,
        control=kept.duty_control,
        clock=kept.clock,
        simulated=simulated,
        on_duty=kept.duty.has,
        watched=running.reports.newest_facts,
    )
    running.bridges = bridges(running.settings.remote_write, sources)
    for bridge in running.bridges:
        parts.callback(bridge.stop)
    running.metrics.registry.register(FleetReadout(running.exported, running.reports.newest_facts))
    running.metrics.registry.register(
        RemoteWriteReadout(
            lambda: [(bridge.sender.name, bridge.sender.stats()) for bridge in running.bridges]
        )
    )


def _schedulers(running: Running, kept: _Kept) -> assembling.Assembled:
    """Who says which job holds which GPUs, and which nodes are out of service."""
    return assembling.assemble(
        assembling.Parts(
            site=running.settings.site,
            time_zone=running.settings.collector.time_zone,
            state=running.directory.state,
            accept=running.ingest.accept_batch,
            store=kept.store,
            control=kept.control,
            clock=kept.clock,
            on_duty=kept.duty.has,
            again=running.accounting.again,
            simulated=running.directory.simulated,
        )
    )


def _clockwork(
    settings: Settings,
    kept: _Kept,
    work: tuple[Accounting, CollectorQuery, AlertEngine],
    reports: Reports,
    directory: Directory,
) -> Periodic:
    accounting, query, engine = work
    mailing = mailing_of(settings, reports, kept.duty_control, kept.duty, lambda: directory.simulated)
    return Periodic(
        accounting=accounting,
        engine=engine,
        facts=reports.facts,
        refresh=query.refresh,
        store=kept.store,
        settings=settings,
        clock=kept.clock,
        duty=kept.duty,
        learn=_learning(kept, directory),
        more={
            "job_reports": (lambda _: reports.jobs.keep_finished(), JOB_REPORTS_SECONDS),
            "mailing": (mailing.send_due, MAILING_SECONDS),
            **assembly.acting(settings, engine, kept.duty_control, lambda: directory.simulated),
        },
    )


def _learning(kept: _Kept, directory: Directory) -> Callable[[], None] | None:
    """Takes over what other collectors measured and changed; None where there are none."""
    refresh = kept.refresh
    if refresh is None:
        return None

    def learn() -> None:
        directory.learn()
        refresh()
        directory.advance()

    return learn


def _alerting(settings: Settings, kept: _Kept) -> AlertEngine:
    ground = assembly.Ground(
        control=kept.control, duty_control=kept.duty_control, duty=kept.duty, clock=kept.clock
    )
    return assembly.engine_of(settings, ground)


def _accounting(settings: Settings, kept: _Kept, directory: Directory, costs: CostBook) -> Accounting:
    terms = Terms(
        time_zone=settings.collector.time_zone,
        priced=lambda: prices_of(costs.current()),
        raw_days=settings.collector.raw_days,
        elastic_nodes=settings.collector.elastic_nodes,
    )
    return Accounting(kept.store, kept.control, directory, terms)


def _on_written(metrics: Metrics, accounting: Accounting, readiness: Readiness) -> Callable[[Written], None]:
    """What follows from a batch that has become durable."""

    def written(batch: Written) -> None:
        metrics.durable_after(batch.seconds)
        readiness.note_data()
        edge = accounting.provisional_from_seconds
        if batch.duplicate or batch.first_seconds is None or batch.last_seconds is None or edge is None:
            return
        if batch.first_seconds < edge:
            accounting.late(batch.first_seconds, batch.last_seconds)

    return written


def _served(
    running: Running, mount: application.Mount | None, clock: Callable[[], float]
) -> application.Parts:
    """What the HTTP application is made of."""
    return application.Parts(
        settings=running.settings.collector,
        doors=doors_of(running.control, running.tokens, running.settings.sign_in, clock),
        ingest=running.ingest,
        fleet=running.directory,
        desk=running.directory,
        query=running.query,
        metrics=running.metrics,
        ready=running.ready,
        version=importlib.metadata.version("flopwatch"),
        mount=mount,
        schedulers=running.schedulers,
        reports=running.reports,
        costs=running.costs,
        declared=_on_declared(running.accounting, clock),
        alert_desk=running.periodic.engine.desk,
        knows_alert=running.periodic.engine.knows,
        alert_source=running.periodic.engine,
        rehearse=rehearsing(running.exported, running.settings.alerts, running.reports.past),
        past=running.reports.past,
    )


def _on_declared(accounting: Accounting, clock: Callable[[], float]) -> Callable[[JobRecord], None]:
    """What follows from a declaration: figures of the job's whole time are made anew."""

    def declared(job: JobRecord) -> None:
        start = job.start_seconds
        if start is not None:
            accounting.again(start, max(start, job.end_seconds or clock()))

    return declared
