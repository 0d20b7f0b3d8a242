import re

import pytest

from flopwatch import wire
from flopwatch_collector.ingest.identity import Claim, claim, job_id


def claimed(node: str = "n1", start: float | None = 1000.0, **fields: object) -> Claim:
    return claim("c1", node, wire.JobSighting(ref="r", **fields), start)  # type: ignore[arg-type]


def test_a_slurm_job_is_its_id_and_submit_time_on_every_node() -> None:
    one = claimed("n1", scheduler="slurm", scheduler_job_id="7", submit_time_seconds=50.0)
    two = claimed("n2", scheduler="slurm", scheduler_job_id="7", submit_time_seconds=50.0)

    assert one == two
    assert one.key == "slurm/c1/7/50"


def test_pods_of_one_kubernetes_owner_are_one_job() -> None:
    launcher = claimed("n1", scheduler="kubernetes", scheduler_job_id="pod-a", owner_uid="owner-1")
    worker = claimed("n2", scheduler="kubernetes", scheduler_job_id="pod-b", owner_uid="owner-1")

    assert launcher.key == worker.key == "kubernetes/c1/owner-1/"


def test_pods_whose_owner_is_unknown_are_joined_by_how_they_were_launched() -> None:
    master = {"uid": 0, "master": "train-master-0:23456", "world_size": 16}
    one = claimed("n1", scheduler="kubernetes", scheduler_job_id="pod-a", **master)
    two = claimed("n2", scheduler="kubernetes", scheduler_job_id="pod-b", **master)
    lone = claimed("n3", scheduler="kubernetes", scheduler_job_id="pod-c")

    assert one.group == two.group
    assert lone.group == "kubernetes/c1/pod-c"


def test_without_scheduler_user_master_and_world_size_make_the_group() -> None:
    one = claimed("n1", uid=5, master="10.0.0.1:29500", world_size=16)
    two = claimed("n2", uid=5, master="10.0.0.1:29500", world_size=16)

    assert one.group == two.group == "launch/c1/5/10.0.0.1:29500/16"
    assert one.shared


@pytest.mark.parametrize("master", ["localhost:29500", "127.0.0.1:29500", "[::1]:29500"])
def test_a_loopback_master_joins_no_other_node(master: str) -> None:
    one = claimed("n1", uid=5, master=master, world_size=8)
    two = claimed("n2", uid=5, master=master, world_size=8)

    assert one.group != two.group


@pytest.mark.parametrize("run_id", ["none", "NONE", "", None], ids=["none", "capitals", "empty", "absent"])
def test_an_elastic_run_id_of_none_is_no_key(run_id: str | None) -> None:
    one = claimed("n1", scheduler="ray", scheduler_job_id=run_id)
    two = claimed("n2", scheduler="ray", scheduler_job_id=run_id)

    assert one.group == "node/c1/n1/r"
    assert one.group != two.group


def test_a_job_id_is_short_stable_and_safe_in_a_url() -> None:
    text = job_id("Pré-train: 7B / run #1", None, "key")

    assert text == job_id("Pré-train: 7B / run #1", None, "key")
    assert re.fullmatch(r"[a-z0-9-]{1,49}", text)
    assert text != job_id("Pré-train: 7B / run #1", None, "other key")
    assert re.fullmatch(r"[0-9a-f]{8}", job_id("训练", None, "key"))
    assert job_id("x", "4711", "key").startswith("4711-")
