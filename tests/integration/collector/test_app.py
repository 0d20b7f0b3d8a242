"""The collector as it is built: pushes in, figures out."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.collector.batches import batch, device, sample, slurm, step
from tests.integration.collector.serving import Client, serving

from flopwatch import wire
from flopwatch_collector import app
from flopwatch_collector.config import CollectorSettings, CostSettings, Settings
from flopwatch_collector.store.port import StoreLocked


def built(folder: Path) -> app.Running:
    settings = Settings(
        collector=CollectorSettings(data_dir=folder), costs=CostSettings(price_per_gpu_hour=2.0)
    )
    return app.build(settings, environ={})


@contextmanager
def collector(folder: Path) -> Iterator[tuple[app.Running, Client]]:
    running = built(folder)
    with serving(running.app) as client:
        yield running, client


def training(at: float) -> wire.Batch:
    uuids = [f"GPU-{number}" for number in range(8)]
    return batch(
        at=at,
        gpus=tuple(device(uuid, f"0000:{number + 16:02x}:00.0") for number, uuid in enumerate(uuids)),
        gpu_samples=tuple(sample(uuid, at, kernel_active_ratio=0.9, job="slurm:77") for uuid in uuids),
        jobs=(slurm(name="llama", gpus=tuple(uuids), leased_gpus=tuple(uuids), start_time_seconds=at - 60),),
        steps=tuple(step(number, "slurm:77", at - 10 + number) for number in range(1, 10)),
    )


def wait_for(client: Client, path: str, status: int) -> None:
    deadline = time.monotonic() + 30.0
    while client.get(path).status != status:
        assert time.monotonic() < deadline, path
        time.sleep(0.05)


def test_what_is_accepted_is_answered_and_survives_a_restart(tmp_path: Path) -> None:
    now = time.time()
    running = built(tmp_path)
    before = running.ready()
    running.ingest.accept_batch(training(now)).result(timeout=30)
    with serving(running.app) as client:
        wait_for(client, "/readyz", 200)
        status = client.get("/api/v1/query/status").json()
        rows = client.get("/api/v1/query/jobs").json()["rows"]

    with collector(tmp_path) as (_, client):
        again = client.push(training(now)).json()
        wait_for(client, "/readyz", 200)
        kept = client.get("/api/v1/query/jobs").json()["rows"]

    assert not before
    assert status["clusters"] == [{"name": "c1", "nodes": 1, "gpus": 8, "gpus_reporting": 8}]
    assert status["price_per_gpu_hour"] == 2.0
    assert [(row["name"], row["gpus_observed"], row["last_step"]) for row in rows] == [("llama", 8, 9)]
    assert again == {"accepted": True, "duplicate": True}
    assert [row["job_id"] for row in kept] == [row["job_id"] for row in rows]


def test_every_answer_and_export_is_served_from_an_empty_folder(tmp_path: Path) -> None:
    with collector(tmp_path) as (_, client):
        answers = {
            path: client.get(path).status
            for path in (
                "/api/v1/query/status",
                "/api/v1/query/fleet",
                "/api/v1/query/jobs",
                "/api/v1/query/alerts",
                "/api/v1/export/ledger.csv",
                "/api/v1/export/days.csv",
                "/api/v1/export/jobs.csv",
                "/api/v1/jobs",
                "/metrics",
            )
        }

    assert set(answers.values()) == {200}, answers


def test_a_second_collector_on_the_folder_is_refused(tmp_path: Path) -> None:
    with collector(tmp_path), pytest.raises(StoreLocked):
        app.build(Settings(collector=CollectorSettings(data_dir=tmp_path)), environ={})


def test_steps_stored_before_a_restart_are_not_stored_again_from_another_node(tmp_path: Path) -> None:
    now = time.time()
    shared = tuple(step(number, "slurm:77", now) for number in range(1, 6))
    with collector(tmp_path) as (_, client):
        client.push(batch("n1", now, jobs=(slurm(),), steps=shared))

    with collector(tmp_path) as (running, client):
        client.push(batch("n2", now, jobs=(slurm(),), steps=shared))
        rows = running.store.steps(now - 100, now + 100)

    assert rows["step"].tolist() == [1, 2, 3, 4, 5]
