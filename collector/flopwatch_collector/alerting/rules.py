"""The alert rules: pure functions from what is known of jobs, nodes and the fleet to readings.

Levels and times are in `AlertSettings` where a site may want its own; the others are named here. A rule gives a
reading for everything it could judge, so that the state machine can tell *good* from *not seen*.
"""

from collections.abc import Callable, Iterator

from flopwatch.query import JobRow, Severity
from flopwatch_collector.alerting.state import STALE_AFTER_SECONDS, Condition, Reading
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import Facts, JobFacts, NodeFacts

JUDGED_KINDS = frozenset(("pretrain", "finetune", "unknown"))
"""Kinds of job that absolute MFU rules apply to."""
IDLE_BUCKETS = frozenset(("HELD_IDLE", "HELD_EMPTY"))
PAUSING_BUCKETS = frozenset(("STARTUP", "RECOVERY", "CKPT", "EVAL"))
UNJUDGED_BUCKETS = frozenset(("HANG", "HELD_IDLE", "HELD_EMPTY", "UNKNOWN", "FAULT", "MAINT"))
"""A run without progress has no MFU to judge; other rules speak of it."""
HIGH_UTIL_RATIO = 0.90
LOW_MFU_RATIO = 0.30
LOW_TENSOR_RATIO = 0.15
HIGH_UTIL_FOR_SECONDS = 1_800.0
HIGH_UTIL_KEEP_SECONDS = 600.0
IDLE_CRITICAL_SECONDS = 3_600.0
STRAGGLER_FOR_SECONDS = 900.0
FRESH_STEPS_SECONDS = 60.0
"""Steps newer than this are present evidence, whatever the usual time between reports."""
SILENT_INTERVALS = 2.5
"""A node is silent when its newest sample is older than this many of its intervals."""


Rule = Callable[[Facts, AlertSettings], Iterator[Reading]]


def mfu_low(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """MFU below the job's own target for a time; jobs without a target have no absolute level."""
    keep = settings.mfu_low_keep_seconds
    for job in facts.jobs:
        mfu, target = job.row.mfu.measured_ratio, job.row.target.ratio
        if target is None or job.row.kind not in JUDGED_KINDS:
            yield _gone("MfuLow", job, "no_target")
            continue
        yield Reading(
            rule="MfuLow",
            severity="warning",
            labels=_identity(job.row),
            condition=_mfu_condition(job, settings, facts.now),
            time_seconds=job.row.mfu.window_end_seconds or job.row.last_step_seconds or 0.0,
            for_seconds=settings.mfu_low_for_seconds,
            keep_seconds=settings.mfu_low_for_seconds if keep is None else keep,
            values={
                "job": job.row.name,
                "mfu": mfu,
                "target": target,
                "target_source": job.row.target.source,
            },
            summary=f"{job.row.name}: MFU {_percent(mfu)} below target {_percent(target)}",
            gap_seconds=_gap(job, settings),
            stale_after_seconds=max(STALE_AFTER_SECONDS, 3.0 * (job.report_gap_seconds or 0.0)),
            gone_reason="ended",
        )


def _mfu_condition(job: JobFacts, settings: AlertSettings, now: float) -> Condition:
    mfu, target = job.row.mfu.measured_ratio, job.row.target.ratio or 0.0
    if job.row.state == "ended":
        return "gone"
    if job.bucket in PAUSING_BUCKETS:
        return "paused"
    if mfu is None or not _judgeable(job, now):
        return "missing"
    if job.steps_since_start is not None and job.steps_since_start < settings.warmup_steps:
        return "paused"
    if mfu < target:
        return "bad"
    return "good" if mfu >= min(1.0, target * settings.mfu_low_clear_factor) else "between"


def _judgeable(job: JobFacts, now: float) -> bool:
    """Whether the MFU is a measured one, of steps that still come."""
    end = job.row.mfu.window_end_seconds
    fresh = end is not None and now - end <= max(FRESH_STEPS_SECONDS, 3.0 * (job.report_gap_seconds or 0.0))
    return fresh and job.row.mfu.basis != "hardware" and job.bucket not in UNJUDGED_BUCKETS


def high_util_low_mfu(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """Kernels nearly always resident, yet little arithmetic done: the fault that utilisation hides."""
    for job in facts.jobs:
        if job.row.kind not in JUDGED_KINDS:
            yield _gone("HighUtilLowMfu", job, "not_judged")
            continue
        mfu = job.row.mfu.measured_ratio
        yield Reading(
            rule="HighUtilLowMfu",
            severity="warning",
            labels=_identity(job.row),
            condition=_high_util_condition(job),
            time_seconds=job.data_seconds or 0.0,
            for_seconds=HIGH_UTIL_FOR_SECONDS,
            keep_seconds=HIGH_UTIL_KEEP_SECONDS,
            values={
                "job": job.row.name,
                "mfu": mfu,
                "kernel_active": job.row.kernel_active_ratio,
                "tensor_active": job.row.tensor_active_ratio,
            },
            summary=(
                f"{job.row.name}: GPUs busy {_percent(job.row.kernel_active_ratio)} of the time, MFU "
                f"{_percent(mfu)}, tensor cores active {_percent(job.row.tensor_active_ratio)}"
            ),
            gap_seconds=_gap(job, settings),
        )


def _high_util_condition(job: JobFacts) -> Condition:
    if job.row.state == "ended":
        return "gone"
    if job.bucket in PAUSING_BUCKETS:
        return "paused"
    low = _low_work(job)
    busy = job.row.kernel_active_ratio
    if busy is None or low is None or job.data_seconds is None or job.bucket in UNJUDGED_BUCKETS:
        return "missing"
    return "bad" if busy >= HIGH_UTIL_RATIO and low else "good"


def _low_work(job: JobFacts) -> bool | None:
    """Whether the job's MFU or tensor activity is low; None when neither is known. A met target is not low."""
    mfu, tensor, target = job.row.mfu.measured_ratio, job.row.tensor_active_ratio, job.row.target.ratio
    if mfu is not None:
        if target is not None and mfu >= target:
            return False
        return mfu < LOW_MFU_RATIO or (tensor is not None and tensor < LOW_TENSOR_RATIO)
    return None if tensor is None else tensor < LOW_TENSOR_RATIO


def job_hang(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """The ledger says that the run makes no progress: its clock and its corroboration are the ledger's."""
    for job in facts.jobs:
        condition: Condition = "bad" if job.bucket == "HANG" else "good"
        if job.row.state == "ended":
            condition = "gone"
        elif job.bucket is None or job.bucket == "UNKNOWN":
            condition = "missing"
        since = job.bucket_since_seconds if condition == "bad" else None
        yield Reading(
            rule="JobHang",
            severity="critical",
            labels=_identity(job.row),
            condition=condition,
            time_seconds=facts.now,
            for_seconds=0.0,
            keep_seconds=0.0,
            values={
                "job": job.row.name,
                "since_seconds": since,
                "last_step": job.row.last_step,
                "gpus": job.row.gpus or job.row.gpus_observed,
            },
            summary=f"{job.row.name}: no training progress, {job.row.gpus or job.row.gpus_observed} GPUs wait",
            gap_seconds=_evaluation_gap(settings),
            since_seconds=since,
        )


def idle_held(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """GPUs held by a job that does nothing with them; critical after an hour."""
    for job in facts.jobs:
        condition: Condition = "bad" if job.bucket in IDLE_BUCKETS else "good"
        if job.row.state == "ended":
            condition = "gone"
        elif job.bucket is None or job.bucket == "UNKNOWN":
            condition = "missing"
        since = job.bucket_since_seconds if condition == "bad" else None
        held = facts.now - since if since is not None else 0.0
        critical = held >= max(IDLE_CRITICAL_SECONDS, 2.0 * settings.idle_held_for_seconds)
        severity: Severity = "critical" if critical else "warning"
        yield Reading(
            rule="IdleHeld",
            severity=severity,
            labels=_identity(job.row),
            condition=condition,
            time_seconds=facts.now,
            for_seconds=settings.idle_held_for_seconds,
            keep_seconds=0.0,
            values={
                "job": job.row.name,
                "gpus": job.row.gpus or job.row.gpus_observed,
                "hours": held / 3_600.0,
                "user": job.row.user,
            },
            summary=(
                f"{job.row.name}: {job.row.gpus or job.row.gpus_observed} GPUs held without work"
                f" for {held / 60.0:.0f} min"
            ),
            gap_seconds=_evaluation_gap(settings),
            since_seconds=since,
        )


def straggler(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """One node of a job is slower than its peers, where diagnosis says so."""
    for job in facts.jobs:
        cause = job.row.cause
        condition: Condition = "bad" if cause is not None and cause.code == "straggler" else "good"
        if job.row.state == "ended":
            condition = "gone"
        elif job.bucket in PAUSING_BUCKETS:
            condition = "paused"
        elif job.bucket is None or job.bucket in UNJUDGED_BUCKETS:
            condition = "missing"
        node = str(cause.values.get("node", "")) if cause is not None and condition == "bad" else ""
        yield Reading(
            rule="Straggler",
            severity="warning",
            labels=_identity(job.row),
            condition=condition,
            time_seconds=job.data_seconds or facts.now,
            for_seconds=STRAGGLER_FOR_SECONDS,
            keep_seconds=STRAGGLER_FOR_SECONDS,
            values={"job": job.row.name, "node": node or None} if condition == "bad" else {},
            summary=f"{job.row.name}: one of its nodes is slower than its peers ({node or 'unknown'})"
            if condition == "bad"
            else "",
            gap_seconds=_gap(job, settings),
        )


def node_down(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """All GPUs of a node are known to be faulty, or the node is silent where its health says so."""
    for node in facts.nodes:
        condition: Condition = "bad" if node.bucket == "FAULT" else "good"
        if condition == "good" and _silent(node, facts.now):
            condition = "missing"
        yield Reading(
            rule="NodeDown",
            severity="critical",
            labels={"cluster": node.cluster, "node": node.node},
            condition=condition,
            time_seconds=facts.now,
            for_seconds=60.0,
            keep_seconds=600.0,
            values={"node": node.node, "gpus": node.gpus},
            summary=f"Node {node.node} is down: {node.gpus} GPUs",
            gap_seconds=_evaluation_gap(settings),
        )


def no_data(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """A node's agent is silent: nothing is known of it. Planned maintenance is not silence."""
    for node in facts.nodes:
        silent = _silent(node, facts.now) and node.bucket != "MAINT"
        yield Reading(
            rule="NoData",
            severity="warning",
            labels={"cluster": node.cluster, "node": node.node},
            condition="bad" if silent else "good",
            time_seconds=facts.now,
            for_seconds=settings.no_data_for_seconds,
            keep_seconds=node.interval_seconds,
            values={"node": node.node, "gpus": node.gpus, "last_seen_seconds": node.last_seen_seconds},
            summary=f"No data from {node.node} ({node.gpus} GPUs)",
            gap_seconds=_evaluation_gap(settings),
        )


def below_breakeven(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """The fleet's utilisation has gone below the line and stayed there; information, never a page."""
    verdict = facts.verdict
    if verdict is None:
        return
    condition: Condition = "bad" if verdict.code == "below_sustained" else "between"
    if verdict.code == "insufficient_data":
        condition = "missing"
    elif verdict.code == "above_sustained":
        condition = "good"
    mean, line = verdict.mean_30d_ratio, verdict.line_ratio
    yield Reading(
        rule="BelowBreakeven",
        severity="info",
        labels={"cluster": facts.cluster},
        condition=condition,
        time_seconds=facts.now,
        for_seconds=0.0,
        keep_seconds=0.0,
        values={"mean": mean, "line": None if verdict.never else line},
        summary=f"30-day utilisation {_percent(mean)}: owning pays at no utilisation at these costs"
        if verdict.never
        else f"30-day utilisation {_percent(mean)} below the {_percent(line)} breakeven line",
        gap_seconds=_evaluation_gap(settings),
    )


RULES: tuple[Rule, ...] = (
    mfu_low,
    job_hang,
    idle_held,
    high_util_low_mfu,
    straggler,
    node_down,
    no_data,
    below_breakeven,
)


def read_all(facts: Facts, settings: AlertSettings) -> tuple[Reading, ...]:
    """The readings of all rules."""
    return tuple(reading for rule in RULES for reading in rule(facts, settings))


def _identity(row: JobRow) -> dict[str, str]:
    return {"cluster": row.cluster, "job_id": row.job_id}


def _gone(rule: str, job: JobFacts, reason: str) -> Reading:
    ended = job.row.state == "ended"
    return Reading(
        rule=rule,
        severity="warning",
        labels=_identity(job.row),
        condition="gone",
        time_seconds=job.row.last_step_seconds or 0.0,
        for_seconds=0.0,
        keep_seconds=0.0,
        gone_reason="ended" if ended else reason,
    )


def _silent(node: NodeFacts, now: float) -> bool:
    return now - node.last_seen_seconds > SILENT_INTERVALS * node.interval_seconds


def _gap(job: JobFacts, settings: AlertSettings) -> float:
    return max(_evaluation_gap(settings), 3.0 * (job.report_gap_seconds or 0.0))


def _evaluation_gap(settings: AlertSettings) -> float:
    """Two evaluations may fail between two that count."""
    return max(60.0, 3.0 * settings.evaluate_seconds)


def _percent(ratio: float | None) -> str:
    return "unknown" if ratio is None else f"{ratio * 100:.1f} %"
