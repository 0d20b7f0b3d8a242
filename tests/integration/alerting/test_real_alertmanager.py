"""Our states in a real Alertmanager: they arrive, are grouped, resolve, and are silenced there with amtool."""

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.alerting.test_engine import job
from tests.integration.prometheus.alertmanagers import alertmanager_for
from tests.integration.prometheus.servers import eventually, program

from flopwatch_collector.alerting.delivery.alertmanager import Alertmanager
from flopwatch_collector.alerting.delivery.channels import Wiring
from flopwatch_collector.alerting.delivery.notifier import Notifier
from flopwatch_collector.alerting.engine import AlertEngine
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import Facts
from flopwatch_collector.store.control_sqlite import SqliteControl


@pytest.fixture
def alertmanager(tmp_path: Path, receiver: Any) -> Iterator[str]:
    """The address of a running Alertmanager whose messages come to ``receiver``."""
    with alertmanager_for(receiver.url, tmp_path) as address:
        yield f"http://{address}"


class Site:
    """An engine that tells one Alertmanager; evaluated in steps of 15 s that end at the present."""

    def __init__(self, folder: Path, url: str) -> None:
        self.control = SqliteControl(folder / "control.db")
        self.url = url
        self.now = time.time() - 900.0
        self.open()

    def open(self) -> None:
        receiver = Alertmanager(name="am", url=self.url)
        notifier = Notifier([], self.control, wiring=Wiring(alertmanagers=(receiver,)))
        settings = AlertSettings(mfu_low_for_seconds=60.0, group_wait_seconds=0.0)
        self.engine = AlertEngine(self.control, notifier, settings)
        self.engine.start()

    def run(self, seconds: float, mfu: float, jobs: int = 2) -> None:
        end = self.now + seconds
        while self.now < end:
            made = [job(self.now, mfu) for _ in range(jobs)]
            rows = [
                replace(one, row=replace(one.row, job_id=f"j{place}", name=f"llama-{place}"))
                for place, one in enumerate(made)
            ]
            self.engine.evaluate(Facts(now=self.now, jobs=tuple(rows), nodes=(), verdict=None, cluster="a"))
            self.now += 15.0

    def close(self) -> None:
        self.engine.stop()
        self.control.close()


@pytest.fixture
def site(tmp_path: Path, alertmanager: str) -> Iterator[Site]:
    made = Site(tmp_path, alertmanager)
    yield made
    made.close()


def active(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{url}/api/v2/alerts", timeout=5) as answer:
        return list(json.load(answer))


def test_alerts_arrive_in_a_group_and_resolve_also_across_a_restart(
    receiver: Any, site: Site, alertmanager: str
) -> None:
    site.run(150, 0.31)
    first = receiver.wait_for(1, 30)[0].body
    (group,) = eventually(lambda: [one for one in [active(alertmanager)] if len(one) == 2])
    site.engine.stop()
    site.open()
    site.run(120, 0.50)
    resolved = eventually(lambda: [one for one in receiver.received if one.body["status"] == "resolved"])

    assert first["groupLabels"] == {"alertname": "MfuLow", "cluster": "a"}
    assert {one["labels"]["job_id"] for one in group} == {"j0", "j1"}
    assert {one["labels"]["severity"] for one in group} == {"warning"}
    assert group[0]["annotations"]["summary"].endswith("below target 45.0 %")
    assert {one["labels"]["job_id"] for one in resolved[0].body["alerts"]} == {"j0", "j1"}
    assert eventually(lambda: active(alertmanager) == [])


def test_what_is_silenced_in_alertmanager_is_not_sent_by_it(
    receiver: Any, site: Site, alertmanager: str
) -> None:
    amtool = [program("amtool"), f"--alertmanager.url={alertmanager}", "silence", "add"]
    subprocess.run(
        [*amtool, "--author=ann", "--comment=tuning", "--duration=1h", "job_id=j0"],
        check=True, timeout=30, capture_output=True,
    )  # fmt: skip

    site.run(150, 0.31)
    messages = receiver.wait_for(1, 30)
    found = {one["labels"]["job_id"]: one["status"]["state"] for one in active(alertmanager)}

    assert found == {"j0": "suppressed", "j1": "active"}
    assert {alert["labels"]["job_id"] for one in messages for alert in one.body["alerts"]} == {"j1"}


def test_an_alertmanager_that_was_away_is_told_everything_that_fires(tmp_path: Path, receiver: Any) -> None:
    """The receiver stands for an Alertmanager that fails twice, then works."""
    receiver.statuses = [503, 429]
    site = Site(tmp_path, receiver.url.rpartition("/hooks")[0])
    site.engine._notifier._republishers[0].retry_seconds = 0.05
    try:
        site.engine.stop()
        site.engine.start()
        site.run(150, 0.31)
        third = receiver.wait_for(3)[2]
    finally:
        site.close()

    assert third.path == "/api/v2/alerts"
    (first, *_) = [one for one in third.body if one["labels"]["job_id"] == "j0"]
    assert first["labels"]["alertname"] == "MfuLow"
    assert {"startsAt", "endsAt", "annotations", "generatorURL"} <= set(first)
