"""Which alerts another one already explains. Pure."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace

from flopwatch_collector.alerting.state import AlertRecord

Node = tuple[str, str]
"""Cluster and name."""
HANG_EXPLAINS = frozenset(
    (
        "MfuLow",
        "MfuDrop",
        "MfuBelowNorm",
        "Straggler",
        "IdleHeld",
        "HighUtilLowMfu",
        "HangSuspect",
        "StepSpikes",
    )
)
THROTTLES = frozenset(("HwThrottle", "ThermalSlow", "ThermalThrottle"))
THROTTLE = "Throttle"
"""What explains a straggler, in place of a rule's name."""
BLIND_TO = frozenset(("NodeDown", "NoData", "DeadMan", "AgentUnhealthy"))
"""Rules that do not judge what a node's agent measures, or say themselves that it is silent."""
ACTIVE = frozenset(("firing", "clearing", "pending", "no_data"))
FIRING = frozenset(("firing", "clearing"))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reasons:
    """What fires and explains others."""

    down: Set[Node]
    silent: Set[Node]
    hung: Set[tuple[str, str]]
    throttled: Set[tuple[str, ...]]


def inhibited(records: Iterable[AlertRecord], nodes_of_job: Mapping[str, frozenset[Node]]) -> dict[str, str]:
    """Fingerprints that are not sent, with the rule of the alert that already says why.

    A node that is down explains everything on it, and the alerts of jobs that run nowhere else; a silent one what
    is computed from its data; a hang what follows from it; a throttled GPU that it is slower than its peers.
    """
    active = [record for record in records if record.state in ACTIVE]
    firing = [record for record in active if record.state in FIRING]
    reasons = _Reasons(
        down={node_of(record) for record in firing if record.rule == "NodeDown"},
        silent={node_of(record) for record in firing if record.rule == "NoData"},
        hung={_job(record) for record in firing if record.rule == "JobHang"},
        throttled={place for record in firing if record.rule in THROTTLES for place in _throttled_at(record)},
    )
    found = {record.fingerprint: _reason(record, reasons, nodes_of_job) for record in active}
    return {key: reason for key, reason in found.items() if reason is not None}


def _reason(
    record: AlertRecord, reasons: _Reasons, nodes_of_job: Mapping[str, frozenset[Node]]
) -> str | None:
    if record.rule != "NodeDown" and confined_to(record, reasons.down, nodes_of_job):
        return "NodeDown"
    if record.rule in HANG_EXPLAINS and _job(record) in reasons.hung:
        return "JobHang"
    if record.rule == "Straggler" and reasons.throttled & set(_places(record)):
        return THROTTLE
    if record.rule not in BLIND_TO and confined_to(record, reasons.silent, nodes_of_job):
        return "NoData"
    return None


def confined_to(record: AlertRecord, nodes: Set[Node], nodes_of_job: Mapping[str, frozenset[Node]]) -> bool:
    """Whether the alert is about one of these nodes, or about a job that runs on these only."""
    if not nodes:
        return False
    if "node" in record.labels:
        return node_of(record) in nodes
    own = nodes_of_job.get(record.labels.get("job_id", ""), frozenset())
    return bool(own) and own <= nodes


def explaining(records: Mapping[str, AlertRecord], inhibited_by: Mapping[str, str]) -> dict[str, AlertRecord]:
    """The records; a throttled GPU's with the stragglers that it explains, which are not sent themselves."""
    slow = [record for key, record in records.items() if inhibited_by.get(key) == THROTTLE and record.summary]
    return {key: _explaining(record, slow) for key, record in records.items()}


def _explaining(record: AlertRecord, slow: Iterable[AlertRecord]) -> AlertRecord:
    if record.rule not in THROTTLES or record.state not in FIRING:
        return record
    own = set(_throttled_at(record))
    told = "; ".join(sorted(one.summary for one in slow if own & set(_places(one))))
    if told == record.context.get("explains", ""):
        return record
    kept = {key: value for key, value in record.context.items() if key != "explains"}
    return replace(record, context={**kept, "explains": told} if told else kept)


def node_of(record: AlertRecord) -> Node:
    """Cluster and name of the node an alert is about."""
    return record.labels.get("cluster", ""), record.labels.get("node", "")


def _job(record: AlertRecord) -> tuple[str, str]:
    return record.labels.get("cluster", ""), record.labels.get("job_id", "")


def _places(record: AlertRecord) -> list[tuple[str, ...]]:
    """Where a slow part is: the GPU by its index or UUID where the alert names one, else the node."""
    known = _words(record)
    home = (record.labels.get("cluster", ""), known.get("node", ""))
    if known.get("gpu"):
        return [("gpu", *home, known["gpu"])]
    return [("node", *home)] if known.get("node") else []


def _throttled_at(record: AlertRecord) -> list[tuple[str, ...]]:
    """All that a throttled GPU explains: itself, by index and by UUID, and its node."""
    known = _words(record)
    home = (record.labels.get("cluster", ""), known.get("node", ""))
    names = [known[key] for key in ("gpu", "index") if known.get(key)]
    return [*(("gpu", *home, name) for name in names), ("node", *home)]


def _words(record: AlertRecord) -> dict[str, str]:
    given = {key: str(value) for key, value in record.values.items() if value is not None}
    return {**given, **record.labels}
