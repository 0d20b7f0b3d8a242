"""Leases as holds of single GPUs, and which of them belong to a run."""

from collections.abc import Mapping, Sequence

import numpy as np

from flopwatch_collector.compute.buckets import distinct
from flopwatch_collector.compute.inputs import LedgerInputs
from flopwatch_collector.compute.runs import join
from flopwatch_collector.compute.tracks import Hold
from flopwatch_collector.model import Columns, JobRecord, LeaseRecord

FROM_USE = frozenset({"process", "registration"})
"""Leases that follow from use: where a scheduler tells its own, they do not count."""
GONE = "gone"
"""Exit reason of a job that its nodes no longer name, and that nobody saw end."""


def holds_of(inputs: LedgerInputs, span: tuple[int, int]) -> list[Hold]:
    """All holds within the span, one job once a GPU and moment, split where its run is over."""
    spans: dict[tuple[int, int], list[_Piece]] = {}
    for lease in inputs.leases:
        start, end = lease_span(lease, inputs.jobs.get(lease.job), span)
        if end > start:
            for gpu in lease.gpus:
                spans.setdefault((gpu, lease.job), []).append((start, end, lease))
    told = _told_by_gpu(spans)
    members = _members_by_lease(inputs)
    ends = {job: _run_end(inputs, job) for job in inputs.timelines}
    result: list[Hold] = []
    for (gpu, job), pieces in sorted(spans.items(), key=lambda item: item[0]):
        counted = [part for piece in pieces for part in _counted(piece, job, told.get(gpu, ()))]
        parts: tuple[list[_Piece], list[_Piece]] = ([], [])
        for piece in counted:
            parts[gpu in members.get(piece[2].lease_id, ())].append(piece)
        for run_end, own in zip((None, ends.get(job)), parts, strict=True):
            for merged in _merged(own):
                result += _split(gpu, job, merged, run_end)
    return result


def _members_by_lease(inputs: LedgerInputs) -> dict[str, set[int]]:
    """By lease: its GPUs that belong to the run. Leases of a job that follow one another are judged apart."""
    groups: dict[Group, set[int]] = {}
    group_of: dict[str, Group] = {}
    until: dict[int, float] = {}
    number: dict[int, int] = {}
    for lease in sorted(inputs.leases, key=lambda lease: (lease.start_seconds, lease.lease_id)):
        if lease.job not in inputs.timelines:
            continue
        if lease.start_seconds > until.get(lease.job, -np.inf):
            number[lease.job] = number.get(lease.job, 0) + 1
        end = np.inf if lease.end_seconds is None else lease.end_seconds
        until[lease.job] = max(end, until.get(lease.job, -np.inf))
        group = (lease.job, number[lease.job])
        group_of[lease.lease_id] = group
        groups.setdefault(group, set()).update(lease.gpus)
    members = members_of(inputs, groups)
    return {lease_id: members[group] for lease_id, group in group_of.items()}


def lease_end(lease: LeaseRecord, job: JobRecord | None) -> float | None:
    """When the lease ended; an open one ends with its job. None while it lasts.

    That nodes no longer name the job ends no lease that a scheduler told: it holds the GPUs until it says otherwise.
    """
    if lease.end_seconds is not None or job is None or job.end_seconds is None:
        return lease.end_seconds
    if job.exit_reason == GONE and lease.source not in FROM_USE:
        return None
    return max(job.end_seconds, lease.start_seconds)


def lease_span(lease: LeaseRecord, job: JobRecord | None, span: tuple[int, int]) -> tuple[int, int]:
    """The lease's time within the span, milliseconds."""
    end = lease_end(lease, job)
    start = max(span[0], round(lease.start_seconds * 1000.0))
    return start, span[1] if end is None else min(span[1], round(end * 1000.0))


_Piece = tuple[int, int, LeaseRecord]
"""(start, end, lease), milliseconds."""
_Spans = Mapping[tuple[int, int], list[_Piece]]


def _told_by_gpu(spans: _Spans) -> dict[int, list[tuple[int, int, int]]]:
    """By GPU: (start, end, job) of what schedulers told."""
    result: dict[int, list[tuple[int, int, int]]] = {}
    for (gpu, job), pieces in spans.items():
        for start, end, lease in pieces:
            if lease.source not in FROM_USE:
                result.setdefault(gpu, []).append((start, end, job))
    return result


def _counted(piece: _Piece, job: int, told: Sequence[tuple[int, int, int]]) -> list[_Piece]:
    """A lease's time without that in which it follows from use and a scheduler tells another job's."""
    start, end, lease = piece
    if not told or lease.source not in FROM_USE:
        return [piece]
    result = []
    for since, until in sorted((since, until) for since, until, other in told if other != job):
        if since > start:
            result.append((start, min(since, end), lease))
        start = max(start, until)
        if start >= end:
            return result
    return [*result, (start, end, lease)]


def _merged(pieces: Sequence[_Piece]) -> list[tuple[int, int, float]]:
    """Leases of one job on one GPU, those of one share that touch as one."""
    result: list[tuple[int, int, float]] = []
    if len(pieces) > 1:
        pieces = sorted(pieces, key=lambda piece: (piece[2].share_ratio, piece[0], piece[1]))
    for start, end, lease in pieces:
        if result and start <= result[-1][1] and result[-1][2] == lease.share_ratio:
            first, until, share = result[-1]
            result[-1] = (first, max(until, end), share)
        else:
            result.append((start, end, lease.share_ratio))
    return result


def _split(gpu: int, job: int, piece: tuple[int, int, float], run_end: float | None) -> list[Hold]:
    start, end, share = piece
    if run_end is None:
        return [Hold(gpu=gpu, start=start, end=end, job=job, run=False, share=share)]
    if run_end * 1000.0 >= end:
        return [Hold(gpu=gpu, start=start, end=end, job=job, run=True, share=share)]
    cut = int(max(run_end * 1000.0, start))
    parts = ((start, cut, True), (cut, end, False))
    return [
        Hold(gpu=gpu, start=first, end=last, job=job, run=run, share=share)
        for first, last, run in parts
        if last > first
    ]


def _run_end(inputs: LedgerInputs, job: int) -> float:
    """When the run was over: its last session ended normally, or the job did; else never."""
    record, timeline = inputs.jobs.get(job), inputs.timelines[job]
    ends = [np.inf]
    if record is not None and record.end_seconds is not None:
        ends.append(record.end_seconds)
    last = timeline.sessions[-1] if timeline.sessions else None
    if last is not None and last.end_seconds is not None and last.exit_reason is not None and not last.failed:
        ends.append(last.end_seconds)
    return float(min(ends))


Group = tuple[int, int]
"""(job, number): GPUs that a job holds at one time."""


def members_of(inputs: LedgerInputs, groups: Mapping[Group, set[int]]) -> dict[Group, set[int]]:
    """Of the GPUs that instrumented jobs hold, those that belong to the run.

    All, when the world size is the number of leased GPUs; else those with a process of the run; a GPU of
    which nothing is known belongs while the world size leaves room.
    """
    result: dict[Group, set[int]] = {}
    partly: dict[Group, tuple[list[int], int | None]] = {}
    for group, leased in groups.items():
        if not inputs.timelines[group[0]].instrumented:
            result[group] = set()
            continue
        record = inputs.jobs.get(group[0])
        world = None if record is None else (join(record.runs).world_size or record.world_size)
        if world is not None and world >= len(leased):
            result[group] = set(leased)
        else:
            partly[group] = (sorted(leased), world)
    evidence = _process_evidence(inputs.samples, partly)
    for group, (held, world) in partly.items():
        record = inputs.jobs.get(group[0])
        result[group] = set(_members(record, held, (group[0], world), evidence))
    return result


_Evidence = tuple[set[tuple[int, int]], set[int]]


def _members(
    record: JobRecord | None, leased: list[int], run: tuple[int, int | None], evidence: _Evidence
) -> list[int]:
    """GPUs of a run that holds more than its world size, or whose world size is not known."""
    number, world = run
    busy, seen = evidence
    used = {gpu for part in (record.parts if record else ()) for gpu in part.gpus}
    known = [gpu for gpu in leased if gpu in used or (gpu, number) in busy or (gpu, 0) in busy]
    if world is None and not used:
        return [gpu for gpu in leased if gpu in known or gpu not in seen] if known else leased
    rest = [gpu for gpu in leased if gpu not in known and gpu not in seen]
    room = len(rest) if world is None else max(0, world - len(known))
    return known + rest[:room]


def _process_evidence(samples: Columns, groups: Mapping[Group, tuple[list[int], int | None]]) -> _Evidence:
    """((GPU, job) with a process, job 0 where it is not known; GPUs whose processes were ever listed)."""
    wanted = np.array(sorted({gpu for leased, _ in groups.values() for gpu in leased}), dtype=np.int64)
    if not wanted.size:
        return set(), set()
    gpu, count = samples["gpu"].astype(np.int64), samples["process_count"]
    chosen = np.isin(gpu, wanted) & np.isfinite(count)
    gpu, count, job = gpu[chosen], count[chosen], np.nan_to_num(samples["job"][chosen]).astype(np.int64)
    pairs = distinct((gpu * 2**32 + job)[count > 0])
    return {(pair >> 32, pair & 0xFFFFFFFF) for pair in pairs.tolist()}, set(distinct(gpu).tolist())
