from dataclasses import replace

import pytest
from tests.unit.collector.alerting.facts_of_runs import NOW, node, of, of_node

from flopwatch_collector.facts import Facts
from flopwatch_collector.watched import BudgetHealth, GpuHealth, NodeHealth, PortHealth

GPU = GpuHealth(gpu="GPU-1", clock_event_reasons=0, new_uncorrected_errors=0)


def gpu(rule: str, **changes: object) -> str:
    (reading,) = of_node(rule, node(NodeHealth(gpus=(replace(GPU, **changes),))))  # type: ignore[arg-type]
    assert reading.labels == {"cluster": "a", "node": "n1", "gpu": "GPU-1"}
    return reading.condition


@pytest.mark.parametrize(
    ("reasons", "hardware", "thermal"),
    [
        (0x08, "bad", "good"), (0x40, "bad", "good"), (0x80, "bad", "good"), (0x20, "good", "bad"),
        (0x04, "good", "good"), (0x44, "bad", "good"), (0x41, "between", "between"), (None, "missing", "missing"),
    ],
)  # fmt: skip
def test_each_clock_reason_belongs_to_its_rule(reasons: int | None, hardware: str, thermal: str) -> None:
    assert gpu("HwThrottle", clock_event_reasons=reasons) == hardware
    assert gpu("ThermalThrottle", clock_event_reasons=reasons) == thermal


@pytest.mark.parametrize(
    ("changes", "condition"),
    [
        ({}, "good"),
        ({"state": "lost"}, "bad"),
        ({"state": "reset_required"}, "bad"),
        ({"fatal_xids": (79,)}, "bad"),
    ],
)
def test_a_lost_gpu_or_a_fatal_xid_is_critical(changes: dict[str, object], condition: str) -> None:
    assert gpu("GpuLost", **changes) == condition


@pytest.mark.parametrize(
    ("changes", "condition"),
    [
        ({}, "good"), ({"new_uncorrected_errors": 1}, "bad"), ({"new_remapped_rows": 1}, "bad"),
        ({"recovery_action": 1}, "bad"), ({"new_uncorrected_errors": None}, "missing"),
    ],
)  # fmt: skip
def test_new_memory_errors_are_told(changes: dict[str, object], condition: str) -> None:
    assert gpu("GpuErrors", **changes) == condition


@pytest.mark.parametrize(
    ("port", "condition"),
    [
        (PortHealth(port="p", link_up=False), "bad"),
        (
            PortHealth(port="p", link_up=True, rate_bits_per_second=2e11, best_rate_bits_per_second=4e11),
            "bad",
        ),
        (
            PortHealth(port="p", link_up=True, rate_bits_per_second=4e11, best_rate_bits_per_second=4e11),
            "good",
        ),
        (PortHealth(port="p", link_up=True, rate_bits_per_second=4e11), "missing"),
    ],
)
def test_a_port_is_held_against_its_best(port: PortHealth, condition: str) -> None:
    (reading,) = of_node("LinkDegraded", node(NodeHealth(ports=(port,))))

    assert (reading.condition, reading.labels["link"]) == (condition, "p")


def test_a_narrow_pcie_link_is_degraded() -> None:
    narrow = replace(GPU, pcie_width=8, usual_pcie_width=16)

    (reading,) = of_node("LinkDegraded", node(NodeHealth(gpus=(narrow,))))

    assert (reading.condition, reading.labels["link"]) == ("bad", "pcie GPU-1")


def test_a_pcie_link_of_a_lower_generation_at_work_is_degraded() -> None:
    slow = replace(GPU, pcie_generation=4, usual_pcie_generation=5)

    (reading,) = of_node("LinkDegraded", node(NodeHealth(gpus=(slow,))))

    assert (reading.condition, reading.labels["link"]) == ("bad", "pcie speed GPU-1")
    assert (reading.values["value"], reading.values["usual"]) == (16e9, 32e9)


def test_a_silent_node_says_nothing_of_its_parts() -> None:
    silent = node(NodeHealth(gpus=(GPU,), agent_problems=("x",)), last_seen_seconds=NOW - 60)

    for rule in ("HwThrottle", "ThermalThrottle", "GpuLost", "GpuErrors", "AgentUnhealthy"):
        assert [one.condition for one in of_node(rule, silent)] == ["missing"]


def test_an_agent_that_lacks_a_permission_is_told_and_is_no_more_than_information() -> None:
    (reading,) = of_node("AgentUnhealthy", node(NodeHealth(agent_problems=("no CAP_SYS_PTRACE",))))

    assert (reading.condition, reading.severity) == ("bad", "info")


def test_a_node_that_keeps_appearing_is_told() -> None:
    (reading,) = of_node("LemonNode", node(NodeHealth(incidents=4, expected_incidents=0.1)))

    assert reading.condition == "bad"


@pytest.mark.parametrize(
    ("state", "condition", "severity"),
    [("ok", "good", "warning"), ("warning", "bad", "warning"), ("critical", "bad", "critical"),
     ("unknown", "missing", "warning")],
)  # fmt: skip
def test_a_budget_is_told_of_as_it_stands(state: str, condition: str, severity: str) -> None:
    facts = Facts(
        now=NOW,
        jobs=(),
        nodes=(),
        verdict=None,
        cluster="a",
        budgets=(BudgetHealth(name="nlp", state=state),),
    )

    (reading,) = of(facts, "BudgetBurn")

    assert (reading.condition, reading.severity) == (condition, severity)
    assert reading.labels == {"cluster": "a", "budget": "nlp"}
