"""What the alert rules see of nodes that an operator or Slurm took out of service, and of those that are down."""

from pathlib import Path
from typing import Any

from starlette.testclient import TestClient
from tests.integration.schedulers.site import T0, Site, reports, site
from tests.integration.schedulers.test_slurm_in_the_ledger import Slurm, node

from flopwatch_collector.alerting.rules_node import gpu_lost, no_data, node_down
from flopwatch_collector.config import AlertSettings


def seen(cluster: Site, at: float) -> dict[str, tuple[str, str]]:
    """By node: what NodeDown and NoData say."""
    cluster.clock[0] = at
    cluster.running.accounting.tick(at)
    facts, settings = cluster.running.query.facts(at), AlertSettings()
    quiet = {one.labels["node"]: one.condition for one in no_data(facts, settings)}
    return {
        one.labels["node"]: (one.condition, quiet[one.labels["node"]]) for one in node_down(facts, settings)
    }


def declare(cluster: Site, name: str, **body: Any) -> None:
    answer = TestClient(cluster.running.app).post(f"/api/v1/nodes/{name}/declarations", json=body)
    assert answer.status_code == 200, answer.text


def test_a_node_in_maintenance_may_be_silent_until_the_window_is_over(tmp_path: Path) -> None:
    with site(tmp_path, {"inventory": [{"nodes": "n[1-3]", "cluster": "c1", "gpus": 8}]}) as cluster:
        cluster.push(reports("n1", T0 - 10.0, T0, ()))
        cluster.push(reports("n2", T0 - 10.0, T0, ()))
        cluster.read(T0)
        declare(cluster, "n1", declaration="maintenance", from_seconds=T0, until_seconds=T0 + 600.0)
        cluster.read(T0 + 300.0)

        during = seen(cluster, T0 + 300.0)
        cluster.read(T0 + 600.0)
        after = seen(cluster, T0 + 610.0)

        lost = list(gpu_lost(cluster.running.query.facts(T0 + 610.0), AlertSettings()))

    # n2 is silent and nobody said why; n3 is only in the inventory.
    assert during == {"n1": ("gone", "gone"), "n2": ("missing", "bad"), "n3": ("good", "gone")}
    assert after == {"n1": ("missing", "bad"), "n2": ("missing", "bad"), "n3": ("good", "gone")}
    assert [one.labels["node"] for one in lost] == []


def test_a_drained_node_is_not_down_whether_its_agent_lives_or_not_and_one_that_slurm_calls_down_is(
    tmp_path: Path,
) -> None:
    slurm = Slurm(tmp_path)
    slurm.says(
        "nodes",
        {
            "nodes": [
                node("n1", state=["IDLE", "DRAIN"], reason="NIC"),
                node("n2", state=["IDLE", "DRAIN", "NOT_RESPONDING"], reason="NIC"),
                node("n3", state=["DOWN", "NOT_RESPONDING"], reason="Not responding"),
                node("n4", state=["IDLE"]),
                node("n5", state=["DOWN", "DRAIN", "NOT_RESPONDING"], reason="in repair"),
            ]
        },
    )
    tables = {"scheduler": [{"kind": "slurm", "cluster": "c1", "commands": str(slurm.bin)}]}
    with site(tmp_path, tables) as cluster:
        for name in ("n1", "n2", "n3", "n4", "n5"):
            cluster.push(reports(name, T0 - 10.0, T0, ()))
        cluster.read(T0)
        for name in ("n1", "n4"):
            cluster.push(reports(name, T0, T0 + 700.0, ()))

        found = seen(cluster, T0 + 700.0)

    assert found == {
        "n1": ("gone", "gone"),
        "n2": ("gone", "gone"),
        "n3": ("bad", "bad"),
        "n4": ("good", "good"),
        "n5": ("gone", "gone"),
    }
