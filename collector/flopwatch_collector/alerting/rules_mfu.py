"""Rules about how well a run uses its GPUs: against its target, its own past, its class, and its utilisation."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from flopwatch_collector.alerting.levels import Levels, levels
from flopwatch_collector.alerting.rules_reading import (
    JUDGED_KINDS,
    PAUSING_BUCKETS,
    UNJUDGED_BUCKETS,
    gap,
    gone,
    identity,
    judgeable,
    percent,
    run_condition,
)
from flopwatch_collector.alerting.state import STALE_AFTER_SECONDS, Condition, Reading
from flopwatch_collector.compute.detection import baseline
from flopwatch_collector.compute.detection.spikes import spike_share
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import Facts, JobFacts

CRITICAL_DROP = 0.70
SPIKE_STEPS = 200
HIGH_UTIL_RATIO = 0.90
LOW_TENSOR_RATIO = 0.15


def mfu_low(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """MFU below the job's own target for a time; jobs without a target have no absolute level."""
    keep = settings.mfu_low_keep_seconds
    for job in facts.jobs:
        mfu, target = job.row.mfu.measured_ratio, job.row.target.ratio
        if target is None or job.row.kind not in JUDGED_KINDS:
            yield gone("MfuLow", job, "no_target")
            continue
        yield Reading(
            rule="MfuLow",
            severity="warning",
            labels=identity(job.row),
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
            summary=f"{job.row.name}: MFU {percent(mfu)} below target {percent(target)}",
            gap_seconds=gap(job, settings),
            stale_after_seconds=max(STALE_AFTER_SECONDS, 3.0 * (job.report_gap_seconds or 0.0)),
            gone_reason="ended",
        )


def _mfu_condition(job: JobFacts, settings: AlertSettings, now: float) -> Condition:
    mfu, target = job.row.mfu.measured_ratio, job.row.target.ratio or 0.0
    if job.row.state == "ended":
        return "gone"
    if job.bucket in PAUSING_BUCKETS:
        return "paused"
    if mfu is None or not judgeable(job, now):
        return "missing"
    if job.steps_since_start is not None and job.steps_since_start < settings.warmup_steps:
        return "paused"
    if mfu < target:
        return "bad"
    return "good" if mfu >= min(1.0, target * settings.mfu_low_clear_factor) else "between"


def high_util_low_mfu(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """Kernels nearly always resident, yet little arithmetic done: the fault that utilisation hides."""
    for job in facts.jobs:
        if job.row.kind not in JUDGED_KINDS:
            yield gone("HighUtilLowMfu", job, "not_judged")
            continue
        mfu = job.row.mfu.measured_ratio
        yield Reading(
            rule="HighUtilLowMfu",
            severity="warning",
            labels=identity(job.row),
            condition=_high_util_condition(job, levels("HighUtilLowMfu", settings)),
            time_seconds=job.data_seconds or 0.0,
            for_seconds=levels("HighUtilLowMfu", settings).for_seconds,
            keep_seconds=levels("HighUtilLowMfu", settings).keep_seconds,
            values={
                "job": job.row.name,
                "mfu": mfu,
                "kernel_active": job.row.kernel_active_ratio,
                "tensor_active": job.row.tensor_active_ratio,
            },
            summary=(
                f"{job.row.name}: GPUs busy {percent(job.row.kernel_active_ratio)} of the time, MFU "
                f"{percent(mfu)}, tensor cores active {percent(job.row.tensor_active_ratio)}"
            ),
            gap_seconds=gap(job, settings),
        )


def _high_util_condition(job: JobFacts, own: Levels) -> Condition:
    if job.row.state == "ended":
        return "gone"
    if job.bucket in PAUSING_BUCKETS:
        return "paused"
    low = _low_work(job, own)
    busy = job.row.kernel_active_ratio
    if busy is None or low is None or job.data_seconds is None or job.bucket in UNJUDGED_BUCKETS:
        return "missing"
    return "bad" if busy >= HIGH_UTIL_RATIO and low else "good"


def _low_work(job: JobFacts, own: Levels) -> bool | None:
    """Whether the job's MFU or tensor activity is low; None when neither is known. A met target is not low."""
    mfu, tensor, target = job.row.mfu.measured_ratio, job.row.tensor_active_ratio, job.row.target.ratio
    if mfu is not None:
        if target is not None and mfu >= target:
            return False
        return mfu < own.level or (tensor is not None and tensor < LOW_TENSOR_RATIO)
    return None if tensor is None else tensor < LOW_TENSOR_RATIO


def mfu_drop(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """The run's newest steps against its own usual, frozen once the drop has begun, and against its own last day."""
    own = levels("MfuDrop", settings)
    for job in facts.jobs:
        seen = drop_of(job)
        ratio = None if seen is None else seen.ratio
        condition = run_condition(job, settings) or _between(ratio, own)
        yield Reading(
            rule="MfuDrop",
            severity="critical" if ratio is not None and ratio < CRITICAL_DROP else "warning",
            labels=identity(job.row),
            condition=condition,
            time_seconds=_steps_end(job),
            for_seconds=own.for_seconds,
            keep_seconds=own.keep_seconds,
            values={} if seen is None else {
                "job": job.row.name, "mfu": seen.newest, "baseline": seen.baseline, "config": seen.config,
                "frozen": seen.usual,
            },
            summary="" if seen is None else (
                f"{job.row.name}: MFU fell to {percent(seen.newest)} from {percent(seen.baseline)}"
            ),
            gap_seconds=gap(job, settings),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Drop:
    """A run's newest MFU, and what it is held against."""

    newest: float
    baseline: float
    """The higher of the two references."""
    usual: float
    """Its own usual: what is frozen while the alert lasts."""
    config: str

    @property
    def ratio(self) -> float:
        """Newest over baseline."""
        return self.newest / self.baseline


def drop_of(job: JobFacts) -> Drop | None:
    """The newest 20 steps against the baseline; None while either is not known."""
    steps = job.run.steps
    if steps is None:
        return None
    ratios = np.array(steps.ratios)
    newest, usual, frozen = baseline.newest_median(ratios), baseline.usual(ratios), job.run.frozen
    if frozen is not None and frozen.config == steps.config:
        usual = frozen.baseline_ratio
    if newest is None or not usual:
        return None
    fixed = baseline.fixed_reference(job.run.trend) or 0.0
    return Drop(newest=newest, baseline=max(usual, fixed), usual=usual, config=steps.config)


def _between(ratio: float | None, own: Levels) -> Condition:
    if ratio is None:
        return "missing"
    if ratio < own.level:
        return "bad"
    return "good" if ratio >= own.clear else "between"


def _steps_end(job: JobFacts) -> float:
    steps = job.run.steps
    end = None if steps is None else steps.end_seconds
    return end or job.row.mfu.window_end_seconds or job.row.last_step_seconds or 0.0


def mfu_below_norm(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """A run slow from its birth: below what runs of its model class reach on this GPU."""
    own = levels("MfuBelowNorm", settings)
    for job in facts.jobs:
        mfu, norm = job.row.mfu.measured_ratio, job.run.norm_ratio
        if norm is None or job.row.kind not in JUDGED_KINDS:
            yield gone("MfuBelowNorm", job, "no_norm")
            continue
        fresh = mfu is not None and judgeable(job, facts.now)
        ratio = mfu / norm if mfu is not None and fresh and norm > 0 else None
        yield Reading(
            rule="MfuBelowNorm",
            severity="info",
            labels=identity(job.row),
            condition=run_condition(job, settings) or _between(ratio, own),
            time_seconds=_steps_end(job),
            for_seconds=own.for_seconds,
            keep_seconds=own.keep_seconds,
            values={"job": job.row.name, "mfu": mfu, "norm": norm},
            summary=f"{job.row.name}: MFU {percent(mfu)}, runs like it reach {percent(norm)}",
            gap_seconds=gap(job, settings),
        )


def step_spikes(facts: Facts, settings: AlertSettings) -> Iterator[Reading]:
    """Many single steps far beyond the usual time."""
    own = levels("StepSpikes", settings)
    for job in facts.jobs:
        steps = job.run.steps
        share = None if steps is None else spike_share(np.array(steps.seconds[-SPIKE_STEPS:]))
        condition: Condition = "missing"
        if share is not None:
            condition = "bad" if share > own.level else "good" if share < own.clear else "between"
        yield Reading(
            rule="StepSpikes",
            severity="info",
            labels=identity(job.row),
            condition=run_condition(job, settings) or condition,
            time_seconds=_steps_end(job),
            for_seconds=own.for_seconds,
            keep_seconds=own.keep_seconds,
            values={"job": job.row.name, "share": share},
            summary=f"{job.row.name}: {percent(share)} of its steps take far longer than usual",
            gap_seconds=gap(job, settings),
        )
