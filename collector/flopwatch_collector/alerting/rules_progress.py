"""Rules about a run that does not get on: hangs, idle GPUs, restarts, checkpoints."""

from collections.abc import Iterator
from statistics import median

from flopwatch.query import Severity
from flopwatch_collector.alerting.levels import Levels, levels
from flopwatch_collector.alerting.rules_reading import (
    IDLE_BUCKETS,
    evaluation_gap,
    identity,
    percent,
    run_condition,
)
from flopwatch_collector.alerting.state import Condition, Reading
from flopwatch_collector.compute.detection.overdue import corroboration, standing
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import Facts, JobFacts

SUSPECT_LEAST_SECONDS, SUSPECT_MOST_SECONDS = 30.0, 120.0
STORM_SECONDS = 1_800.0
SAVES = 3
CKPT_SHARE = 0.05
IDLE_CRITICAL_SECONDS = 3_600.0


def job_hang(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """The run makes no progress: the ledger says so, or two hardware signals say so earlier."""
    for job in facts.jobs:
        signals, early = _early_hang(job)
        condition: Condition = "bad" if job.bucket == "HANG" or early else "good"
        if job.row.state == "ended":
            condition = "gone"
        elif job.bucket is None or job.bucket == "UNKNOWN":
            condition = "missing"
        since = _hang_since(job, facts.now) if condition == "bad" else None
        yield Reading(
            rule="JobHang",
            severity="critical",
            labels=identity(job.row),
            condition=condition,
            time_seconds=facts.now,
            for_seconds=0.0,
            keep_seconds=0.0,
            values={
                "job": job.row.name,
                "since_seconds": since,
                "last_step": job.row.last_step,
                "signals": ", ".join(signals) or None,
                "gpus": job.row.gpus or job.row.gpus_observed,
            },
            summary=f"{job.row.name}: no training progress, {job.row.gpus or job.row.gpus_observed} GPUs wait",
            gap_seconds=evaluation_gap(settings),
            since_seconds=since,
        )


def _early_hang(job: JobFacts) -> tuple[tuple[str, ...], bool]:
    """The hardware's signals, and whether they make a hang of the silence before the ledger does."""
    silence = job.run.silence
    if silence is None:
        return (), False
    return corroboration(silence), standing(silence) == "hang"


def _hang_since(job: JobFacts, now: float) -> float | None:
    if job.bucket == "HANG":
        return job.bucket_since_seconds
    silence = job.run.silence
    return None if silence is None or silence.overdue_seconds is None else now - silence.overdue_seconds


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
            labels=identity(job.row),
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
            gap_seconds=evaluation_gap(settings),
            since_seconds=since,
        )


def hang_suspect(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """No step for longer than usual, and no hardware signal that says why."""
    for job in facts.jobs:
        silence = job.run.silence
        condition = run_condition(job, settings)
        state = "unknown" if silence is None else standing(silence)
        if condition is None or (condition == "paused" and state == "suspect"):
            condition = {"suspect": "bad", "unknown": "missing"}.get(state, "good")  # type: ignore[assignment]  # its words
        overdue = None if silence is None else silence.overdue_seconds
        yield Reading(
            rule="HangSuspect",
            severity="warning",
            labels=identity(job.row),
            condition=condition or "good",
            time_seconds=facts.now,
            for_seconds=_suspicion(job),
            keep_seconds=0.0,
            values={"job": job.row.name, "overdue_seconds": overdue},
            summary=f"{job.row.name}: no step for {(overdue or 0.0) / 60.0:.0f} min, longer than usual",
            gap_seconds=evaluation_gap(settings),
        )


def _suspicion(job: JobFacts) -> float:
    """How long a suspicion must hold: a run that goes on may not have reported yet."""
    return min(SUSPECT_MOST_SECONDS, max(SUSPECT_LEAST_SECONDS, 1.5 * (job.report_gap_seconds or 0.0)))


def restart_storm(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """Five launches within half an hour."""
    own = levels("RestartStorm", settings)
    for job in facts.jobs:
        recent = sum(1 for begin in job.run.launches if facts.now - begin <= STORM_SECONDS)
        condition: Condition = "bad" if recent >= own.level else "good" if recent <= own.clear else "between"
        if job.row.state == "ended":
            condition = "gone"
        yield Reading(
            rule="RestartStorm",
            severity="warning",
            labels=identity(job.row),
            condition=condition,
            time_seconds=facts.now,
            for_seconds=own.for_seconds,
            keep_seconds=own.keep_seconds,
            values={"job": job.row.name, "launches": recent},
            summary=f"{job.row.name}: launched {recent} times within half an hour",
            gap_seconds=evaluation_gap(settings),
        )


def no_progress(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """Three launches without a newer checkpoint: what is computed is lost each time."""
    own = levels("NoProgress", settings)
    for job in facts.jobs:
        count = job.run.launches_without_progress
        condition: Condition = "missing"
        if job.row.state == "ended":
            condition = "gone"
        elif count is not None:
            condition = "bad" if count >= own.level else "good"
        yield Reading(
            rule="NoProgress",
            severity="critical",
            labels=identity(job.row),
            condition=condition,
            time_seconds=facts.now,
            for_seconds=own.for_seconds,
            keep_seconds=own.keep_seconds,
            values={"job": job.row.name, "launches": count},
            summary=f"{job.row.name}: {count} launches without a newer checkpoint",
            gap_seconds=evaluation_gap(settings),
        )


def ckpt_slow(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """The newest three blocking saves take three times as long as usual, or saves a twentieth of the time."""
    own = levels("CkptSlow", settings)
    for job in facts.jobs:
        condition: Condition = "gone" if job.row.state == "ended" else _saves(job, own)
        newest = job.run.saves_seconds[-1] if job.run.saves_seconds else None
        yield Reading(
            rule="CkptSlow",
            severity="info",
            labels=identity(job.row),
            condition=condition,
            time_seconds=facts.now,
            for_seconds=own.for_seconds,
            keep_seconds=own.keep_seconds,
            values={"job": job.row.name, "seconds": newest, "share": job.run.checkpoint_share},
            summary=f"{job.row.name}: blocking checkpoints take long ({percent(job.run.checkpoint_share)} of the time)",
            gap_seconds=evaluation_gap(settings),
        )


def _saves(job: JobFacts, own: Levels) -> Condition:
    saves, share = job.run.saves_seconds, job.run.checkpoint_share
    if len(saves) < SAVES:
        return "missing"
    usual = median(saves[:-SAVES]) if len(saves) > SAVES else None
    if min(saves[-SAVES:]) > own.level * (usual if usual is not None else float("inf")):
        return "bad"
    if share is not None and share > CKPT_SHARE:
        return "bad"
    return "good" if usual is None or saves[-1] <= own.clear * usual else "between"
