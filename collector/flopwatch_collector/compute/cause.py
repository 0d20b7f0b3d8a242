"""A job's likely cause of waste, or none where the evidence is thin.

A hang comes first, then the cause that explains most GPU time; a bucket explains something from a twentieth of
the job's time on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from flopwatch.query import Cause, MfuFigure, Severity
from flopwatch_collector.compute.buckets import CODE
from flopwatch_collector.compute.classes import by_bucket
from flopwatch_collector.compute.money import HOUR_MILLISECONDS
from flopwatch_collector.model import Columns

SHARE = 0.05
DATA_SHARE = 0.10
"""Data wait is suspected from a tenth of the time on."""
LEAST_MILLISECONDS = 60_000
"""A cause holds for a minute at least."""
SLOW_CLOCK_RATIO = 0.92
SLOW_POWER_RATIO = 0.75
PEER_RATIO = 0.97
"""All other nodes are at least here: one slow node, not a spread."""
LEAST_STEPS = 3
CODES: Final[dict[str, tuple[str, Severity]]] = {
    "HANG": ("hang", "critical"), "HELD_IDLE": ("held_idle", "warning"), "HELD_EMPTY": ("held_empty", "warning"),
    "DATA_WAIT": ("data_wait", "warning"), "CKPT": ("checkpoint", "warning"), "STARTUP": ("startup", "info"),
    "RECOVERY": ("recovery", "warning"), "LOST": ("lost", "warning"), "GAP": ("gap", "warning"),
    "THROTTLE": ("throttle", "warning"), "STRAGGLER": ("straggler", "warning"),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeSignal:
    """What a node's GPUs of a job show over the same time."""

    node: str
    sm_clock_hertz: float | None = None
    power_watts: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Signals:
    """What is known of a job beside its ledger."""

    gpus: int | None
    figure: MfuFigure | None = None
    target_ratio: float | None = None
    nodes: tuple[NodeSignal, ...] = ()


def likely_cause(rows: Columns, signals: Signals) -> Cause | None:
    """The likely cause from a job's ledger rows and signals; None when nothing explains enough.

    Values: ``hours`` (wall time explained, GPU-hours over the job's GPUs), ``ratio`` (share of the job's time),
    and the node of a straggler, the MFU and its target.
    """
    totals: dict[int, int] = {}
    for (bucket, _), amount in by_bucket(rows).items():
        totals[bucket] = totals.get(bucket, 0) + amount
    slow = slow_node(signals.nodes)
    found = _from_ledger(totals, signals, slow)
    return found or _from_figure(totals, signals, slow)


def _from_ledger(totals: dict[int, int], signals: Signals, slow: str | None) -> Cause | None:
    capacity = sum(totals.values())
    best: tuple[bool, int, str] | None = None
    for bucket in CODES:
        amount = totals.get(CODE[bucket], 0)
        if _explains(bucket, amount, capacity, signals.gpus) and (bucket != "STRAGGLER" or slow):
            one = (bucket == "HANG", amount, bucket)
            best = max(best, one) if best else one
    if best is None:
        return None
    _, amount, bucket = best
    code, severity = CODES["STRAGGLER" if bucket == "THROTTLE" and slow else bucket]
    values: dict[str, Any] = {"ratio": amount / capacity}
    if signals.gpus:
        values["hours"] = amount / HOUR_MILLISECONDS / signals.gpus
    if code == "straggler":
        values["node"] = slow
    return Cause(code=code, severity=severity, values=values)


def _explains(bucket: str, amount: int, capacity: int, gpus: int | None) -> bool:
    if bucket == "HANG":
        return amount >= LEAST_MILLISECONDS * (gpus or 1)
    needed = DATA_SHARE if bucket == "DATA_WAIT" else SHARE
    return amount >= LEAST_MILLISECONDS * (gpus or 1) and amount >= needed * capacity


def _from_figure(totals: dict[int, int], signals: Signals, slow: str | None) -> Cause | None:
    figure = signals.figure
    if figure is None:
        return None
    if figure.reason == "unknown_gpu" and figure.steps:
        return Cause(code="unknown_gpu", severity="info", values={"gpu_model": figure.gpu_model})
    opaque = totals.get(CODE["BUSY_OPAQUE"], 0)
    if figure.reason in {"no_steps", "waiting"} and opaque > 0.5 * sum(totals.values()):
        return Cause(code="no_steps", severity="info", values={})
    value, target = figure.value_ratio, signals.target_ratio
    if value is None or target is None or value >= target or figure.steps < LEAST_STEPS:
        return None
    values: dict[str, Any] = {"mfu": value, "target": target}
    if slow is not None:
        return Cause(code="straggler", severity="warning", values={**values, "node": slow})
    return Cause(code="mfu_below_target", severity="warning", values=values)


def slow_node(nodes: Sequence[NodeSignal]) -> str | None:
    """The one node that is clearly slower than all its peers; None without such evidence.

    By SM clock; where clocks are not known, by power. At least three nodes are needed.
    """
    return _outlier([(node.node, node.sm_clock_hertz) for node in nodes], SLOW_CLOCK_RATIO) or (
        _outlier([(node.node, node.power_watts) for node in nodes], SLOW_POWER_RATIO)
        if all(node.sm_clock_hertz is None for node in nodes)
        else None
    )


def _outlier(values: Sequence[tuple[str, float | None]], ratio: float) -> str | None:
    known = sorted((value, name) for name, value in values if value is not None)
    if len(known) < 3:
        return None
    peers = [value for value, _ in known[1:]]
    usual = median(peers)
    lowest, name = known[0]
    return name if lowest <= ratio * usual and peers[0] >= PEER_RATIO * usual else None
