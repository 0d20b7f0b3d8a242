"""The queue's depth: what waits for GPUs, by partition. Pure."""

from collections.abc import Iterable
from typing import Final

from flopwatch.wire import QueueSnapshot
from flopwatch_collector.schedulers.reading import ScheduledJob

NOT_YET: Final = frozenset({
    "dependency", "dependencyneversatisfied", "begintime", "jobheldadmin", "jobhelduser", "schedulinggated", "cleaning",
    "badconstraints", "invalidaccount", "invalidqos", "partitioninactive",
})  # fmt: skip
"""Reasons with which a job waits for something other than GPUs: it would not start on free ones."""
WHOLE: Final = ""
"""Partition of the snapshot that says that nothing waits beside what the others say."""


def snapshots(jobs: Iterable[ScheduledJob], before: Iterable[str], now: float) -> tuple[QueueSnapshot, ...]:
    """One a partition in which something waits, and an empty one for each of ``before`` and for the whole queue.

    Jobs that start together are one request.
    """
    requests: dict[str, dict[str, list[int]]] = {}
    for job in jobs:
        if job.state != "pending" or job.requested_gpus <= 0 or (job.reason or "").lower() in NOT_YET:
            continue
        size, count = requests.setdefault(job.partition, {}).setdefault(
            job.together_id or job.ref, [0, job.waiting_jobs]
        )
        requests[job.partition][job.together_id or job.ref] = [size + job.requested_gpus, count]
    result = []
    for partition in sorted({WHOLE, *before, *requests}):
        waiting = list(requests.get(partition, {}).values())
        result.append(
            QueueSnapshot(
                time_seconds=now,
                partition=partition,
                pending_jobs=sum(count for _, count in waiting),
                pending_gpus=sum(size * count for size, count in waiting),
                largest_request_gpus=max((size for size, _ in waiting), default=0),
            )
        )
    return tuple(result)
