"""Rules about nodes and their parts."""

from collections.abc import Callable, Iterator
from typing import Any

from flopwatch.query import Severity
from flopwatch_collector.alerting.levels import Levels, levels
from flopwatch_collector.alerting.rules_reading import (
    evaluation_gap,
    silent,
)
from flopwatch_collector.alerting.state import Condition, Reading
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import Facts, NodeFacts
from flopwatch_collector.watched import GpuHealth

LOST_STATES = frozenset(("lost", "reset_required", "unreadable"))


def node_down(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """All GPUs of a node are faulty, or its scheduler says that it does not answer; not one taken out of service."""
    for node in facts.nodes:
        yield Reading(
            rule="NodeDown",
            severity="critical",
            labels={"cluster": node.cluster, "node": node.node},
            condition=_down(node, facts.now),
            time_seconds=facts.now,
            for_seconds=60.0,
            keep_seconds=600.0,
            values={"node": node.node, "gpus": node.gpus},
            summary=f"Node {node.node} is down: {node.gpus} GPUs",
            gap_seconds=evaluation_gap(settings),
            gone_reason="declared",
        )


def _down(node: NodeFacts, now: float) -> Condition:
    if node.standing == "out":
        return "gone"
    if node.standing == "down" or node.bucket == "FAULT":
        return "bad"
    return "missing" if node.reported and silent(node, now) else "good"


def no_data(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """A node's agent is silent: nothing is known of it. Nodes held back or out of service may be silent."""
    for node in facts.nodes:
        yield Reading(
            rule="NoData",
            severity="warning",
            labels={"cluster": node.cluster, "node": node.node},
            condition=_quiet(node, facts.now),
            time_seconds=facts.now,
            for_seconds=settings.no_data_for_seconds,
            keep_seconds=node.interval_seconds,
            values={"node": node.node, "gpus": node.gpus, "last_seen_seconds": node.last_seen_seconds},
            summary=f"No data from {node.node} ({node.gpus} GPUs)",
            gap_seconds=evaluation_gap(settings),
            gone_reason="declared" if node.reported else "never_reported",
        )


def _quiet(node: NodeFacts, now: float) -> Condition:
    """Silence by a scheduler's word that the node is down stays silence: `NodeDown` inhibits it."""
    if not node.reported or node.standing in ("out", "spare"):
        return "gone"
    return "bad" if silent(node, now) and node.bucket != "MAINT" else "good"


def gpu_lost(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """A GPU is gone from its node, wants a reset, or had an XID that no application causes."""
    own = levels("GpuLost", settings)
    for node, gpu in _gpus(facts):
        lost = gpu.state in LOST_STATES or bool(gpu.fatal_xids)
        words = gpu.reason or (f"XID {gpu.fatal_xids[-1]}" if gpu.fatal_xids else gpu.state)
        yield _of_gpu("GpuLost", "critical", (node, gpu), own, settings)(
            "bad" if lost else "missing" if silent(node, facts.now) else "good",
            {"node": node.node, "gpu": gpu.gpu, "reason": words if lost else None},
            f"{node.node}: GPU {gpu.gpu} is lost ({words})",
        )


def gpu_errors(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """Memory errors that were not corrected, rows newly remapped, or a recovery action that NVML advises."""
    own = levels("GpuErrors", settings)
    for node, gpu in _gpus(facts):
        counts = (gpu.new_uncorrected_errors, gpu.new_remapped_rows, gpu.recovery_action)
        condition: Condition = "good"
        if all(count is None for count in counts) or silent(node, facts.now):
            condition = "missing"
        elif any((count or 0) >= own.level for count in counts):
            condition = "bad"
        names = ("uncorrected_errors", "remapped_rows", "recovery_action")
        yield _of_gpu("GpuErrors", "warning", (node, gpu), own, settings)(
            condition,
            {"node": node.node, "gpu": gpu.gpu, **dict(zip(names, counts, strict=True))},
            f"{node.node}: memory of GPU {gpu.gpu} has new errors",
        )


def link_degraded(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """A network port is down or slower than its own best and its peers, or a GPU's PCIe link is narrower."""
    own = levels("LinkDegraded", settings)
    for node in facts.nodes:
        for link, now_value, usual in _links(node):
            condition: Condition = "good"
            if now_value is None or usual is None or silent(node, facts.now):
                condition = "missing"
            elif now_value < own.level * usual:
                condition = "bad"
            yield Reading(
                rule="LinkDegraded",
                severity="warning",
                labels={"cluster": node.cluster, "node": node.node, "link": link},
                condition=condition,
                time_seconds=node.last_seen_seconds,
                for_seconds=own.for_seconds,
                keep_seconds=own.keep_seconds,
                values={"node": node.node, "link": link, "value": now_value, "usual": usual},
                summary=f"{node.node}: link {link} is down or slower than usual",
                gap_seconds=max(evaluation_gap(settings), 3.0 * node.interval_seconds),
            )


def _links(node: NodeFacts) -> Iterator[tuple[str, float | None, float | None]]:
    """(name, what it does now, what is usual): a port's rate, 0 while it is down; lanes and speed of a PCIe link."""
    for port in node.health.ports:
        if port.link_up is False:
            yield port.port, 0.0, port.best_rate_bits_per_second or 1.0
        else:
            yield port.port, port.rate_bits_per_second, port.best_rate_bits_per_second
    for gpu in node.health.gpus:
        if gpu.pcie_width is not None:
            usual = gpu.usual_pcie_width
            yield f"pcie {gpu.gpu}", float(gpu.pcie_width), None if usual is None else float(usual)
        if gpu.pcie_generation is not None:
            speed, fast = (transfers(each) for each in (gpu.pcie_generation, gpu.usual_pcie_generation))
            yield f"pcie speed {gpu.gpu}", speed, fast


def transfers(generation: int | None) -> float | None:
    """Transfers a second of a PCIe lane (PCI-SIG): 2.5, 5, then doubled from 8 on; None where it is not known."""
    if generation is None or generation < 1:
        return None
    return {1: 2.5e9, 2: 5e9}.get(generation, 8e9 * 2.0 ** (generation - 3))


def lemon_node(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """A node that keeps appearing in incidents of different jobs, more often than chance explains."""
    own = levels("LemonNode", settings)
    for node in facts.nodes:
        count = node.health.incidents
        yield Reading(
            rule="LemonNode",
            severity="warning",
            labels={"cluster": node.cluster, "node": node.node},
            condition="bad" if count >= own.level else "good",
            time_seconds=facts.now,
            for_seconds=own.for_seconds,
            keep_seconds=own.keep_seconds,
            values={"node": node.node, "incidents": count, "expected": node.health.expected_incidents},
            summary=f"{node.node} was at fault {count} times within two weeks",
            gap_seconds=evaluation_gap(settings),
        )


def agent_unhealthy(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """An agent that reports, but not all that it should."""
    own = levels("AgentUnhealthy", settings)
    for node in facts.nodes:
        problems = node.health.agent_problems
        yield Reading(
            rule="AgentUnhealthy",
            severity="info",
            labels={"cluster": node.cluster, "node": node.node},
            condition="missing" if silent(node, facts.now) else "bad" if problems else "good",
            time_seconds=node.last_seen_seconds,
            for_seconds=own.for_seconds,
            keep_seconds=own.keep_seconds,
            values={"node": node.node, "problems": ", ".join(problems) or None},
            summary=f"The agent of {node.node} cannot tell everything: {', '.join(problems)}",
            gap_seconds=max(evaluation_gap(settings), 3.0 * node.interval_seconds),
        )


def _gpus(facts: Facts) -> Iterator[tuple[NodeFacts, GpuHealth]]:
    for node in facts.nodes:
        for gpu in node.health.gpus:
            yield node, gpu


def _of_gpu(
    rule: str, severity: Severity, place: tuple[NodeFacts, GpuHealth], own: Levels, settings: AlertSettings
) -> Callable[[Condition, dict[str, Any], str], Reading]:
    """What makes the reading of one GPU."""
    node, gpu = place

    def made(condition: Condition, values: dict[str, Any], summary: str) -> Reading:
        return Reading(
            rule=rule,
            severity=severity,
            labels={"cluster": node.cluster, "node": node.node, "gpu": gpu.gpu},
            condition=condition,
            time_seconds=node.last_seen_seconds,
            for_seconds=own.for_seconds,
            keep_seconds=own.keep_seconds,
            values=values,
            summary=summary,
            gap_seconds=max(evaluation_gap(settings), 3.0 * node.interval_seconds),
        )

    return made
