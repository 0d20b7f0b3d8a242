"""What all rules share: identities, gaps, words, and when a run is judged at all."""

from flopwatch.query import JobRow
from flopwatch_collector.alerting.state import Condition, Reading
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import JobFacts, NodeFacts

JUDGED_KINDS = frozenset(("pretrain", "finetune", "unknown"))
"""Kinds of job that absolute MFU rules apply to."""
IDLE_BUCKETS = frozenset(("HELD_IDLE", "HELD_EMPTY"))
PAUSING_BUCKETS = frozenset(("STARTUP", "RECOVERY", "CKPT", "EVAL"))
UNJUDGED_BUCKETS = frozenset(("HANG", "HELD_IDLE", "HELD_EMPTY", "UNKNOWN", "FAULT", "MAINT"))
"""A run without progress has no MFU to judge; other rules speak of it."""
FRESH_STEPS_SECONDS = 60.0
"""Steps newer than this are present evidence, whatever the usual time between reports."""
SILENT_INTERVALS = 2.5
"""A node is silent when its newest sample is older than this many of its intervals."""


def identity(row: JobRow) -> dict[str, str]:
    """The labels of a job."""
    return {"cluster": row.cluster, "job_id": row.job_id}


def gone(rule: str, job: JobFacts, reason: str) -> Reading:
    """The reading of a job that a rule does not judge, or not any more."""
    ended = job.row.state == "ended"
    return Reading(
        rule=rule,
        severity="warning",
        labels=identity(job.row),
        condition="gone",
        time_seconds=job.row.last_step_seconds or 0.0,
        for_seconds=0.0,
        keep_seconds=0.0,
        gone_reason="ended" if ended else reason,
    )


def judgeable(job: JobFacts, now: float) -> bool:
    """Whether the MFU is a measured one, of steps that still come."""
    end = job.row.mfu.window_end_seconds
    fresh = end is not None and now - end <= max(FRESH_STEPS_SECONDS, 3.0 * (job.report_gap_seconds or 0.0))
    return fresh and job.row.mfu.basis != "hardware" and job.bucket not in UNJUDGED_BUCKETS


def silent(node: NodeFacts, now: float) -> bool:
    """Whether nothing has come from a node for 2.5 of its intervals."""
    return now - node.last_seen_seconds > SILENT_INTERVALS * node.interval_seconds


def gap(job: JobFacts, settings: AlertSettings) -> float:
    """The longest time between two readings of a job that its evidence covers."""
    return max(evaluation_gap(settings), 3.0 * (job.report_gap_seconds or 0.0))


def evaluation_gap(settings: AlertSettings) -> float:
    """Two evaluations may fail between two that count."""
    return max(60.0, 3.0 * settings.evaluate_seconds)


def percent(ratio: float | None) -> str:
    """A ratio in words."""
    return "unknown" if ratio is None else f"{ratio * 100:.1f} %"


def run_condition(job: JobFacts, settings: AlertSettings) -> Condition | None:
    """Why a run is not judged now: it has ended, it pauses, it warms up, or it makes no steps; None where it is."""
    if job.row.state == "ended":
        return "gone"
    if job.bucket in PAUSING_BUCKETS:
        return "paused"
    if job.steps_since_start is not None and job.steps_since_start < settings.warmup_steps:
        return "paused"
    return "missing" if job.bucket is None or job.bucket in UNJUDGED_BUCKETS else None
