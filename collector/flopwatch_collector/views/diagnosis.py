"""Why a job is slow, from what the pages already have: its timeline, rollups, ledger, samples and its siblings."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from flopwatch.answers.diagnosis import Diagnosis
from flopwatch.flops import Recompute, hardware_flops_per_token
from flopwatch.query import JobRow
from flopwatch.shape import ModelShape
from flopwatch.wire import RunFacts
from flopwatch_collector.compute import rollup
from flopwatch_collector.compute.buckets import CODE
from flopwatch_collector.compute.detection.change import change_of
from flopwatch_collector.compute.detection.spikes import spike_share
from flopwatch_collector.compute.diagnosis import window
from flopwatch_collector.compute.diagnosis.evidence import (
    Counters,
    Efficiency,
    Layout,
    RunEvidence,
    Shares,
    Sibling,
)
from flopwatch_collector.compute.diagnosis.order import diagnose
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.runs import TRUST
from flopwatch_collector.model import Columns, FleetState
from flopwatch_collector.views import watching
from flopwatch_collector.views.diagnosis_window import (
    Window,
    counters_of,
    host_of,
    links_of,
    pipeline_of,
    rotates,
    signals_of,
)
from flopwatch_collector.views.present import JobNow
from flopwatch_collector.views.sources import Moment

SAID_ALREADY = frozenset(
    ("held_idle", "held_empty", "startup", "recovery", "lost", "no_steps", "unknown_gpu")
)
"""Causes of the ledger that leave nothing to look for."""
ACTIVITY_SECONDS = 900.0
RECOMPUTE: Mapping[str, Recompute] = {"full": "full", "selective": "selective"}
"""What runs tell of their recompute and hardware FLOPs can be counted for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Others:
    """Runs that may be of the same kind, and the share of memory that their fullest GPU, and this run's, has left."""

    jobs: Mapping[int, JobNow]
    headrooms: Mapping[int, float] = field(default_factory=dict)


def diagnosis_of(
    moment: Moment,
    job: JobNow,
    rows: tuple[JobRow, Columns | None, Columns | None],
    others: Others,
    seen: Window,
) -> tuple[Diagnosis, ...]:
    """The likely causes. ``rows``: the job's row, its rollups, its ledger; nothing of a job without a run."""
    row = rows[0]
    if job.ended or job.timeline is None or (row.cause is not None and row.cause.code in SAID_ALREADY):
        return ()
    return diagnose(evidence_of(moment, job, rows, others, seen))


def evidence_of(
    moment: Moment,
    job: JobNow,
    rows: tuple[JobRow, Columns | None, Columns | None],
    others: Others,
    seen: Window,
) -> RunEvidence:
    """All that is known of a run, as diagnosis looks at it; ``rows`` as in ``diagnosis_of``."""
    row, rolled, ledger = rows
    samples = watching.by_job(moment.state.latest).get(job.record.number)
    if samples is None:
        samples = {name: values[:0] for name, values in moment.state.latest.items()}
    stages = layout_of(job.record.runs).pipeline
    gpus = watching.gpu_signals(moment.state, samples, moment.now)
    history = watching.history_of(job)
    seconds = np.array(history.seconds if history is not None else ())
    return RunEvidence(
        coverage_ratio=_coverage(row, samples, moment.now),
        silence=seen.pace.movement.seen_in(
            watching.silence_of(moment.state, job, samples, rolled, moment.now)
        ),
        counters=counters_of(moment.state, seen, _counters(moment, rolled, samples)),
        host=host_of(seen),
        shares=_shares(job, ledger, spike_share(seconds), seen),
        efficiency=_efficiency(row, others.jobs, job),
        gpus=signals_of(moment.state, job, seen, gpus, stages),
        links=links_of(moment.state, seen),
        pipeline=pipeline_of(job, stages),
        pipeline_stages=stages,
        rank_rotates=rotates(seen),
        change=change_of(seconds),
        this=_sibling(moment.state, job, others),
        siblings=_siblings(moment.state, job, others),
    )


def _coverage(row: JobRow, samples: Columns, now: float) -> float:
    """Fresh samples over the GPUs that the job has; 1 where these are not known."""
    expected = row.gpus or row.gpus_observed
    fresh = int((now - samples["ts"] <= 60.0).sum())
    return min(1.0, fresh / expected) if expected else 1.0


def _counters(moment: Moment, rolled: Columns | None, samples: Columns) -> Counters:
    newest = None if rolled is None else take(rolled, rolled["ts"] >= moment.now - ACTIVITY_SECONDS - 300.0)
    reasons = samples["clock_event_reasons"]
    known = np.isfinite(reasons)
    capped = (np.nan_to_num(reasons).astype(np.int64) & 0xFE) == 0x04
    return Counters(
        kernel_active_ratio=_mean(newest, "kernel_active_ratio"),
        sm_active_ratio=_mean(newest, "sm_active_ratio"),
        tensor_active_ratio=_mean(newest, "tensor_active_ratio"),
        dram_active_ratio=_of_all(samples["dram_active_ratio"]),
        power_cap_share=float(capped[known].mean()) if known.any() else None,
    )


def _mean(rows: Columns | None, name: str) -> float | None:
    return None if rows is None else rollup.mean(rows, name)


def _of_all(values: np.ndarray) -> float | None:
    return float(values.mean()) if values.size and np.isfinite(values).all() else None


def _shares(job: JobNow, ledger: Columns | None, spikes: float | None, seen: Window) -> Shares:
    own = _of_steps(spikes, seen)
    total = 0 if ledger is None else int(ledger["gpu_milliseconds"].sum())
    if ledger is None or not total:
        return own

    def share(bucket: str) -> float:
        return float(ledger["gpu_milliseconds"][ledger["bucket"] == CODE[bucket]].sum()) / total

    told = job.timeline is not None and bool(np.isfinite(job.timeline.steps["data_wait_seconds"]).any())
    return replace(
        own,
        data_wait_ratio=share("DATA_WAIT") if told or share("DATA_WAIT") > 0 else None,
        checkpoint_ratio=share("CKPT"),
        evaluation_ratio=share("EVAL"),
        checkpoint_recorded=bool(watching.saves_of(job.timeline)),
    )


def _of_steps(spikes: float | None, seen: Window) -> Shares:
    """What its steps lose: single long ones, dips that come back, communication that is not hidden."""
    dips = seen.pace.dips
    shares = Shares(
        spike_ratio=spikes,
        spikes_on_random_ranks=window.on_random_ranks(seen.steps, seen.waits),
        exposed_communication_ratio=window.exposed_communication(
            window.rank_times(seen.steps, seen.waits, seen.start, seen.end)
        ),
    )
    if dips is None:
        return shares
    return replace(
        shares,
        periodic_dip_ratio=dips.lost_ratio,
        dip_seconds=dips.dip_seconds,
        dip_period_seconds=dips.period_seconds,
        dip_period_steps=dips.period_steps,
        write_io_high=seen.pace.writes,
    )


def _efficiency(row: JobRow, others: Mapping[int, JobNow], job: JobNow) -> Efficiency:
    """The norm is what runs like it reach, else the target."""
    alike = [each.figure.value_ratio for each in others.values() if _alike(job, each)]
    known = sorted(value for value in alike if value is not None)
    norm = known[len(known) // 2] if len(known) >= 3 else row.target.ratio
    mfu = row.mfu.measured_ratio
    return Efficiency(mfu_ratio=mfu, hfu_ratio=_hfu(job, mfu), norm_ratio=norm, target_ratio=row.target.ratio)


def _hfu(job: JobNow, mfu: float | None) -> float | None:
    """MFU x hardware FLOPs / model FLOPs of a token, where the run told its recompute and its shape can be counted."""
    run, told = job.basis.run, layout_of(job.record.runs).recompute
    recompute = RECOMPUTE.get(told or "")
    if mfu is None or run.shape is None or not run.sequence_length or recompute is None:
        return None
    try:
        shape = ModelShape.from_dict(run.shape)
        hardware = hardware_flops_per_token(shape, run.sequence_length, recompute)
        model = hardware_flops_per_token(shape, run.sequence_length, "none")
    except ValueError:
        return None  # a shape that nothing can be counted of has no MFU by steps either
    return mfu * hardware / model


def _alike(job: JobNow, other: JobNow) -> bool:
    """Whether two runs are of one model, batch, sequence length and format on one GPU model."""
    mine, theirs = job.basis.run, other.basis.run
    return (
        other.record.number != job.record.number
        and mine.shape is not None
        and mine.shape == theirs.shape
        and mine.global_batch_size == theirs.global_batch_size
        and mine.sequence_length == theirs.sequence_length
        and job.figure.gpu_model == other.figure.gpu_model
        and job.figure.dtype == other.figure.dtype
    )


def _siblings(state: FleetState, job: JobNow, others: Others) -> tuple[Sibling, ...]:
    made = (_sibling(state, other, others) for other in others.jobs.values() if _alike(job, other))
    return tuple(one for one in made if one is not None)


def _sibling(state: FleetState, job: JobNow, others: Others) -> Sibling | None:
    mfu, gpus = job.figure.measured_ratio, job.figure.gpus
    if mfu is None or gpus is None:
        return None
    return Sibling(
        job_id=job.record.job_id,
        mfu_ratio=mfu,
        gpus=gpus,
        layout=replace(
            layout_of(job.record.runs), memory_headroom_ratio=others.headrooms.get(job.record.number)
        ),
        nodes=frozenset(state.nodes[part.node].name for part in job.record.parts if part.node in state.nodes),
    )


def layout_of(facts: tuple[RunFacts, ...]) -> Layout:
    """The parallel sizes of a run, each from its most trusted source."""
    ordered = sorted(facts, key=lambda one: (TRUST[one.source], -one.session))

    def first(name: str) -> int | None:
        return next((getattr(one, name) for one in ordered if getattr(one, name) is not None), None)

    recompute = next((one.activation_recompute for one in ordered if one.activation_recompute), None)
    return Layout(
        data=first("data_parallel"), tensor=first("tensor_parallel"), pipeline=first("pipeline_parallel"),
        context=first("context_parallel"), expert=first("expert_parallel"), recompute=recompute,
    )  # fmt: skip
