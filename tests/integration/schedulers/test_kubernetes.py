"""Kubernetes: lists and watches of the real API's form, and what they come to in the ledger."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.schedulers.answering import Api, answering
from tests.integration.schedulers.site import T0, Site, reports, site, uuid

from flopwatch import wire
from flopwatch_collector.schedulers.asking import Server
from flopwatch_collector.schedulers.kubernetes import Kubernetes
from flopwatch_collector.schedulers.kubernetes_objects import Labels, instant
from flopwatch_collector.schedulers.reading import GpuLimit, ScheduledJob

START = "2027-01-15T08:00:00Z"
"""T0 as the API writes it."""
OWNERS: dict[str, Any] = {
    "/apis/batch/v1": {"resources": [{"name": "jobs", "kind": "Job"}, {"name": "jobs/status", "kind": "Job"}]},
    "/apis/batch/v1/namespaces/nlp/jobs/train-launcher": {
        "metadata": {"name": "train-launcher", "uid": "uid-job", "ownerReferences": [
            {"controller": True, "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "train",
             "uid": "uid-mpi"}
        ]}
    },
    "/apis/kubeflow.org/v2beta1": {"resources": [{"name": "mpijobs", "kind": "MPIJob"}]},
    "/apis/kubeflow.org/v2beta1/namespaces/nlp/mpijobs/train": {"metadata": {"name": "train", "uid": "uid-mpi"}},
}  # fmt: skip


def owner(kind: str, name: str, uid: str, version: str) -> list[dict[str, Any]]:
    return [{"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}]


MPI = owner("MPIJob", "train", "uid-mpi", "kubeflow.org/v2beta1")
LAUNCHER = owner("Job", "train-launcher", "uid-job", "batch/v1")


def pod(uid: str, node: str | None, gpus: int, **more: Any) -> dict[str, Any]:
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": START}
    stuck = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "lastTransitionTime": START,
    }
    return {
        "metadata": {
            "uid": uid, "name": uid, "namespace": "nlp", "creationTimestamp": START, "resourceVersion": "5",
            "labels": {"user": "alice", "team": "llm"}, "ownerReferences": more.get("owners", []),
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}, {"name": "side"}],
        },
        "status": {
            "phase": more.get("phase", "Running" if node else "Pending"),
            "conditions": [bound if node else stuck],
            "containerStatuses": more.get("statuses", []),
        },
    }  # fmt: skip


def node(name: str, *, cordoned: bool = False) -> dict[str, Any]:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": START}
    return {
        "metadata": {"uid": f"uid-{name}", "name": name, "labels": {"nvidia.com/gpu.count": "8"}},
        "spec": {"unschedulable": cordoned, "taints": [taint] if cordoned else []},
        "status": {"capacity": {"nvidia.com/gpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }


QUOTA = {
    "metadata": {"uid": "q", "name": "gpus", "namespace": "nlp"},
    "status": {
        "hard": {"requests.nvidia.com/gpu": "16", "pods": "100"},
        "used": {"requests.nvidia.com/gpu": "6"},
    },
}


class Cluster:
    """A collection of the API: its list, and the changes that the next watch brings."""

    def __init__(self) -> None:
        self.items: dict[str, list[dict[str, Any]]] = {"pods": [], "nodes": [], "resourcequotas": []}
        self.changes: dict[str, list[dict[str, Any]]] = {"pods": [], "nodes": [], "resourcequotas": []}
        self.lists = {"pods": 0, "nodes": 0, "resourcequotas": 0}
        self.page = 500

    def answers(self) -> dict[str, Any]:
        return {f"/api/v1/{name}": self._of(name) for name in self.items} | OWNERS

    def _of(self, name: str) -> Any:
        def answer(query: dict[str, str]) -> Any:
            if "watch" in query:
                changes, self.changes[name] = self.changes[name], []
                return (200, changes)
            self.lists[name] += 1
            first = int(query.get("continue", "0"))
            rows = self.items[name][first : first + self.page]
            more = str(first + self.page) if first + self.page < len(self.items[name]) else ""
            return {"metadata": {"resourceVersion": "10", "continue": more}, "items": rows}

        return answer


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Api]:
    with answering(cluster.answers()) as made:
        yield made


def reader(api: Api, **labels: Any) -> Kubernetes:
    return Kubernetes(
        server=Server(url=api.url, timeout_seconds=5.0), labels=Labels(**labels), watch_seconds=1
    )


def by_id(jobs: tuple[ScheduledJob, ...]) -> dict[str, ScheduledJob]:
    return {job.scheduler_job_id: job for job in jobs}


def test_t0_is_written_as_the_api_writes_it() -> None:
    assert instant(START) == T0


def test_pods_of_a_launcher_and_of_workers_have_one_topmost_owner(api: Api, cluster: Cluster) -> None:
    cluster.items["pods"] = [
        pod("w0", "n1", 8, owners=MPI), pod("l0", "n1", 1, owners=LAUNCHER), pod("cpu", "n1", 0), pod("alone", "n2", 2),
    ]  # fmt: skip

    jobs = by_id(reader(api, user="user", account="team").read(T0).jobs)

    assert {name: job.owner_uid for name, job in jobs.items()} == {
        "w0": "uid-mpi",
        "l0": "uid-mpi",
        "alone": "alone",
    }
    assert (jobs["w0"].user, jobs["w0"].account, jobs["w0"].name) == ("alice", "llm", "train")
    assert [(share.node, share.gpu_count) for share in jobs["w0"].allocations] == [("n1", 8)]


def test_an_owner_that_may_not_be_read_ends_the_climb(api: Api, cluster: Cluster) -> None:
    api.answers["/apis/kubeflow.org/v2beta1/namespaces/nlp/mpijobs/train"] = (403, {"message": "forbidden"})
    cluster.items["pods"] = [pod("l0", "n1", 1, owners=LAUNCHER)]

    (job,) = reader(api).read(T0).jobs

    assert (job.owner_uid, job.account) == ("uid-mpi", "nlp")


def test_a_list_is_read_in_pages_and_watched_from_its_end(api: Api, cluster: Cluster) -> None:
    cluster.page = 2
    cluster.items["pods"] = [pod(f"p{number}", "n1", 1) for number in range(5)]
    kubernetes = reader(api)
    first = kubernetes.read(T0)
    cluster.changes["pods"] = [
        {"type": "ADDED", "object": pod("p5", "n1", 1)},
        {"type": "DELETED", "object": pod("p0", "n1", 1)},
        {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "77"}}},
    ]
    second = by_id(kubernetes.read(T0 + 30.0).jobs)
    kubernetes.read(T0 + 60.0)

    watched = [
        query["resourceVersion"]
        for path, query, _ in api.asked
        if path == "/api/v1/pods" and "watch" in query
    ]
    assert len(first.jobs) == 5
    assert watched == ["10", "77"]
    assert cluster.lists["pods"] == 3
    assert {name for name, job in second.items() if job.state == "running"} == {"p1", "p2", "p3", "p4", "p5"}
    assert (second["p0"].state, second["p0"].end_seconds, second["p0"].exit_reason) == (
        "ended",
        T0 + 30.0,
        "cancelled",
    )


@pytest.mark.parametrize("how", ["status", "event"])
def test_a_version_that_is_gone_is_listed_anew_and_what_vanished_has_ended(
    api: Api, cluster: Cluster, how: str
) -> None:
    cluster.items["pods"] = [pod("p0", "n1", 1), pod("p1", "n1", 1)]
    kubernetes = reader(api)
    kubernetes.read(T0)
    cluster.items["pods"] = [pod("p1", "n1", 1)]
    gone = {"kind": "Status", "code": 410, "message": "too old resource version"}
    cluster.changes["pods"] = [{"type": "ERROR", "object": gone}]
    listed = api.answers["/api/v1/pods"]
    if how == "status":
        api.answers["/api/v1/pods"] = lambda query: (410, gone) if "watch" in query else listed(query)

    jobs = by_id(kubernetes.read(T0 + 30.0).jobs)

    assert cluster.lists["pods"] == 2
    assert {name: job.state for name, job in jobs.items()} == {"p0": "ended", "p1": "running"}


def test_ends_queues_quotas_and_gates_are_read(api: Api, cluster: Cluster) -> None:
    ended = {"state": {"terminated": {"finishedAt": "2027-01-15T08:30:00Z"}}}
    gated = pod("gated", None, 8)
    gated["spec"]["schedulingGates"] = [{"name": "example.org/wait"}]
    queued = pod("queued", None, 8)
    queued["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    cluster.items["pods"] = [
        pod("done", "n1", 4, phase="Succeeded", statuses=[ended]), pod("stuck", None, 4), gated, queued,
    ]  # fmt: skip
    cluster.items["resourcequotas"] = [QUOTA]

    reading = reader(api).read(T0 + 3600.0)

    jobs = by_id(reading.jobs)
    assert (jobs["done"].state, jobs["done"].end_seconds, jobs["done"].exit_reason) == (
        "ended",
        T0 + 1800.0,
        "completed",
    )
    assert {name: jobs[name].reason for name in ("stuck", "gated", "queued")} == {
        "stuck": "Unschedulable", "gated": "SchedulingGated", "queued": "Queued",
    }  # fmt: skip
    assert reading.limits == (GpuLimit(kind="namespace", name="nlp", gpus=16, used_gpus=6),)


def told(part: wire.Batch, *jobs: wire.JobSighting) -> wire.Batch:
    return wire.Batch(**{**{name: getattr(part, name) for name in part.__slots__}, "jobs": jobs})


@pytest.fixture
def fleet(tmp_path: Path, api: Api) -> Iterator[Site]:
    settings = {"kind": "kubernetes", "cluster": "c1", "url": api.url, "user_label": "user"}
    with site(tmp_path, {"scheduler": [settings]}) as made:
        yield made


def test_gpus_that_are_only_counted_are_those_that_the_pod_uses(fleet: Site, cluster: Cluster) -> None:
    cluster.items["nodes"] = [node("n1"), node("n2", cordoned=True)]
    cluster.items["pods"] = [pod("w0", "n1", 2, owners=MPI), pod("w1", "n1", 3, owners=MPI)]
    seen = wire.JobSighting(
        ref="kubernetes:w1",
        scheduler="kubernetes",
        scheduler_job_id="w1",
        gpus=(uuid("n1", 5), uuid("n1", 7)),
    )
    fleet.push(told(reports("n1", T0 - 10.0, T0, (5, 7)), seen))
    fleet.push(reports("n2", T0 - 10.0, T0, ()))
    fleet.read(T0)
    for at in (T0 + 600.0, T0 + 1200.0, T0 + 1800.0):
        fleet.push(told(reports("n1", at - 600.0, at, (5, 7)), seen))
        fleet.push(reports("n2", at - 600.0, at, ()))
        fleet.read(at)
    fleet.settle(T0 + 1800.0)

    spent = fleet.ledger(T0, T0 + 900.0)

    # w1 has 5 and 7 and one more, w0 has two others; all are one MPIJob. n2 is cordoned.
    assert spent == {
        "BUSY_OPAQUE": 2 * 900_000,
        "HELD_EMPTY": 3 * 900_000,
        "FREE:no_demand": 3 * 900_000,
        "FAULT": 8 * 900_000,
    }
    (job,) = fleet.state.jobs.values()
    assert (job.name, job.user, job.account) == ("train", "alice", "nlp")
    assert sorted(len(lease.gpus) for lease in fleet.state.leases.values()) == [2, 3]
    assert [code for code, _, _ in job.findings] == ["leased_gpus_not_told"]
