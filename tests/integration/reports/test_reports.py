"""Reports of a real collector, over its HTTP API, against the pages' own answers."""

import io
import json
from pathlib import Path

import duckdb
import msgspec
import pandas
import pytest
from starlette.testclient import TestClient
from tests.integration.views.site import MIDNIGHT, Site

from flopwatch.answers.report import REPORT_BY
from flopwatch.query import Fleet, Range
from flopwatch_collector.config import CostSettings
from flopwatch_collector.reports import focus
from flopwatch_collector.reports.making import Question
from flopwatch_collector.reports.tables import LINE_COLUMNS

NODE_SECONDS = 8 * (7_200 - 30)
"""GPU-seconds of a node: eight GPUs for two hours, known from the first sample on."""
HOURS = 2 * NODE_SECONDS / 3_600
COST = HOURS * 2.0


@pytest.fixture(scope="module")
def client(trained: Site) -> TestClient:
    return TestClient(trained.running.app)


def ask(client: TestClient, **parameters: str) -> bytes:
    answer = client.get("/api/v1/report", params={"from": str(MIDNIGHT), **parameters})
    assert answer.status_code == 200, answer.text
    return answer.content


def test_the_ledger_of_a_report_is_the_one_of_the_fleet_page(trained: Site, client: TestClient) -> None:
    report = json.loads(ask(client))
    page: Fleet = trained.query.fleet(Range())

    ledger = msgspec.to_builtins(page.ledger_today)
    assert report["ledger"] == json.loads(msgspec.json.encode(ledger))
    assert report["ledger"]["capacity_gpu_milliseconds"] == 2 * NODE_SECONDS * 1_000
    assert report["verdict"] == json.loads(msgspec.json.encode(page.verdict))
    assert [day["billable_ratio"] for day in report["days"]] == [page.utilisation.value]


def test_jobs_of_a_report_waste_what_the_jobs_page_says(trained: Site, client: TestClient) -> None:
    rows = {row.job_id: row for row in trained.query.jobs(Range(seconds=trained.now - MIDNIGHT)).rows}
    jobs = json.loads(ask(client))["jobs"]

    assert jobs
    for job in jobs:
        assert job["waste_gpu_milliseconds"] == rows[job["job_id"]].waste_gpu_milliseconds
        assert job["mfu"]["value_ratio"] == pytest.approx(0.40, abs=0.005)


def test_the_goodput_of_the_fleet_is_the_one_of_a_report(client: TestClient) -> None:
    report = json.loads(ask(client))
    answer = client.get("/api/v1/goodput", params={"from": str(MIDNIGHT)})
    nowhere = client.get("/api/v1/goodput", params={"from": str(MIDNIGHT), "cluster": "none"})

    assert answer.json()["goodput"] == report["goodput"]
    assert answer.json()["coverage_ratio"] == report["goodput_coverage_ratio"]
    assert 0.8 < report["goodput"]["ettr_ratio"] < 1.0
    assert (nowhere.json()["goodput"], nowhere.json()["coverage_ratio"]) == (None, None)
    assert client.get("/api/v1/goodput", params={"last": "soon"}).status_code == 422


@pytest.mark.parametrize("by", REPORT_BY)
def test_lines_add_up_to_the_ledger_whoever_they_are_charged_to(client: TestClient, by: str) -> None:
    report = json.loads(ask(client, by=by))
    lines, classes = report["lines"], {each["name"]: each for each in report["ledger"]["classes"]}

    assert sum(line["gpu_milliseconds"] for line in lines) == report["ledger"]["capacity_gpu_milliseconds"]
    for name, amount in classes.items():
        assert sum(line["by_class"][name] for line in lines) == amount["gpu_milliseconds"]
    assert sum(line["waste_gpu_milliseconds"] for line in lines) == report["ledger"]["waste_gpu_milliseconds"]
    assert sum(line["cost"] for line in lines) == pytest.approx(COST)


def test_leases_are_billed_and_free_capacity_is_not(client: TestClient) -> None:
    lines = {line["key"]: line for line in json.loads(ask(client, by="user"))["lines"]}

    # ann held eight GPUs for two hours at 2.00; nobody held the other node.
    assert lines["ann"]["billed"] == pytest.approx(COST / 2)
    assert lines["ann"]["credit"] == 0.0
    assert lines[None]["billed"] == 0.0
    assert not lines[None]["leased_somewhere"]
    assert lines[None]["gpu_milliseconds"] == NODE_SECONDS * 1_000


def test_the_csv_opens_in_pandas_and_adds_up_to_the_api(client: TestClient) -> None:
    report = json.loads(ask(client))
    table = pandas.read_csv(io.BytesIO(ask(client, format="csv")))

    assert list(table.columns) == list(LINE_COLUMNS)
    assert table["gpu_seconds"].sum() * 1000 == report["ledger"]["capacity_gpu_milliseconds"]
    for amount in report["ledger"]["classes"]:
        assert table[f"{amount['name']}_gpu_seconds"].sum() * 1000 == amount["gpu_milliseconds"]
    assert table["cost"].sum() == pytest.approx(sum(each["money"] for each in report["ledger"]["classes"]))
    assert table["waste_cost"].sum() == pytest.approx(report["ledger"]["waste_money"])


def test_the_parquet_holds_the_same_rows_with_their_types(client: TestClient, tmp_path: Path) -> None:
    file = tmp_path / "report.parquet"
    file.write_bytes(ask(client, format="parquet"))
    table = duckdb.read_parquet(str(file)).select("key", "leased", "gpu_seconds", "net")
    rows = table.fetchall()

    assert rows == [("nlp", True, NODE_SECONDS, pytest.approx(COST / 2)), (None, False, NODE_SECONDS, 0.0)]


def test_the_focus_export_keeps_to_the_specification_and_to_the_ledger(
    trained: Site, client: TestClient
) -> None:
    rows = trained.running.reports.focus_rows(
        Question(start_seconds=MIDNIGHT, end_seconds=trained.now, by="job")
    )
    table = pandas.read_csv(io.BytesIO(ask(client, format="focus")))

    assert list(focus.problems(rows)) == []
    assert list(table.columns) == list(focus.COLUMNS)
    assert table["EffectiveCost"].sum() == pytest.approx(COST)
    usage = table[table["ResourceType"] == "Training job"].iloc[0]
    assert (usage["ConsumedQuantity"], usage["ListUnitPrice"], usage["SubAccountId"]) == (
        HOURS / 2,
        pytest.approx(2.0),
        "nlp",
    )
    assert (usage["BillingPeriodStart"], usage["BillingPeriodEnd"]) == (
        "2026-03-01T00:00:00Z",
        "2026-04-01T00:00:00Z",
    )
    assert json.loads(usage["Tags"]) == {"user": "ann", "team": "nlp", "job_kind": "pretrain"}


def test_focus_is_refused_where_a_cost_is_not_known(open_site) -> None:  # type: ignore[no-untyped-def]
    site = open_site(costs=CostSettings())
    site.train(900.0)
    answer = TestClient(site.running.app).get("/api/v1/report", params={"format": "focus", "last": "1h"})

    assert answer.status_code == 422
    assert "costs.price_per_gpu_hour" in answer.json()["message"]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_html_is_one_file_that_fetches_nothing(client: TestClient, language: str) -> None:
    page = ask(client, format="html", language=language).decode()

    assert "<script" not in page
    assert "http://" not in page
    assert "https://" not in page
    assert "default-src 'none'" in page
    assert ("浪费" in page) == (language == "zh")
    assert "llama-8b" in page


def test_a_wrong_period_is_refused_with_what_is_allowed(client: TestClient) -> None:
    answer = client.get("/api/v1/report", params={"last": "7 moons"})

    assert answer.status_code == 422
    assert answer.json()["fields"][0]["field"] == "last"


def test_a_running_job_has_a_report_that_is_not_final(client: TestClient, trained: Site) -> None:
    (row,) = trained.query.jobs(Range()).rows
    report = client.get(f"/api/v1/reports/jobs/{row.job_id}").json()

    assert (report["name"], report["final"], report["gpus"]) == ("llama-8b", False, 8)
    assert report["ledger"]["capacity_gpu_milliseconds"] == NODE_SECONDS * 1_000
    assert report["cost"] == pytest.approx(COST / 2)
    assert client.get("/api/v1/reports/jobs/none").status_code == 404
    assert "llama-8b" in client.get(f"/api/v1/reports/jobs/{row.job_id}?format=html").text


def test_the_report_of_an_ended_job_is_kept(open_site) -> None:  # type: ignore[no-untyped-def]
    site = open_site()
    site.train(1800.0)
    (row,) = site.query.jobs(Range()).rows
    site.push("n1", site.now, 30.0)
    ended = site.now
    for _ in range(3):
        site.push("n1", site.now, 900.0)
        site.push("n2", site.now - 900.0, 900.0)
        site.settle()
    assert site.running.directory.state().jobs[1].end_seconds is not None, ended
    reports = site.running.reports

    assert reports.jobs.keep_finished() == 1
    assert reports.jobs.keep_finished() == 0
    kept = reports.job(row.job_id)
    assert kept is not None
    assert kept.final
    site.restart()
    assert site.running.reports.job(row.job_id) == kept
