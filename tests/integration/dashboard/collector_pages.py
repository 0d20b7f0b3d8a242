"""The pages of a real collector with its real ways in, without periodic work: alerts stay as they are put in."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from tests.fixtures.listening import Server

from flopwatch.query import Query
from flopwatch_collector import app, config
from flopwatch_collector.alerting.engine import ALERT_KIND
from flopwatch_collector.alerting.state import AlertRecord, fingerprint
from flopwatch_collector.store.control_sqlite import SqliteControl
from flopwatch_dashboard.app import mount

OWN = {"gpus": 64, "capex_per_gpu": 40_000, "life_years": 4, "electricity_per_kwh": 0.1,
       "idle_kw_per_gpu": 0.3, "busy_kw_per_gpu": 1.0}  # fmt: skip
TABLES: dict[str, Any] = {
    "costs": {"currency": "EUR", "own": OWN, "cloud": {"price_per_gpu_hour": 3.0}},
    "alerts": {"observe_days": 0},
}


@dataclass(frozen=True, kw_only=True)
class Site:
    """A collector that listens."""

    url: str
    running: app.Running

    def token(self, role: Any, name: str, teams: tuple[str, ...] = ()) -> str:
        """The secret of a new token."""
        return self.running.tokens.create(role, name, teams)[1]


def alert(rule: str, severity: Any, summary: str, team: str | None = None, **labels: str) -> AlertRecord:
    """An alert that fires for an hour."""
    since = time.time() - 3_600
    return AlertRecord(
        fingerprint=fingerprint(rule, labels), rule=rule, severity=severity, labels=labels, state="firing",
        event_seconds=since, active_since_seconds=since, fired_seconds=since, summary=summary,
        context={} if team is None else {"team": team, "job": labels.get("job_id", "")},
    )  # fmt: skip


ALERTS = (
    alert("NodeDown", "critical", "gpu-n07: all 8 GPUs are faulty", cluster="train-a", node="gpu-n07"),
    alert("GpuErrors", "warning", "gpu-n11: new memory errors", cluster="train-a", node="gpu-n11"),
    alert(
        "CkptSlow", "info", "llama-70b: checkpoints take long", "nlp", cluster="train-a", job_id="llama-70b"
    ),
    alert("StepSpikes", "info", "vit-g: 9 % of its steps", "vision", cluster="train-a", job_id="vit-g"),
)


@contextlib.contextmanager
def site(folder: Path, tables: dict[str, Any] | None = None) -> Iterator[Site]:
    """A collector on a folder, with four alerts, on a free port of loopback."""
    control = SqliteControl(folder / config.CONTROL_FILE)
    control.save(ALERT_KIND, {one.fingerprint: one for one in ALERTS})
    control.close()
    settings = config.read({**TABLES, **(tables or {}), "collector": {"data_dir": str(folder)}}, {})

    def pages(api: FastAPI, query: Query, prefix: str) -> None:
        mount(api, query, prefix=prefix)

    running = app.build(settings, environ={}, mount=pages)
    server = Server(running.app).start()
    try:
        yield Site(url=server.url, running=running)
    finally:
        server.stop()
        running.stop()
