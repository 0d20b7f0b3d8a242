"""The ledger: every GPU millisecond of capacity in exactly one bucket, by the first rule that matches.

Inside a run its records decide; inside another lease, and outside of leases, samples and declarations do.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from flopwatch.answers.goodput import Liability
from flopwatch_collector.compute import hang
from flopwatch_collector.compute.buckets import (
    CODE,
    INTEGER_COLUMNS,
    WINDOW_MILLISECONDS,
    distinct,
    empty_rows,
)
from flopwatch_collector.compute.declared import BROKEN, declared
from flopwatch_collector.compute.free import free_rows
from flopwatch_collector.compute.gpu_state import NO, UNKNOWN, YES, gpu_runs
from flopwatch_collector.compute.holds import holds_of, members_of
from flopwatch_collector.compute.inputs import JobWork, LedgerInputs
from flopwatch_collector.compute.job_state import (
    KINDS,
    Outcome,
    Silence,
    Stretches,
    kind_of,
    silences,
    stretches,
)
from flopwatch_collector.compute.liability import liable
from flopwatch_collector.compute.segments import Known, Segments, TrackTable, segments
from flopwatch_collector.compute.tracks import Hold, Track, amounts, shared_gpus, split_shared, tracks_of
from flopwatch_collector.model import Columns

Integers = npt.NDArray[np.int64]
STEP = kind_of("STEP")
FREE = kind_of("FREE", "unspecified")


class LedgerError(Exception):
    """The ledger does not add up to the capacity: a fault of the accounting, never of the data."""


def account(inputs: LedgerInputs, start: float, end: float) -> Columns:
    """Ledger rows of ``start`` to ``end`` (seconds), one a (window, node, job, bucket, reason).

    The stretch may begin and end inside windows; a row's ``ts`` is its window's start. Time after ``inputs.now`` is
    not counted.

    Raises:
        LedgerError: a window's rows do not add up to its capacity.
    """
    span = round(start * 1000.0), round(min(end, inputs.now) * 1000.0)
    if span[1] <= span[0]:
        return empty_rows()
    holds = holds_of(inputs, span)
    shared = shared_gpus(holds)
    tracks = tracks_of(inputs.gpus.values(), span)
    if shared:
        tracks = split_shared(tracks, holds, shared)
    if not tracks:
        return empty_rows()
    single = [hold for hold in holds if hold.gpu not in shared]
    rows = _account(inputs, span, tracks, (single, holds))
    check(rows, capacity(tracks))
    return _without_gone(rows, inputs.elastic) if inputs.elastic else rows


def _without_gone(rows: Columns, elastic: Collection[int]) -> Columns:
    """The rows without time in which an elastic node was not there: nothing is known of it and nobody holds it."""
    gone = (rows["bucket"] == CODE["UNKNOWN"]) & (rows["reason"] == 0)
    gone &= np.isin(rows["node"], np.fromiter(elastic, dtype=np.int64))
    return {name: values[~gone] for name, values in rows.items()}


def _account(
    inputs: LedgerInputs, span: tuple[int, int], tracks: list[Track], holds: tuple[list[Hold], list[Hold]]
) -> Columns:
    single, every = holds
    runs = gpu_runs(
        inputs.samples,
        inputs.now,
        idle_grace_seconds=inputs.policy.idle_grace_seconds,
        idle_watts=inputs.idle_watts,
    )
    table = TrackTable.of(tracks)
    marks = declared(inputs.events, inputs.gpus, span, _silent_since(inputs))
    known = Known(holds=single, shared_holds=every, runs=runs, declared=marks)
    found = segments(table, span, known)
    kind, job = _kinds(found)
    plain = ~found.run
    window = found.start // WINDOW_MILLISECONDS
    node = table.node[found.track]
    free = plain & (kind == FREE) if inputs.queues else np.zeros(plain.size, dtype=np.bool_)
    told = plain & ~free
    parts = [
        _stack([*(each[told] for each in (window, node, job, kind, found.amount)), np.zeros(told.sum())])
    ]
    parts += [_stack(columns) for columns in free_rows(inputs, table, found, free)]
    parts += _runs_rows(inputs, found, node)
    return _summed(np.concatenate(parts, axis=1))


def _silent_since(inputs: LedgerInputs) -> dict[int, float]:
    """GPUs out of order now that no event speaks of: since their newest sample."""
    broken = {gpu.number for gpu in inputs.gpus.values() if gpu.state in BROKEN}
    spoken = {
        int(number) for number in np.unique(np.nan_to_num(inputs.events["gpu"][_health(inputs.events)]))
    }
    result: dict[int, float] = {}
    for number in broken - spoken:
        times = inputs.samples["ts"][inputs.samples["gpu"] == number]
        newest = float(times.max()) if times.size else inputs.now
        result[number] = inputs.newest_seconds.get(number, newest)
    return result


def _health(events: Columns) -> npt.NDArray[np.bool_]:
    return np.array([str(kind) == "health" for kind in events["kind"]], dtype=np.bool_)


def _kinds(found: Segments) -> tuple[Integers, Integers]:
    """(kind, job) of segments outside of runs, by rules B and C."""
    leased = found.job > 0
    working, present = found.work != NO, found.process == YES
    dark = found.silent | ((found.process == UNKNOWN) & (found.work == UNKNOWN))
    unleased = (present & working) | ((found.process == UNKNOWN) & (found.work == YES))
    nobody = found.fixed & ~leased
    rules = (
        (leased & dark, kind_of("UNKNOWN", "leased")),
        (leased & (found.process == NO), kind_of("HELD_EMPTY")),
        (leased & (found.work == NO), kind_of("HELD_IDLE")),
        (leased & (found.work == UNKNOWN), kind_of("BUSY_OPAQUE", "idle_unknown")),
        (leased, kind_of("BUSY_OPAQUE")),
        (unleased & ~nobody, kind_of("BUSY_OPAQUE", "unleased")),
        (found.declared["maintenance"], kind_of("MAINT")),
        (found.declared["faulty"], kind_of("FAULT")),
        (nobody, kind_of("FREE", "unassigned")),
        (dark, kind_of("UNKNOWN")),
        (found.declared["spare"], kind_of("SPARE")),
        (present, kind_of("FREE", "stale_process")),
        (found.declared["stranded"], kind_of("FREE", "stranded")),
    )
    kind = np.select([rule for rule, _ in rules], [code for _, code in rules], FREE)
    opaque = kind == kind_of("BUSY_OPAQUE", "unleased")
    return kind.astype(np.int64), np.where(opaque, found.seen_job, found.job)


def _runs_rows(inputs: LedgerInputs, found: Segments, node: Integers) -> list[Integers]:
    """Rows of all runs."""
    rows = np.flatnonzero(found.run)
    rows = rows[np.argsort(found.job[rows], kind="stable")]
    cuts = np.flatnonzero(np.diff(found.job[rows])) + 1
    parts = np.split(rows, cuts) if rows.size else []
    return [_run_rows(inputs, int(found.job[part[0]]), _Places.of(found, node, part)) for part in parts]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Places:
    """Segments of one run, alike ones as one."""

    node: Integers
    start: Integers
    end: Integers
    amount: Integers
    count: Integers

    @classmethod
    def of(cls, found: Segments, node: Integers, part: Integers) -> "_Places":
        start, end, amount, nodes = found.start[part], found.end[part], found.amount[part], node[part]
        order = np.lexsort((amount, end, start, nodes))
        table = np.stack((nodes, start, end, amount))[:, order]
        first = np.flatnonzero(np.concatenate(([True], (np.diff(table, axis=1) != 0).any(axis=0))))
        count = np.diff(np.append(first, order.size))
        nodes, start, end, amount = table[:, first]
        return cls(node=nodes, start=start, end=end, amount=amount, count=count)


def _run_rows(inputs: LedgerInputs, number: int, places: _Places) -> Integers:
    """Rows of one run: its state over time, once for each of its GPUs."""
    start, end = places.start, places.end
    state = _state(inputs, number, (int(start.min()), int(end.max())))
    times = distinct(np.concatenate((start, end)))
    kinds, spent, useful = integrals(state, times)
    first, last = np.searchsorted(times, start), np.searchsorted(times, end)
    time = _scaled(spent[last] - spent[first], end - start, places.amount) * places.count[:, None]
    share = places.amount / (end - start)
    work = np.rint((useful[last] - useful[first]) * share).astype(np.int64) * places.count
    row, column = np.nonzero(time)
    kind = kinds[column]
    work = np.where(kind == STEP, np.minimum(work[row], time[row, column]), 0)
    window = start[row] // WINDOW_MILLISECONDS
    return _stack([window, places.node[row], np.full(row.size, number), kind, time[row, column], work])


def _scaled(time: Integers, length: Integers, share: Integers) -> Integers:
    """Each row's parts, which add up to ``length``, brought to add up to ``share``."""
    ends = np.cumsum(time, axis=1) * share[:, None] // length[:, None]
    return np.diff(ends, axis=1, prepend=0)


def _state(inputs: LedgerInputs, job: int, span: tuple[int, int]) -> Stretches:
    work = inputs.work.get(job, JobWork())
    times = (span[0] / 1000.0, span[1] / 1000.0)
    return stretches(
        inputs.timelines[job],
        times,
        outcomes(inputs, job, times),
        until=run_until(inputs, job),
        work=replace(work, liable=liable_of(inputs, job)),
    )


def liable_of(inputs: LedgerInputs, job: int) -> dict[int, Liability]:
    """Whose loss the end of each of the run's sessions is, where that is known."""
    timeline, record = inputs.timelines[job], inputs.jobs.get(job)
    if len(timeline.sessions) < 2 and not any(session.failed for session in timeline.sessions):
        return {}
    gpus = {gpu for lease in inputs.leases_of(job) for gpu in lease.gpus}
    nodes = {inputs.gpus[gpu].node for gpu in gpus if gpu in inputs.gpus}
    nodes |= {part.node for part in (record.parts if record else ())}
    return liable(timeline, run_until(inputs, job), inputs.events, (nodes, gpus))


def run_until(inputs: LedgerInputs, job: int) -> float:
    """Up to when a run can be silent: its end, else now."""
    record = inputs.jobs.get(job)
    ends = [lease.end_seconds for lease in inputs.leases_of(job) if lease.end_seconds is not None]
    still = any(lease.end_seconds is None for lease in inputs.leases_of(job))
    if record is not None and record.end_seconds is not None:
        return min(inputs.now, record.end_seconds)
    return inputs.now if still or not ends else min(inputs.now, max(ends))


def silences_within(inputs: LedgerInputs, job: int, span: tuple[float, float]) -> list[Silence]:
    """The run's silences that overlap a stretch of time."""
    found = silences(inputs.timelines[job], run_until(inputs, job))
    return [each for each in found if each.start_seconds < span[1] and each.end_seconds > span[0]]


def outcomes(inputs: LedgerInputs, job: int, span: tuple[float, float]) -> list[tuple[Silence, Outcome]]:
    """What each silence of the run in a stretch of time was: the same, whatever stretch is asked for."""
    silent = silences_within(inputs, job, span)
    if not silent:
        return []
    record = inputs.jobs.get(job)
    result = []
    for silence in silent:
        own = [part for part in (record.parts if record else ()) if part.node == silence.source_node]
        readable = all(part.log_problem is None for part in own)
        gpus = silent_gpus(inputs, silence)
        samples = _evidence(inputs, gpus, hang.evidence_span(silence))
        result.append((silence, hang.outcome(silence, gpus, samples, readable=readable)))
    return result


def silent_gpus(inputs: LedgerInputs, silence: Silence) -> set[int]:
    """The run's GPUs that it held while it is judged whether a silence is a hang."""
    _, last = hang.evidence_span(silence)
    held = {
        gpu
        for lease in inputs.leases_of(silence.job)
        if lease.start_seconds < last
        and (lease.end_seconds is None or lease.end_seconds > silence.start_seconds)
        for gpu in lease.gpus
    }
    return members_of(inputs, {(silence.job, 0): held})[silence.job, 0]


def _evidence(inputs: LedgerInputs, gpus: Collection[int], span: tuple[float, float]) -> Columns:
    """What was sampled of these GPUs in a stretch of time, both ends included."""
    wanted = np.zeros(max(gpus, default=0) + 2, dtype=np.bool_)
    wanted[list(gpus)] = True
    parts = []
    for samples in (inputs.evidence, inputs.samples):
        if samples:
            number = np.minimum(samples["gpu"].astype(np.int64), wanted.size - 1)
            inside = wanted[number] & (samples["ts"] >= span[0]) & (samples["ts"] <= span[1])
            parts.append({name: samples[name][inside] for name in hang.EVIDENCE_SAMPLES})
    return {name: np.concatenate([part[name] for part in parts]) for name in hang.EVIDENCE_SAMPLES}


def integrals(state: Stretches, times: Integers) -> tuple[Integers, Integers, npt.NDArray[np.float64]]:
    """(kinds, milliseconds of each kind up to each time, useful milliseconds up to each time)."""
    edges, kind = state.edges, state.kind
    length = np.diff(edges)
    index = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, kind.size - 1)
    beyond = np.clip(times - edges[index], 0, length[index])
    kinds = np.unique(kind)
    spent = np.empty((times.size, kinds.size), dtype=np.int64)
    for column, one in enumerate(kinds):
        total = np.concatenate(([0], np.cumsum(np.where(kind == one, length, 0))))
        spent[:, column] = total[index] + np.where(kind[index] == one, beyond, 0)
    worth = np.concatenate(([0.0], np.cumsum(state.useful_rate * length)))
    return kinds, spent, worth[index] + state.useful_rate[index] * beyond


def _stack(columns: Sequence[npt.NDArray[Any]]) -> Integers:
    """(window, node, job, kind, milliseconds, useful milliseconds) as rows of one table."""
    return np.stack(columns).astype(np.int64)


def _summed(table: Integers) -> Columns:
    """Rows added up by (window, node, job, kind), in that order."""
    table = table[:, table[4] > 0]
    first, nodes, jobs = table[0].min(initial=0), table[1].max(initial=0) + 1, table[2].max(initial=0) + 1
    first = table[0].min() if table.size else first
    kinds = len(CODE) * KINDS
    key = (((table[0] - first) * nodes + table[1]) * jobs + table[2]) * kinds + table[3]
    order = np.argsort(key, kind="stable")
    first_of = np.flatnonzero(np.concatenate(([True], np.diff(key[order]) != 0))) if key.size else order
    time, useful = (
        np.add.reduceat(table[row, order], first_of) if key.size else table[row] for row in (4, 5)
    )
    window, node, job, kind = table[:4, order[first_of]]
    ts = window * (WINDOW_MILLISECONDS / 1000.0)
    return {
        "ts": ts.astype(np.float64), "node": node, "job": job, "bucket": kind // KINDS, "reason": kind % KINDS,
        "gpu_milliseconds": time, "useful_gpu_milliseconds": useful,
    }  # fmt: skip


def summed(rows: Columns) -> Columns:
    """Ledger rows added up by all but their GPU time: rows of whole windows moved to a coarser ``ts``."""
    if not rows:
        return empty_rows()
    kind = rows["bucket"].astype(np.int64) * KINDS + rows["reason"].astype(np.int64)
    stamps, index = np.unique(rows["ts"], return_inverse=True)
    amounts_of = [rows[name] for name in ("gpu_milliseconds", "useful_gpu_milliseconds")]
    table = _stack([index, rows["node"], rows["job"], kind, *amounts_of])
    result = _summed(table)
    numbers = np.rint(result["ts"] / (WINDOW_MILLISECONDS / 1000.0)).astype(np.int64)
    return {**result, "ts": stamps[numbers]}


def capacity(tracks: list[Track]) -> dict[tuple[float, int], int]:
    """GPU milliseconds of capacity by (window, node), from the tracks alone."""
    result: dict[tuple[float, int], int] = {}
    table = TrackTable.of(tracks)
    if not tracks:
        return result
    first, last = (
        int(table.start.min()) // WINDOW_MILLISECONDS,
        -(-int(table.end.max()) // WINDOW_MILLISECONDS),
    )
    for window in range(first, last):
        start = np.maximum(table.start, window * WINDOW_MILLISECONDS)
        end = np.maximum(start, np.minimum(table.end, (window + 1) * WINDOW_MILLISECONDS))
        totals = np.bincount(table.node, weights=amounts(start, end, table.low, table.high))
        seconds = window * (WINDOW_MILLISECONDS / 1000.0)
        result.update({(seconds, int(node)): int(totals[node]) for node in np.flatnonzero(totals)})
    return result


def check(rows: Columns, expected: Mapping[tuple[float, int], int]) -> None:
    """Raise ``LedgerError`` unless the rows add up to the capacity in every window and node."""
    starts, node = np.rint(rows["ts"] * 1000.0).astype(np.int64), rows["node"]
    order = np.lexsort((node, starts))
    starts, node = starts[order], node[order]
    first = np.ones(order.size, dtype=np.bool_)
    first[1:] = (np.diff(starts) != 0) | (np.diff(node) != 0)
    new = np.flatnonzero(first)
    totals = np.add.reduceat(rows["gpu_milliseconds"][order], new) if new.size else new
    found = {
        (start / 1000.0, number): total
        for start, number, total in zip(
            starts[new].tolist(), node[new].tolist(), totals.tolist(), strict=True
        )
    }
    if found != dict(expected):
        wrong = next(key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))
        raise LedgerError(
            f"window {wrong[0]:.0f}, node {wrong[1]}: buckets hold {found.get(wrong, 0)} GPU milliseconds, "
            f"capacity is {expected.get(wrong, 0)}"
        )


def joined(parts: list[Columns]) -> Columns:
    """Ledger rows of several parts, one below the other, integers kept."""
    if not parts:
        return empty_rows()
    names = ("ts", *INTEGER_COLUMNS)
    filled = [part for part in parts if part["ts"].size] or parts[:1]
    return {
        name: np.concatenate([part[name] for part in filled]).astype(
            np.float64 if name == "ts" else np.int64, copy=False
        )
        for name in names
    }
