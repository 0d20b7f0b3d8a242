"""Rules about slow parts of a run: stragglers and throttled clocks."""

from collections.abc import Iterator

from flopwatch_collector.alerting.levels import levels
from flopwatch_collector.alerting.rules_reading import evaluation_gap, gap, identity, run_condition, silent
from flopwatch_collector.alerting.state import Condition, Reading
from flopwatch_collector.compute.detection.peers import Suspect
from flopwatch_collector.compute.detection.scores import REPORTS
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import Facts, JobFacts, NodeFacts
from flopwatch_collector.watched import GpuHealth

HARDWARE_BITS = 0x08 | 0x40 | 0x80
"""NVML's clock event reasons: hardware slowdown, hardware thermal slowdown, hardware power brake."""
THERMAL_BIT = 0x20
IDLE_BIT = 0x01
"""An idle GPU's clocks are low for that reason."""


def straggler(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """One GPU, node or link of a job holds it up: the same one in three reports, or the likely cause of its loss."""
    own = levels("Straggler", settings)
    for job in facts.jobs:
        suspect, cause = persistent_suspect(job.run.suspects), job.row.cause
        by_cause = cause is not None and cause.code == "straggler"
        bad = suspect is not None or by_cause
        node = (
            suspect.node
            if suspect is not None
            else str(cause.values.get("node", ""))
            if by_cause and cause
            else None
        )
        values = {"job": job.row.name, "node": node or None}
        if suspect is not None:
            values |= {"gpu": suspect.gpu, "hardware": suspect.hardware}
            values |= {"also": ", ".join(suspect.also)} if suspect.also else {}
        yield Reading(
            rule="Straggler",
            severity="warning",
            labels=identity(job.row),
            condition=run_condition(job, settings) or ("bad" if bad else "good"),
            time_seconds=job.data_seconds or facts.now,
            for_seconds=0.0 if suspect is not None else own.for_seconds,
            keep_seconds=own.keep_seconds,
            values=values if bad else {},
            summary=_words(job, node, () if suspect is None else suspect.also) if bad else "",
            gap_seconds=gap(job, settings),
        )


def persistent_suspect(reports: tuple[Suspect | None, ...]) -> Suspect | None:
    """The suspect that the newest three reports agree on; imbalance of the work is none."""
    newest = reports[-REPORTS:]
    if len(newest) < REPORTS:
        return None
    subjects = {(one.kind, one.node, one.gpu) if one is not None else None for one in newest}
    last = newest[-1]
    return last if len(subjects) == 1 and last is not None and last.kind != "imbalance" else None


def _words(job: JobFacts, node: str | None, also: tuple[str, ...]) -> str:
    if not node:
        return f"{job.row.name}: one of its nodes is slower than its peers, not known which"
    if also:
        return f"{job.row.name}: {1 + len(also)} of its nodes are slower than their peers ({', '.join((node, *also))})"
    return f"{job.row.name}: one of its nodes is slower than its peers ({node})"


def hw_throttle(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """A GPU's hardware slows its clock down: heat, or the power brake. The software power cap is normal."""
    yield from _throttle(facts, settings, "HwThrottle", HARDWARE_BITS)


def thermal_throttle(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """The driver slows a GPU's clock down because of its temperature."""
    yield from _throttle(facts, settings, "ThermalThrottle", THERMAL_BIT)


def _throttle(facts: Facts, settings: AlertSettings, rule: str, bits: int) -> Iterator[Reading]:
    own = levels(rule, settings)
    for node in facts.nodes:
        for gpu in node.health.gpus:
            yield Reading(
                rule=rule,
                severity="warning",
                labels={"cluster": node.cluster, "node": node.node, "gpu": gpu.gpu},
                condition=_throttled(node, gpu, bits, facts.now),
                time_seconds=node.last_seen_seconds,
                for_seconds=own.for_seconds,
                keep_seconds=own.keep_seconds,
                values={
                    "node": node.node,
                    "gpu": gpu.gpu,
                    "index": gpu.index,
                    "reasons": gpu.clock_event_reasons,
                },
                summary=f"{node.node}: clocks of GPU {gpu.gpu} are throttled",
                gap_seconds=max(evaluation_gap(settings), 3.0 * node.interval_seconds),
            )


def _throttled(node: NodeFacts, gpu: GpuHealth, bits: int, now: float) -> Condition:
    reasons = gpu.clock_event_reasons
    if reasons is None or silent(node, now) or gpu.state != "ok":
        return "missing"
    if reasons & IDLE_BIT:
        return "between"
    return "bad" if reasons & bits else "good"
