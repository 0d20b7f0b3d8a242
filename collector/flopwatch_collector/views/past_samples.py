"""What raw samples say of the past: throttled GPUs, memory errors, and who held jobs up; as far back as can be paid."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from flopwatch_collector.compute.detection.peers import GpuSignal, Suspect, suspect_of
from flopwatch_collector.compute.diagnosis.window import by_key
from flopwatch_collector.compute.throttle import THROTTLE_BITS
from flopwatch_collector.model import Columns, FleetState, Gpu
from flopwatch_collector.past import GpuErrorsAt, SuspectAt, ThrottleStretch
from flopwatch_collector.store.port import Store
from flopwatch_collector.views.watching import known

MOST_SAMPLES = 10_000_000
"""A few seconds of processor time: a week of 160 GPUs at 10 s, or three hours of 10,000."""
PIECE_SAMPLES = 1_000_000
PIECE_SECONDS = (900.0, 21_600.0)
"""Read at once: at least and at most."""
REPORT_SECONDS = 300.0
IDLE_BIT = 0x01
AT_WORK_RATIO = 0.05
APART_INTERVALS = 3.0
HEALTH = ("node", "interval_seconds", "clock_event_reasons", "ecc_uncorrected", "remapped_rows")
PACE = ("node", "job", "kernel_active_ratio", "sm_clock_hertz", "power_watts", "tensor_active_ratio")


@dataclass(kw_only=True, slots=True)
class RawPast:
    """What was found, by node number, and of jobs."""

    start_seconds: float
    throttles: dict[int, list[ThrottleStretch]] = field(default_factory=dict)
    errors: dict[int, list[GpuErrorsAt]] = field(default_factory=dict)
    suspects: list[SuspectAt] = field(default_factory=list)


def raw_past(store: Store, state: FleetState, start: float, end: float) -> RawPast:
    """The newest part of the span that raw samples are read of, at most ``MOST_SAMPLES``."""
    gpus = sorted(number for number, gpu in state.gpus.items() if gpu.to_seconds is None)
    intervals = [node.interval_seconds for node in state.nodes.values()]
    each = float(np.median(intervals)) / len(gpus) if gpus and intervals else 0.0
    seconds, (least, most) = MOST_SAMPLES * each, PIECE_SECONDS
    piece = min(most, max(least, PIECE_SAMPLES * each // REPORT_SECONDS * REPORT_SECONDS))
    first = max(start, (end - seconds) // REPORT_SECONDS * REPORT_SECONDS)
    found = RawPast(start_seconds=first)
    last: dict[int, tuple[float, float]] = {}
    begin = first
    while gpus and begin < end:
        until = min(end, begin + piece)
        samples = by_key(store.gpu_samples(begin, until, HEALTH, gpus=gpus), "gpu")
        for number, rows in samples.items():
            _health(found, state.gpus[number], rows, last)
        found.suspects += _suspects(state, store.gpu_series(begin, until, REPORT_SECONDS, PACE, gpus))
        begin = until
    return found


def _health(found: RawPast, gpu: Gpu, rows: Columns, last: dict[int, tuple[float, float]]) -> None:
    """Throttling and errors of one GPU in a piece; ``last``: its counters at the end of the piece before."""
    node = int(rows["node"][-1])
    reasons = np.nan_to_num(rows["clock_event_reasons"]).astype(np.int64)
    for stretch in _stretches(gpu, rows, reasons):
        _put(found.throttles.setdefault(node, []), stretch, APART_INTERVALS * _interval(rows))
    counters = np.column_stack((rows["ecc_uncorrected"], rows["remapped_rows"]))
    before = np.vstack((last.get(gpu.number, (np.nan, np.nan)), counters[:-1]))
    for place in np.flatnonzero((counters > before).any(axis=1)).tolist():
        errors, remapped = np.nan_to_num(np.maximum(counters[place] - before[place], 0.0)).tolist()
        found.errors.setdefault(node, []).append(
            GpuErrorsAt(
                time_seconds=float(rows["ts"][place]), gpu=gpu.uuid, index=gpu.index,
                uncorrected=int(errors), remapped=int(remapped),
            )
        )  # fmt: skip
    last[gpu.number] = (float(counters[-1, 0]), float(counters[-1, 1]))


def _interval(rows: Columns) -> float:
    known = rows["interval_seconds"][np.isfinite(rows["interval_seconds"])]
    return float(known[-1]) if known.size else 10.0


def _stretches(gpu: Gpu, rows: Columns, reasons: np.ndarray) -> Iterator[ThrottleStretch]:
    """Times of one and the same reasons, those with a slowdown at work."""
    edges = np.flatnonzero(np.diff(reasons)) + 1
    first = np.concatenate(([0], edges))
    last = np.concatenate((edges - 1, [reasons.size - 1]))
    held = ((reasons[first] & THROTTLE_BITS) != 0) & ((reasons[first] & IDLE_BIT) == 0)
    for begin, end in zip(first[held].tolist(), last[held].tolist(), strict=True):
        yield ThrottleStretch(
            start_seconds=float(rows["ts"][begin]), end_seconds=float(rows["ts"][end]), gpu=gpu.uuid,
            index=gpu.index, reasons=int(reasons[begin]),
        )  # fmt: skip


def _put(stretches: list[ThrottleStretch], one: ThrottleStretch, apart: float) -> None:
    """Add a stretch, to the GPU's newest where it goes on over the border of a piece."""
    for place in range(len(stretches) - 1, -1, -1):
        before = stretches[place]
        if before.gpu == one.gpu:
            if before.reasons == one.reasons and one.start_seconds - before.end_seconds <= apart:
                stretches[place] = ThrottleStretch(
                    start_seconds=before.start_seconds, end_seconds=one.end_seconds, gpu=one.gpu, index=one.index,
                    reasons=one.reasons,
                )  # fmt: skip
                return
            break
    stretches.append(one)


def _suspects(state: FleetState, means: Columns) -> Iterator[SuspectAt]:
    """Who is slower than its peers in each job and window, of GPUs at work."""
    jobs = means["job"]
    busy = (
        np.isfinite(jobs)
        & (jobs > 0)
        & (jobs == np.rint(jobs))
        & (means["kernel_active_ratio"] >= AT_WORK_RATIO)
    )
    order = np.flatnonzero(busy)
    order = order[np.lexsort((means["gpu"][order], jobs[order], means["ts"][order]))]
    if not order.size:
        return
    turns = (np.diff(jobs[order]) != 0) | (np.diff(means["ts"][order]) != 0)
    for rows in np.split(order, np.flatnonzero(turns) + 1):
        suspect = _suspect(state, {name: values[rows] for name, values in means.items()})
        job = state.jobs.get(int(jobs[rows[0]]))
        if suspect is not None and job is not None:
            at = float(means["ts"][rows[0]]) + REPORT_SECONDS
            yield SuspectAt(time_seconds=at, job_id=job.job_id, suspect=suspect)


def _suspect(state: FleetState, rows: Columns) -> Suspect | None:
    return suspect_of([_signal(state, rows, place) for place in range(rows["ts"].size)])


def _signal(state: FleetState, rows: Mapping[str, np.ndarray], place: int) -> GpuSignal:
    gpu, node = state.gpus.get(int(rows["gpu"][place])), state.nodes.get(int(rows["node"][place]))
    return GpuSignal(
        node=node.name if node is not None else "",
        gpu=None if gpu is None else str(gpu.index) if gpu.index is not None else gpu.uuid,
        sm_clock_hertz=known(rows["sm_clock_hertz"][place]),
        power_watts=known(rows["power_watts"][place]),
        tensor_active_ratio=known(rows["tensor_active_ratio"][place]),
    )
