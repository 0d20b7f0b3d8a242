"""Rules, single alerts, and what silences would fit, over HTTP; amending silences and giving alerts back."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.integration.alerting.test_engine import Site, job
from tests.integration.collector.static_query import StaticQuery

from flopwatch_collector.alerting.rehearsal import rehearsing
from flopwatch_collector.api import alerts, errors
from flopwatch_collector.api.access import Access, needs
from flopwatch_collector.api.tokens import Tokens
from flopwatch_collector.config_alerts import ALERT_RULES, read_alerts

SETTINGS = read_alerts(
    {
        "alerts": {
            "observe_days": 0,
            "rules": {"MfuLow": {"for": "10m", "clear_level": 1.2}, "NoData": {"enabled": False}},
        }
    },
    {},
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path, "http://127.0.0.1:9/x", SETTINGS)
    yield made
    made.close()


@pytest.fixture
def tokens(site: Site) -> Tokens:
    return Tokens(site.control)


@pytest.fixture
def client(site: Site, tokens: Tokens) -> TestClient:
    access = Access(tokens)
    app = FastAPI()
    errors.install(app)
    app.include_router(
        alerts.router(
            alerts.AlertParts(
                desk=site.engine.desk,
                read=needs(access, "read"),
                operate=needs(access, "operate"),
                knows=site.engine.knows,
                source=site.engine,
                rehearse=rehearsing(StaticQuery(), SETTINGS),
            )
        )
    )
    return TestClient(app)


def firing(site: Site) -> str:
    """The fingerprint of an MfuLow that fires."""
    own = job(site.now, 0.31)
    named = replace(own, row=replace(own.row, account="nlp"))
    while not site.engine.active() or site.engine.active()[0].state != "firing":
        site.evaluate(replace(named, row=replace(named.row, mfu=job(site.now, 0.31).row.mfu)))
    return site.engine.active()[0].fingerprint


def test_every_rule_is_told_with_what_holds_here(client: TestClient, site: Site) -> None:
    firing(site)

    rules = client.get("/api/v1/alerts/rules?seconds=3600").json()["rules"]

    told = {one["rule"]: one for one in rules}
    assert tuple(told) == ALERT_RULES
    assert (told["MfuLow"]["firing"], told["MfuLow"]["fired"]) == (1, 1)
    terms = told["MfuLow"]["terms"]
    assert (terms["for_seconds"], terms["keep_seconds"]) == (600.0, 1800.0)
    assert (terms["level"], terms["clear_level"], terms["level_unit"], terms["below"]) == (
        None,
        1.2,
        "ratio",
        True,
    )
    assert told["NoData"]["enabled"] is False
    assert told["MfuDrop"]["terms"]["clear_level"] == 0.95
    assert told["RestartStorm"]["terms"]["level_unit"] == "count"
    assert told["HangSuspect"]["terms"]["for_seconds"] is None
    assert told["JobHang"]["terms"]["level"] is None
    assert told["GpuLost"]["terms"]["subject"] == "gpu"


def test_one_alert_is_told_with_its_words_and_its_past(client: TestClient, site: Site) -> None:
    key = firing(site)
    assert client.post(f"/api/v1/alerts/{key}/comments", json={"comment": "a slow disk"}).status_code == 200

    found = client.get(f"/api/v1/alerts/{key}").json()

    assert found["now"]["state"] == "firing"
    assert found["now"]["context"] == {"team": "nlp", "job": "llama"}
    assert [one["text"] for one in found["now"]["comments"]] == ["a slow disk"]
    assert found["earlier"] == []
    assert client.get(f"/api/v1/alerts/{'0' * 64}").status_code == 404


def test_what_matchers_would_silence_is_told_before_they_do(client: TestClient, site: Site) -> None:
    key = firing(site)

    def fitting(**matcher: Any) -> list[str]:
        answer = client.post("/api/v1/alerts/fitting", json={"matchers": [matcher]})
        return list(answer.json()["fingerprints"])

    assert fitting(name="team", value="nl.", isRegex=True) == [key]
    assert fitting(name="alertname", value="MfuLow") == [key]
    assert fitting(name="alertname", value="JobHang") == []
    assert client.get("/api/v1/alerts/silences").json()["silences"] == []


def test_a_silence_is_changed_and_keeps_who_made_it(client: TestClient, site: Site) -> None:
    first = {"matchers": [{"name": "node", "value": "n1"}], "end_seconds": 4e9, "comment": "disk"}
    short = {**first, "end_seconds": _soon(3_600.0), "created_by": "ann"}
    made = client.post("/api/v1/alerts/silences", json=short).json()

    longer = {**short, "end_seconds": _soon(7_200.0), "comment": "two disks", "created_by": "bo"}
    changed = client.put(f"/api/v1/alerts/silences/{made['silence_id']}", json=longer).json()

    assert (changed["silence_id"], changed["created_by"]) == (made["silence_id"], "ann")
    assert (changed["end_seconds"], changed["comment"]) == (longer["end_seconds"], "two disks")
    assert [(one.by, one.action) for one in site.engine.desk.audit()] == [("bo", "amend"), ("ann", "silence")]
    client.delete(f"/api/v1/alerts/silences/{made['silence_id']}")
    assert client.put(f"/api/v1/alerts/silences/{made['silence_id']}", json=longer).status_code == 404


def _soon(seconds: float) -> float:
    return round(time.time()) + seconds


def test_a_taken_alert_is_given_back(client: TestClient, site: Site) -> None:
    key = firing(site)
    assert client.delete(f"/api/v1/alerts/{key}/ack").status_code == 404
    client.post(f"/api/v1/alerts/{key}/ack", json={"comment": "on it", "by": "ann"})

    given = client.delete(f"/api/v1/alerts/{key}/ack")

    assert given.json()["by"] == "ann"
    assert site.engine.desk.words().acknowledgements == {}
    assert [one.action for one in site.engine.desk.audit()] == ["release", "ack"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"rules": {"MfuLow": {"for": "20m", "clear_level": 1.05}}}, 200),
        ({"seconds": 3_600, "rules": {"MfuDrop": {"level": 0.8, "severity": "critical"}}}, 200),
        ({"rules": {"NoSuchRule": {"for": "20m"}}}, 422),
        ({"rules": {"JobHang": {"level": 3}}}, 422),
        ({"rules": {"MfuLow": {"for": "soon"}}}, 422),
        ({"rules": {"MfuLow": {"clear_level": 0.5}}}, 422),
        ({"seconds": 0}, 422),
        ({"rulez": {}}, 422),
    ],
)
def test_rules_are_tried_on_the_past_without_being_changed(
    client: TestClient, site: Site, body: dict[str, Any], status: int
) -> None:
    answer = client.post("/api/v1/alerts/rehearsal", json=body)

    assert answer.status_code == status
    assert ("episodes" in answer.json()) == (status == 200)
    assert site.engine.rules(0.0)[0].for_seconds == 600.0


def test_who_may_only_read_sees_rules_and_tries_none(client: TestClient, tokens: Tokens) -> None:
    secrets = {role: tokens.create(role, role)[1] for role in ("viewer", "operator")}  # type: ignore[arg-type]

    def ask(role: str, method: str, path: str, body: Any = None) -> int:
        headers = {"Authorization": f"Bearer {secrets[role]}"}
        return client.request(method, f"/api/v1/alerts/{path}", json=body, headers=headers).status_code

    assert ask("viewer", "GET", "rules") == 200
    assert ask("viewer", "GET", "rehearsal?seconds=3600") == 200
    assert ask("viewer", "POST", "rehearsal", {}) == 403
    assert ask("operator", "POST", "rehearsal", {}) == 200
    assert client.get("/api/v1/alerts/rules").status_code == 401
