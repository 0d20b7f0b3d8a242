"""Queue snapshots as events, so that what waited is kept beside what happened."""

import json

from flopwatch.wire import Batch, Event, QueueSnapshot
from flopwatch_collector.compute.demand import QUEUE_EVENT


def events_of(batch: Batch) -> tuple[Event, ...]:
    """The batch's events, and one for each of its queue snapshots."""
    return (*batch.events, *(_event(snapshot) for snapshot in batch.queues))


def _event(snapshot: QueueSnapshot) -> Event:
    told = {
        "pending_jobs": snapshot.pending_jobs,
        "pending_gpus": snapshot.pending_gpus,
        "largest_request_gpus": snapshot.largest_request_gpus,
    }
    return Event(
        time_seconds=snapshot.time_seconds, kind=QUEUE_EVENT, value=snapshot.partition, text=json.dumps(told)
    )
