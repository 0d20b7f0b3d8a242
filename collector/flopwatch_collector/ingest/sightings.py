"""Sightings that say nothing new: nearly all of them, kept from costing what a new one costs.

A job's record holds a part for every node, so changing it for each batch of each node would cost the square of
the job's size. A sign of life waits here until somebody looks at the record.
"""

from dataclasses import dataclass, replace

from flopwatch.wire import JobSighting
from flopwatch_collector.ingest.place import Place
from flopwatch_collector.model import JobRecord

LOOKED_AT_SECONDS = 3_600.0
"""A sighting that has not changed is looked at again after so long."""
PartKey = tuple[int, str]
"""(node's number, its handle of the job)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A sighting, with its GPUs as numbers."""

    job: JobSighting
    gpus: tuple[int, ...] = ()
    leased_gpus: tuple[int, ...] | None = None
    gpu_ranks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    seen: Seen
    offset_seconds: float
    time_seconds: float
    number: int


class Sightings:
    """What each node said last of each job, and the signs of life since. Not safe for threads."""

    def __init__(self) -> None:
        self._told: dict[PartKey, _Told] = {}
        self._signs: dict[int, dict[PartKey, float]] = {}

    def repeated(self, place: Place, seen: Seen) -> int | None:
        """The job's number when the node said the very same of a job that goes on; its sign of life is noted."""
        key = (place.node, seen.job.ref)
        told = self._told.get(key)
        if told is None or told.offset_seconds != place.offset_seconds or told.seen != seen:
            return None
        if seen.job.end_time_seconds is not None:
            return None
        if not 0.0 <= place.time_seconds - told.time_seconds < LOOKED_AT_SECONDS:
            return None
        signs = self._signs.setdefault(told.number, {})
        signs[key] = max(place.time_seconds, signs.get(key, 0.0))
        return told.number

    def tell(self, place: Place, seen: Seen, number: int) -> None:
        """Remember a sighting that the job's record has taken in."""
        self._told[place.node, seen.job.ref] = _Told(
            seen=seen, offset_seconds=place.offset_seconds, time_seconds=place.time_seconds, number=number
        )

    def forget(self, node: int, ref: str) -> None:
        """Look at the node's next sighting of the job again: the record was changed under it."""
        self._told.pop((node, ref), None)

    def waiting(self) -> list[int]:
        """Jobs with signs of life that their records lack."""
        return list(self._signs)

    def taken_in(self, job: JobRecord) -> JobRecord:
        """The record with the signs of life that waited for it."""
        signs = self._signs.pop(job.number, None)
        if not signs:
            return job
        parts = tuple(
            replace(part, last_seen_seconds=sign)
            if (sign := signs.get((part.node, part.ref), 0.0)) > part.last_seen_seconds
            else part
            for part in job.parts
        )
        last = max([job.last_seen_seconds, *(part.last_seen_seconds for part in parts)])
        return replace(job, parts=parts, last_seen_seconds=last)
