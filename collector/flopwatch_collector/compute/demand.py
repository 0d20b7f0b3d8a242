"""Why capacity is free: what waited in the queue, and whether it would have fitted into what was free.

Nobody waits: no_demand. Something waits that is larger than any free shape but not than all that is free:
fragmented. Something waits that fits: sched_delay. Else, and without a scheduler's word, unspecified. A shape is the
free GPUs of one node, or all nodes that are wholly free together.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from flopwatch_collector.compute.buckets import REASON_CODE, distinct, milliseconds
from flopwatch_collector.model import Columns

Integers = npt.NDArray[np.int64]
QUEUE_EVENT: Final[Literal["queue"]] = "queue"
"""Kind of the event rows that keep snapshots: ``value`` is the partition, ``text`` the snapshot as JSON."""
STALE_SECONDS: Final = 3600.0
"""A snapshot says nothing of later time."""
NAMES: Final = ("unspecified", "no_demand", "fragmented", "sched_delay")
CODES: Final = np.array([REASON_CODE[name] for name in NAMES])
UNSPECIFIED, NO_DEMAND, FRAGMENTED, SCHED_DELAY = range(len(NAMES))


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """What waits in one partition from a snapshot to the next."""

    start: int
    end: int
    jobs: int
    gpus: int
    largest: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class FreeTime:
    """Free stretches of GPUs in one cluster, milliseconds; ``size`` are the GPUs of each node."""

    node: Integers
    start: Integers
    end: Integers
    amount: Integers
    size: Mapping[int, int]


def waiting_of(events: Columns, nodes: Mapping[int, str]) -> dict[str, list[Waiting]]:
    """By cluster: what waited, from queue events; ``nodes`` has the cluster of every node that reports."""
    told: dict[tuple[str, str], list[tuple[int, int, int, int | None]]] = {}
    order = sorted(range(events["ts"].size), key=lambda row: (events["ts"][row], str(events["text"][row])))
    for row in order:
        cluster = nodes.get(int(events["node"][row]))
        if str(events["kind"][row]) != QUEUE_EVENT or cluster is None:
            continue
        time = int(milliseconds(events["ts"][row]))
        known = json.loads(events["text"][row])
        snapshot = (
            time,
            int(known["pending_jobs"]),
            int(known["pending_gpus"]),
            known["largest_request_gpus"],
        )
        told.setdefault((cluster, str(events["value"][row])), []).append(snapshot)
    result: dict[str, list[Waiting]] = {}
    for (cluster, _), snapshots in told.items():
        result.setdefault(cluster, []).extend(_stretches(snapshots))
    return result


def _stretches(snapshots: list[tuple[int, int, int, int | None]]) -> list[Waiting]:
    """Each snapshot until the next of its partition, or until it is stale."""
    longest = int(STALE_SECONDS * 1000)
    following = [*(snapshot[0] for snapshot in snapshots[1:]), snapshots[-1][0] + longest]
    return [
        Waiting(start=time, end=min(end, time + longest), jobs=jobs, gpus=gpus, largest=largest)
        for (time, jobs, gpus, largest), end in zip(snapshots, following, strict=True)
    ]


def explained(free: FreeTime, waiting: list[Waiting]) -> Integers:
    """GPU milliseconds of every free stretch by reason: one row a stretch, one column a name of ``NAMES``."""
    cuts = [[each.start, each.end] for each in waiting]
    times = distinct(np.concatenate([free.start, free.end, np.array(cuts, dtype=np.int64).ravel()]))
    times = times[(times >= free.start.min()) & (times <= free.end.max())]
    total, shape = _free_shapes(free, times)
    reason = np.array(
        [
            _reason(_at(waiting, int(time)), int(whole), int(largest))
            for time, whole, largest in zip(times[:-1], total, shape, strict=True)
        ],
        dtype=np.int64,
    )
    length = np.diff(times)
    spent = np.zeros((times.size, len(NAMES)), dtype=np.int64)
    for column in range(len(NAMES)):
        spent[1:, column] = np.cumsum(np.where(reason == column, length, 0))
    first, last = np.searchsorted(times, free.start), np.searchsorted(times, free.end)
    parts = np.cumsum(spent[last] - spent[first], axis=1)
    ends = parts * free.amount[:, None] // (free.end - free.start)[:, None]
    return np.diff(ends, axis=1, prepend=0)


def _free_shapes(free: FreeTime, times: Integers) -> tuple[Integers, Integers]:
    """(all free GPUs, the largest free shape) between consecutive times."""
    numbers = distinct(free.node)
    row = np.searchsorted(numbers, free.node)
    count = np.zeros((numbers.size, times.size), dtype=np.int64)
    np.add.at(count, (row, np.searchsorted(times, free.start)), 1)
    np.add.at(count, (row, np.searchsorted(times, free.end)), -1)
    held = np.cumsum(count, axis=1)[:, :-1]
    size = np.array([free.size.get(int(number), 0) for number in numbers])
    whole = np.where(held >= size[:, None], held, 0).sum(axis=0)
    return held.sum(axis=0), np.maximum(held.max(axis=0, initial=0), whole)


def _at(waiting: list[Waiting], time: int) -> list[Waiting]:
    return [each for each in waiting if each.start <= time < each.end]


def _reason(waiting: list[Waiting], total: int, shape: int) -> int:
    if not waiting:
        return UNSPECIFIED
    pending = [each for each in waiting if each.jobs > 0 or each.gpus > 0]
    if not pending:
        return NO_DEMAND
    if any(shape < _largest(each) <= total for each in pending):
        return FRAGMENTED
    return SCHED_DELAY if any(0 < _smallest(each) <= shape for each in pending) else UNSPECIFIED


def _largest(waiting: Waiting) -> int:
    """The largest request as told; else one that is at least of that size: the mean, rounded up."""
    if waiting.largest is not None:
        return waiting.largest
    return -(-waiting.gpus // max(1, waiting.jobs))


def _smallest(waiting: Waiting) -> int:
    """A size that some request does not exceed: the mean of all but the largest."""
    largest = _largest(waiting)
    if waiting.jobs <= 1:
        return largest
    return min(largest, max(1, (waiting.gpus - largest) // (waiting.jobs - 1)))
