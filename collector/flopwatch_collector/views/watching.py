"""What rules and diagnosis watch, from timelines, newest samples and alerts: courses, silences, suspects, health."""

from collections.abc import Iterable, Mapping

import numpy as np

from flopwatch_collector.compute import rollup
from flopwatch_collector.compute.detection import baseline
from flopwatch_collector.compute.detection.middle import middle
from flopwatch_collector.compute.detection.overdue import Silence
from flopwatch_collector.compute.detection.peers import GpuSignal, LinkSignal
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.mfu import tokens_of, useful_seconds
from flopwatch_collector.compute.throttle import THROTTLE_BITS
from flopwatch_collector.compute.timeline import CHECKPOINT, JobTimeline
from flopwatch_collector.model import PHASE_KINDS, Columns, FleetState
from flopwatch_collector.views.present import PHASE_BUCKETS, JobNow
from flopwatch_collector.watched import Frozen, StepHistory

HISTORY_STEPS = baseline.BASELINE_STEPS + baseline.NEWEST_STEPS
SAME_TOKENS = 0.05
"""Batches whose tokens differ less are one batch."""
PAUSE_GAPS = 5.0
ROLLUP_SECONDS = 300.0
FRESH_INTERVALS = 2.5
PAUSED = frozenset(("STARTUP", "RECOVERY", "CKPT", "EVAL"))


def history_of(job: JobNow) -> StepHistory | None:
    """The newest steady steps of the present session and batch; None without any."""
    if job.timeline is None:
        return None
    steps = job.timeline.steps
    usable = ~steps["lost"] & steps["is_steady"] & (steps["seconds"] > 0) & (steps["steps_covered"] > 0)
    chosen = np.flatnonzero(usable)
    if not chosen.size:
        return None
    chosen = chosen[steps["session"][chosen] == steps["session"][chosen[-1]]]
    timed = take_rows(steps, chosen[-HISTORY_STEPS:])
    tokens = tokens_of(timed, job.basis.run) / timed["steps_covered"]
    timed, batch = _one_batch(timed, tokens)
    ratios = useful_seconds(timed, job.basis) / timed["seconds"]
    run = job.basis.run
    return StepHistory(
        config=f"{run.world_size}/{run.sequence_length}/{run.dtype}/{batch}",
        seconds=tuple((timed["seconds"] / timed["steps_covered"]).tolist()),
        ratios=tuple(ratios.tolist()) if np.isfinite(ratios).all() else (),
        end_seconds=float(timed["ts"][-1]),
    )


def _one_batch(timed: Columns, tokens: np.ndarray) -> tuple[Columns, int | None]:
    """The newest rows of one batch size, and it; all rows where batches vary by themselves or are not known."""
    newest = tokens[-baseline.NEWEST_STEPS :]
    if not np.isfinite(newest).all() or not newest.size:
        return timed, None
    usual = middle(newest)
    if usual <= 0 or float(np.abs(newest / usual - 1.0).max()) > SAME_TOKENS:
        return timed, None
    other = np.flatnonzero(~(np.abs(tokens / usual - 1.0) <= SAME_TOKENS))
    first = int(other[-1]) + 1 if other.size else 0
    return {name: values[first:] for name, values in timed.items()}, round(usual)


def frozen_of(values: Mapping[str, object] | None) -> Frozen | None:
    """What the job's active MfuDrop is held against."""
    if values is None:
        return None
    config, ratio = values.get("config"), values.get("frozen")
    if not isinstance(config, str) or not isinstance(ratio, float):
        return None
    return Frozen(config=config, baseline_ratio=ratio)


def silence_of(
    state: FleetState, job: JobNow, samples: Columns, rolled: Columns | None, now: float
) -> Silence | None:
    """How long the run has been silent and what its GPUs show since; None of a job that reports no run.

    ``samples`` are the newest of its GPUs.
    """
    timeline = job.timeline
    if timeline is None or timeline.last_progress_seconds is None:
        return None
    last = timeline.last_progress_seconds
    silent = np.flatnonzero(samples["ts"] > last + np.nan_to_num(samples["interval_seconds"], nan=10.0))
    usual = None if rolled is None else _usual_power(rolled, last)
    power = _highest(samples["power_watts"][silent])
    phase = job.bucket if job.bucket in PAUSED else None
    return Silence(
        overdue_seconds=now - last,
        gap_seconds=timeline.report_gap_seconds,
        longest_pause_seconds=longest_pause(timeline),
        tensor_active_ratio=_highest(samples["tensor_active_ratio"][silent]),
        power_ratio=power / usual if power is not None and usual else None,
        phase=phase,
        longest_phase_seconds=None if phase is None else _longest_phase(timeline, phase),
        source_alive=_source_alive(state, job, timeline, now),
        ledger_hang=job.bucket == "HANG",
    )


def _usual_power(rolled: Columns, until: float) -> float | None:
    """The run's mean power in the rollup windows that ended by a time; None where there is none."""
    return rollup.mean(take(rolled, rolled["ts"] + ROLLUP_SECONDS <= until), "power_watts")


def longest_pause(timeline: JobTimeline) -> float | None:
    """Longest silence between two steps of a session that no phase explains; None where all are usual."""
    steps = timeline.steps
    if steps["ts"].size < 3:
        return None
    same = np.diff(steps["session"]) == 0
    gaps = np.diff(steps["ts"])
    inside = np.zeros(gaps.size, dtype=np.bool_)
    phases = timeline.phases
    for begin, end in zip(phases["ts"].tolist(), phases["end"].tolist(), strict=True):
        inside |= (steps["ts"][1:] > begin) & (steps["ts"][:-1] < (end if np.isfinite(end) else np.inf))
    gaps = gaps[same & ~inside & (gaps > 0)]
    if not gaps.size or gaps.max() <= PAUSE_GAPS * middle(gaps):
        return None
    return float(gaps.max())


def _longest_phase(timeline: JobTimeline, bucket: str) -> float | None:
    """The longest finished phase of the kind that a bucket stands for; None without any."""
    kinds = [PHASE_KINDS.index(kind) for kind, own in PHASE_BUCKETS.items() if own == bucket]
    phases = timeline.phases
    chosen = np.isin(phases["kind"], kinds) & np.isfinite(phases["end"])
    return float((phases["end"] - phases["ts"])[chosen].max()) if chosen.any() else None


def _highest(values: np.ndarray) -> float | None:
    """The highest value over GPUs; None unless all are known."""
    return float(values.max()) if values.size and np.isfinite(values).all() else None


def _source_alive(state: FleetState, job: JobNow, timeline: JobTimeline, now: float) -> bool:
    """Whether the node that sent the newest step reports, and its log can be read."""
    if not timeline.steps["ts"].size:
        return False
    number = int(timeline.steps["node"][-1])
    node = state.nodes.get(number)
    problems = [part.log_problem for part in job.record.parts if part.node == number]
    if node is None or any(problems):
        return False
    return now - node.last_seen_seconds <= max(30.0, FRESH_INTERVALS * node.interval_seconds)


def gpu_signals(state: FleetState, samples: Columns, now: float) -> tuple[GpuSignal, ...]:
    """The newest of every GPU of a run that is fresh and at work."""
    interval = np.nan_to_num(samples["interval_seconds"], nan=10.0)
    fresh = (now - samples["ts"] <= FRESH_INTERVALS * np.maximum(interval, 10.0)) & ~(
        samples["kernel_active_ratio"] < 0.05
    )
    rows = take(samples, fresh)
    return tuple(_gpu(state, rows, index) for index in range(rows["ts"].size))


def _gpu(state: FleetState, rows: Columns, index: int) -> GpuSignal:
    number, node = int(rows["gpu"][index]), int(rows["node"][index])
    gpu, place = state.gpus.get(number), state.nodes.get(node)
    reasons = known(rows["clock_event_reasons"][index])
    name = str(number) if gpu is None else str(gpu.index) if gpu.index is not None else gpu.uuid
    return GpuSignal(
        node=place.name if place is not None else f"node {node}",
        gpu=name,
        sm_clock_hertz=known(rows["sm_clock_hertz"][index]),
        power_watts=known(rows["power_watts"][index]),
        tensor_active_ratio=known(rows["tensor_active_ratio"][index]),
        throttle_share=None if reasons is None else float(bool(int(reasons) & THROTTLE_BITS)),
        power_cap_share=None if reasons is None else float(int(reasons) & 0x04 != 0),
    )


def link_signals(state: FleetState, traffic: Columns, nodes: Iterable[int]) -> tuple[LinkSignal, ...]:
    """Throughput of these nodes, where it is known."""
    wanted = set(nodes)
    rate = traffic["transmit_bytes_per_second"] + traffic["receive_bytes_per_second"]
    return tuple(
        LinkSignal(node=state.nodes[number].name, bytes_per_second=known(rate[index]))
        for index, number in enumerate(traffic["node"].astype(np.int64).tolist())
        if number in wanted and number in state.nodes
    )


def saves_of(timeline: JobTimeline | None) -> tuple[float, ...]:
    """How long the run's blocking checkpoints took, oldest first."""
    if timeline is None:
        return ()
    phases = timeline.phases
    chosen = (phases["kind"] == CHECKPOINT) & np.isfinite(phases["end"]) & (phases["blocking"] > 0)
    return tuple((phases["end"][chosen] - phases["ts"][chosen]).tolist())


def launches_without_progress(timeline: JobTimeline | None) -> int | None:
    """The newest launches that all went on from one and the same step; None where that is not known."""
    if timeline is None or not timeline.sessions:
        return None
    newest = timeline.sessions[-1].resumed_from_step
    if newest is None:
        return None
    if saves_after(timeline):
        return 0
    count = 0
    for session in reversed(timeline.sessions):
        if session.resumed_from_step != newest:
            break
        count += 1
    return count


def saves_after(timeline: JobTimeline) -> bool:
    """Whether the newest session has finished a checkpoint."""
    begin = timeline.sessions[-1].begin_seconds or np.inf
    phases = timeline.phases
    done = (phases["kind"] == CHECKPOINT) & np.isfinite(phases["end"]) & (phases["ts"] >= begin)
    return bool((done & ~(phases["committed"] == 0)).any())


def known(value: float) -> float | None:
    """A value of a column; None where it is not known."""
    return float(value) if np.isfinite(value) else None


def by_job(latest: Columns) -> dict[int, Columns]:
    """The newest samples by job."""
    held = take(latest, np.nan_to_num(latest["job"]) > 0)
    if not held["ts"].size:
        return {}
    order = np.argsort(held["job"], kind="stable")
    numbers, first = np.unique(held["job"][order], return_index=True)
    parts = np.split(order, first[1:])
    return {int(number): take_rows(held, rows) for number, rows in zip(numbers.tolist(), parts, strict=True)}


def take_rows(rows: Columns, index: np.ndarray) -> Columns:
    """Rows by their place."""
    return {name: values[index] for name, values in rows.items()}
