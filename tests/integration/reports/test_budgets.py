"""Budgets over HTTP, against the ledger."""

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.integration.views.site import Site

from flopwatch_collector.config_budgets import BudgetSettings

OpenSite = Callable[..., Site]
BUDGETS = (
    BudgetSettings(name="nlp", account="nlp", amount=5.0, period="day"),
    BudgetSettings(name="quota", user="ann", gpu_hours=1_000.0),
    BudgetSettings(name="vision", account="vision", amount=1.0),
    BudgetSettings(name="all", gpu_hours=2.5, period="week"),
    BudgetSettings(name="llamas", job="llama-*", gpu_hours=100.0),
)


@pytest.fixture
def site(open_site: OpenSite) -> Site:
    """An hour of eight GPUs in four batches: 8 GPU-hours less the 30 s before the first sample."""
    made = open_site(budgets=BUDGETS)
    for _ in range(4):
        made.train(900.0)
    return made


def test_budgets_are_what_the_ledger_says(site: Site) -> None:
    answer: dict[str, Any] = TestClient(site.running.app).get("/api/v1/budgets").json()
    found = {each["name"]: each for each in answer["budgets"]}
    held = 8 * 3_570 / 3_600

    assert found["nlp"]["used"] == pytest.approx(held * 2.0)
    assert (found["nlp"]["state"], found["nlp"]["reason"]) == ("critical", "used")
    assert (found["quota"]["used"], found["quota"]["unit"]) == (pytest.approx(held), "gpu_hours")
    assert (found["vision"]["used"], found["vision"]["state"]) == (0.0, "ok")
    assert found["all"]["used_ratio"] == pytest.approx(held / 2.5)
    assert found["llamas"]["used"] == pytest.approx(held)
    assert found["llamas"]["forecast"] is None, "an hour is too little for a pace"
    assert {each.name: each.state for each in site.running.reports.facts(site.now).budgets} == {
        name: each["state"] for name, each in found.items()
    }


def test_a_report_has_the_budgets_of_the_periods_that_its_end_lies_in(site: Site) -> None:
    client = TestClient(site.running.app)
    report = client.get("/api/v1/report", params={"last": "24h", "format": "json"}).json()
    page = client.get("/api/v1/report", params={"last": "24h", "format": "html"}).text

    held = 8 * 3_570 / 3_600
    found = {each["name"]: each for each in report["budgets"]}
    assert found["all"]["used"] == pytest.approx(held, abs=0.01)
    assert found["nlp"]["state"] == "critical"
    assert "Budgets and quotas" in page
    assert "llama-*" in page


def test_a_job_beyond_its_declared_gpu_hours_is_named(site: Site) -> None:
    client = TestClient(site.running.app)
    (job,) = client.get("/api/v1/jobs").json()["jobs"]
    path = f"/api/v1/jobs/{job['job_id']}/facts"

    assert client.put(path, json={"declared_gpu_hours": 7.0}).status_code == 200
    assert client.get("/api/v1/budgets").json()["overruns"] == []
    client.put(path, json={"declared_gpu_hours": 4.0})
    (over,) = client.get("/api/v1/budgets").json()["overruns"]
    assert (over["job_id"], over["ratio"]) == (job["job_id"], pytest.approx(8 * 3_570 / 3_600 / 4.0))
