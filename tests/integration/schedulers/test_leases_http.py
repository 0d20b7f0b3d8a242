"""Leases and the queue over HTTP, for schedulers that are not read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.collector.serving import Answer, Client, serving
from tests.integration.schedulers.site import T0, Site, reports, site, uuid


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path, {}) as made:
        made.push(reports("n1", T0 - 10.0, T0, (0, 1)))
        yield made


@pytest.fixture
def client(cluster: Site) -> Iterator[Client]:
    cluster.running.start = lambda: None  # type: ignore[method-assign]  # the test drives the work itself
    with serving(cluster.running.app) as asked:
        yield asked


def post(client: Client, path: str, body: Any) -> Answer:
    return client.ask("POST", path, json.dumps(body), {"Content-Type": "application/json"})


def lease(**more: Any) -> dict[str, Any]:
    return {
        "job": "pbs.17",
        "node": "n1",
        "cluster": "c1",
        "gpus": [0, 1, 2],
        "start_seconds": T0 + 0.9,
        **more,
    }


def test_a_lease_beats_samples_and_the_same_again_changes_nothing(cluster: Site, client: Client) -> None:
    body = {"leases": [lease(user="alice", account="nlp", qos="high", name="llama")]}
    first = post(client, "/api/v1/leases", body)
    post(client, "/api/v1/leases", body)
    post(client, "/api/v1/leases", {"leases": [lease(end_seconds=T0 + 600.0, exit_reason="completed")]})
    post(client, "/api/v1/queue", {"cluster": "c1", "pending_jobs": 1, "pending_gpus": 6})
    cluster.push(reports("n1", T0, T0 + 1200.0, (0, 1)))
    post(
        client,
        "/api/v1/queue",
        {"cluster": "c1", "pending_jobs": 0, "pending_gpus": 0, "time_seconds": T0 + 300.0},
    )
    cluster.settle(T0 + 1200.0)

    spent = cluster.ledger(T0, T0 + 600.0)
    held = client.get("/api/v1/leases?open=false").json()["leases"]

    assert (first.status, first.json()) == (200, {"taken": 1})
    # Three of eight GPUs are held; six wait while five are free: they fit nowhere, then nobody waits.
    assert spent == {
        "BUSY_OPAQUE": 2 * 600_000,
        "HELD_EMPTY": 600_000,
        "FREE:unspecified": 5 * 300_000,
        "FREE:no_demand": 5 * 300_000,
    }
    assert len(held) == 1
    assert held[0] | {"job_id": ""} == {
        "lease_id": f"other:pbs.17/{int(T0)}", "job_id": "", "cluster": "c1", "node": "n1",
        "gpus": [uuid("n1", index) for index in range(3)], "source": "api", "user": "alice", "account": "nlp",
        "qos": None, "share_ratio": 1.0, "start_seconds": T0, "end_seconds": T0 + 600.0,
    }  # fmt: skip
    assert client.get("/api/v1/leases").json() == {"leases": []}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "leases.0.node": ({"node": "n9"}, "a node of cluster 'c1', such as n1"),
    "leases.0.gpus.1": ({"gpus": [0, 11]}, "a GPU of n1: 0000:10:00.0, "),
    "leases.0.gpus": ({"gpus": None}, "GPUs, or gpu_count"),
    "leases.0.end_seconds": ({"end_seconds": T0 - 1.0}, "start_seconds or later"),
    "leases.0.share_ratio": ({"share_ratio": 0.0}, "greater than 0"),
    "leases.0.job": ({"job": "a/b"}, "match pattern"),
    "leases.0.colour": ({"colour": "red"}, "Extra inputs"),
    "leases.0.start_seconds": ({"start_seconds": "noon"}, "valid number"),
}


def test_what_cannot_be_meant_is_refused_by_its_field(client: Client) -> None:
    answers = {
        field: post(client, "/api/v1/leases", {"leases": [lease(**change)]})
        for field, (change, _) in WRONG.items()
    }

    assert {field: answer.status for field, answer in answers.items()} == dict.fromkeys(WRONG, 422)
    for field, answer in answers.items():
        (problem,) = answer.json()["fields"]
        assert problem["field"] == field
        assert WRONG[field][1] in problem["allowed"]


def test_a_number_of_gpus_is_enough(cluster: Site, client: Client) -> None:
    post(client, "/api/v1/leases", {"leases": [lease(gpus=None, gpu_count=3)]})
    post(client, "/api/v1/leases", {"leases": [lease(job="pbs.18", gpus=None, gpu_count=5)]})

    held = client.get("/api/v1/leases").json()["leases"]
    taken = [gpu for each in held for gpu in each["gpus"]]
    assert sorted(taken) == [uuid("n1", index) for index in range(8)]


def test_agents_and_operators_may_say_it_and_viewers_may_not(cluster: Site, client: Client) -> None:
    body = {"cluster": "c1", "pending_jobs": 0, "pending_gpus": 0}
    statuses = {}
    for role in ("agent", "operator", "admin", "viewer"):
        _, client.token = cluster.running.tokens.create(role, role)
        statuses[role] = post(client, "/api/v1/queue", body).status

    assert statuses == {"agent": 200, "operator": 200, "admin": 200, "viewer": 403}


def test_a_queue_of_a_cluster_without_nodes_is_refused(client: Client) -> None:
    answer = post(client, "/api/v1/queue", {"cluster": "moon", "pending_jobs": 0, "pending_gpus": 0})

    assert (answer.status, answer.json()["fields"][0]["field"]) == (422, "cluster")


def test_without_schedulers_none_is_listed(client: Client) -> None:
    assert client.get("/api/v1/schedulers").json() == {"schedulers": [], "limits": []}
