"""Nodes out of order: with and without somebody's knowledge."""

from typing import Any

import pytest

from flopwatch_collector.schedulers.kubernetes_objects import Labels
from flopwatch_collector.schedulers.kubernetes_objects import node_from as kubernetes_node
from flopwatch_collector.schedulers.slurm_nodes import node_from as slurm_node


@pytest.mark.parametrize(
    ("ready", "cordoned", "trouble"),
    [("True", False, None), ("True", True, "drain"), ("Unknown", False, "health"), ("False", True, "health")],
)
def test_a_cordoned_kubernetes_node_is_drained_also_while_it_is_not_ready(
    ready: str, cordoned: bool, trouble: str | None
) -> None:
    row: dict[str, Any] = {
        "metadata": {"name": "n1"},
        "spec": {"unschedulable": cordoned},
        "status": {
            "capacity": {"nvidia.com/gpu": "8"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }

    node = kubernetes_node(row, Labels())

    assert node is not None
    assert (node.trouble, node.drained) == (trouble, cordoned)


@pytest.mark.parametrize(
    ("states", "trouble", "drained"),
    [
        (["DOWN", "NOT_RESPONDING"], "health", False),
        (["DOWN", "DRAIN", "NOT_RESPONDING"], "health", True),
        (["IDLE", "DRAIN"], "drain", True),
    ],
)
def test_a_drained_slurm_node_is_drained_also_while_it_is_down(
    states: list[str], trouble: str, drained: bool
) -> None:
    node = slurm_node({"name": "n1", "state": states})

    assert (node.trouble, node.drained) == (trouble, drained)
