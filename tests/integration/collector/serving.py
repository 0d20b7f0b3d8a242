"""A collector's front on a real port: real store, real control state, real uvicorn; answers that never change."""

import contextlib
import gzip
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from tests.integration.collector.static_query import STATUS, StaticQuery

from flopwatch import wire
from flopwatch.encoding import encode
from flopwatch_collector.alerting.desk import AlertDesk
from flopwatch_collector.alerting.rehearsal import rehearsing
from flopwatch_collector.api import application
from flopwatch_collector.api.doors import Doors, doors_of
from flopwatch_collector.api.metrics import Metrics, Readout
from flopwatch_collector.api.tokens import Tokens
from flopwatch_collector.config import CollectorSettings
from flopwatch_collector.config_alerts import AlertSettings
from flopwatch_collector.config_schedulers import SiteSettings
from flopwatch_collector.config_sign_in import SignInSettings
from flopwatch_collector.ingest.accept import Ingest
from flopwatch_collector.ingest.directory import Directory
from flopwatch_collector.recorded_run import NoAlerts
from flopwatch_collector.schedulers import assembling
from flopwatch_collector.store.control_sqlite import SqliteControl
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings


@dataclass(kw_only=True)
class Front:
    """The parts of a collector without its figures."""

    app: FastAPI
    store: EmbeddedStore
    control: SqliteControl
    directory: Directory
    ingest: Ingest
    tokens: Tokens
    doors: Doors
    query: StaticQuery
    is_ready: bool = True


@contextlib.contextmanager
def front(
    folder: Path,
    settings: CollectorSettings | None = None,
    *,
    simulated: bool = False,
    mount: application.Mount | None = None,
    sign_in: SignInSettings | None = None,
) -> Iterator[Front]:
    """The parts on a folder, closed in order at the end."""
    store = EmbeddedStore(StoreSettings(folder=folder, flush_seconds=0.01))
    control = SqliteControl(folder / "control.sqlite")
    directory = Directory(control, time.time, simulated=simulated, latest=store.latest_gpus)
    metrics = Metrics()
    ingest = Ingest(directory, control, store, written=lambda written: metrics.durable_after(written.seconds))
    metrics.read(Readout(ingest.stats, store.stats, directory.state, lambda: {"accounting": 1.5}))
    tokens = Tokens(control)
    made = Front(
        app=FastAPI(),
        store=store,
        control=control,
        directory=directory,
        ingest=ingest,
        tokens=tokens,
        doors=doors_of(control, tokens, sign_in),
        query=StaticQuery(replace(STATUS, simulated=simulated)),
    )
    made.app = application.build(
        application.Parts(
            settings=settings or CollectorSettings(),
            doors=made.doors,
            ingest=ingest,
            fleet=directory,
            desk=directory,
            query=made.query,
            metrics=metrics,
            ready=lambda: made.is_ready,
            version="0",
            mount=mount,
            schedulers=_schedulers(made),
            alert_desk=AlertDesk(control),
            alert_source=NoAlerts(),
            rehearse=rehearsing(made.query, AlertSettings()),
        )
    )
    try:
        yield made
    finally:
        ingest.close()
        store.close()
        control.close()


def _schedulers(made: Front) -> assembling.Assembled:
    return assembling.assemble(
        assembling.Parts(
            site=SiteSettings(),
            time_zone="UTC",
            state=made.directory.state,
            accept=made.ingest.accept_batch,
            store=made.store,
            control=made.control,
            clock=time.time,
        )
    )


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(kw_only=True)
class Client:
    """Asks one server over a kept connection."""

    port: int
    token: str | None = None

    def __post_init__(self) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        sent = dict(headers or {})
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        self._connection.request(method, path, body, sent)
        response = self._connection.getresponse()
        names = {name.lower(): value for name, value in response.getheaders()}
        return Answer(status=response.status, headers=names, body=response.read())

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers=headers)

    def push(self, batch: wire.Batch | bytes, headers: dict[str, str] | None = None) -> Answer:
        """Send a batch as an agent does: gzip, with the time of sending."""
        raw = batch if isinstance(batch, bytes) else encode(batch)
        known = {
            "Content-Type": "application/json",
            "Content-Encoding": "gzip",
            wire.SENT_AT_HEADER: repr(time.time()),
        }
        return self.ask("POST", "/api/v1/ingest", gzip.compress(raw, 1), {**known, **(headers or {})})

    def close(self) -> None:
        self._connection.close()


@contextlib.contextmanager
def serving(app: FastAPI) -> Iterator[Client]:
    """The application under uvicorn on a free port of loopback."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, access_log=False, log_config=None, timeout_graceful_shutdown=5)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    client = Client(port=listener.getsockname()[1])
    try:
        while not server.started:
            time.sleep(0.005)
        yield client
    finally:
        client.close()
        server.should_exit = True
        thread.join(timeout=20)
        listener.close()
