"""The figures as JSON and CSV."""

import csv
import io
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.collector.batches import batch, slurm
from tests.integration.collector.serving import Client, Front, front, serving

from flopwatch import query


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Front]:
    with front(tmp_path) as made:
        yield made


@pytest.fixture
def client(collector: Front) -> Iterator[Client]:
    with serving(collector.app) as asked:
        yield asked


def rows_of(body: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(body.decode())))


def test_status_is_the_ports_answer_as_json(client: Client) -> None:
    answer = client.get("/api/v1/query/status")

    assert answer.status == 200
    assert answer.json()["clusters"] == [{"name": "c1", "nodes": 1, "gpus": 8, "gpus_reporting": 8}]
    assert answer.json()["history_progress_ratio"] is None


def test_range_cluster_and_points_are_passed_on(collector: Front, client: Client) -> None:
    client.get("/api/v1/query/fleet?seconds=3600&cluster=c1&points=50")
    client.get("/api/v1/query/alerts")

    assert collector.query.asked == [
        query.Range(seconds=3600.0, cluster="c1", points=50),
        query.Range(seconds=86_400.0, cluster=None, points=600),
    ]


def test_a_job_is_found_by_its_id_and_another_is_404(client: Client) -> None:
    found = client.get("/api/v1/query/jobs/77-abcdef01")
    missing = client.get("/api/v1/query/jobs/other")

    assert found.json()["row"]["mfu"]["value_ratio"] == 0.41
    assert (missing.status, missing.json()["error"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ("seconds=0", "seconds"),
        ("seconds=soon", "seconds"),
        ("points=0", "points"),
        ("points=1.5", "points"),
        ("cluster=a&cluster=b", "cluster"),
    ],
)
def test_a_wrong_parameter_is_named(client: Client, parameters: str, field: str) -> None:
    answer = client.get(f"/api/v1/query/fleet?{parameters}")

    assert answer.status == 422
    assert answer.json()["fields"][0]["field"] == field


def test_ledger_export_is_in_seconds_and_adds_up_to_the_capacity(client: Client) -> None:
    rows = rows_of(client.get("/api/v1/export/ledger.csv").body)

    assert sum(float(row["gpu_seconds"]) for row in rows) == 8_000.0
    assert [(row["bucket"], row["money"]) for row in rows if row["class"] == "stalled"] == [
        ("HANG", "0.75"),
        ("LOST:preempted", "0.25"),
    ]


def test_day_export_has_a_row_a_day(client: Client) -> None:
    (row,) = rows_of(client.get("/api/v1/export/days.csv").body)

    assert (row["day"], row["billable_ratio"], row["capacity_gpu_seconds"]) == ("2026-11-30", "0.8", "8000.0")


def test_job_export_never_has_an_mfu_without_its_basis_nor_a_formula(client: Client) -> None:
    answer = client.get("/api/v1/export/jobs.csv")
    (row,) = rows_of(answer.body)

    assert (row["mfu_ratio"], row["mfu_basis"], row["mfu_convention"]) == ("0.41", "steps+shape", "causal")
    assert row["name"].startswith("'=")
    assert (row["account"], row["simulated"]) == ("", "")
    assert answer.headers["content-disposition"] == 'attachment; filename="flopwatch-jobs.csv"'


def test_exports_of_a_simulated_fleet_say_so(tmp_path: Path) -> None:
    with front(tmp_path, simulated=True) as made, serving(made.app) as asked:
        for name in ("ledger", "days", "jobs"):
            answer = asked.get(f"/api/v1/export/{name}.csv")

            assert {row["simulated"] for row in rows_of(answer.body)} == {"SIMULATED"}
            assert "simulated" in answer.headers["content-disposition"]


def test_the_plain_list_of_jobs_can_be_narrowed(client: Client) -> None:
    now = time.time()
    client.push(batch("n1", now, jobs=(slurm("1", "a", end_time_seconds=now - 1), slurm("2", "b"))))
    client.push(batch("n2", now, cluster="c2", jobs=(slurm("3", "c"),)))

    listed = {job["scheduler_job_id"]: job for job in client.get("/api/v1/jobs").json()["jobs"]}
    running = client.get("/api/v1/jobs?running=true&cluster=c1").json()["jobs"]

    assert set(listed) == {"1", "2", "3"}
    assert listed["3"]["nodes"] == ["n2"]
    assert [job["scheduler_job_id"] for job in running] == ["2"]


def test_inputs_of_the_economy_are_changed_by_name_and_refused_by_name(client: Client) -> None:
    good = client.get("/api/v1/query/economy?overrides=own.capex_per_gpu%3D40000%2C%20own.life_years%3D4")
    unknown = client.get("/api/v1/query/economy?overrides=own.colour%3D1")
    broken = client.get("/api/v1/query/economy?overrides=own.pue")

    assert (good.status, good.json()["configured"]) == (200, False)
    assert (unknown.status, unknown.json()["fields"][0]["field"]) == (422, "overrides")
    assert broken.json()["fields"][0] == {
        "field": "overrides", "value": "own.pue", "allowed": "name=number, separated by commas"
    }  # fmt: skip


def test_nodes_one_node_and_one_gpu_are_answered_and_others_are_404(client: Client) -> None:
    assert client.get("/api/v1/query/nodes").json()["gpus"]["values"]["power_watts"] == [None]
    assert client.get("/api/v1/query/nodes/n1").json()["row"]["problems"] == ["throttled"]
    assert client.get("/api/v1/query/gpus/GPU-1").json()["row"]["throttles"] == ["hw_thermal"]
    for path in ("nodes/n9", "gpus/GPU-9"):
        missing = client.get(f"/api/v1/query/{path}")
        assert (missing.status, missing.json()["error"]) == (404, "not_found")


def test_every_gpu_comes_as_csv_and_unknown_is_empty(client: Client) -> None:
    (row,) = rows_of(client.get("/api/v1/export/gpus.csv").body)

    assert (row["node"], row["rack"], row["gpu_index"], row["bucket"], row["health"]) == (
        "n1",
        "r1",
        "0",
        "STEP",
        "warning",
    )
    assert (row["kernel_active_ratio"], row["power_watts"], row["mfu_ratio"]) == ("0.9", "", "")
    assert row["job"] == '\'=HYPERLINK("http://x")'
