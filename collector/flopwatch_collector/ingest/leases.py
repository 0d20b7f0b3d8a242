"""Who holds which GPUs: from a scheduler, from registration, or from use."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from flopwatch.wire import Lease
from flopwatch_collector.ingest.place import Place
from flopwatch_collector.ingest.table import Table
from flopwatch_collector.model import JobPart, JobRecord, LeaseRecord

PROCESS_SECONDS = 300.0
"""A compute process older than this holds its GPUs."""
Source = Literal["slurm", "kubernetes", "prolog", "api", "registration", "process"]


class Leases:
    """The leases of all jobs, one a node's share. Not safe for threads."""

    def __init__(self, table: Table[str, LeaseRecord]) -> None:
        self._table = table
        self._told: set[tuple[int, int]] = set()
        """(job, node) whose leases a scheduler tells itself."""
        for key in table.records:
            self._note_told(key)

    def learn(self, leases: Mapping[str, LeaseRecord]) -> None:
        """Take over what another collector saved."""
        self._table.learn(leases)
        for key in leases:
            self._note_told(key)

    def _note_told(self, key: str) -> None:
        if not key.startswith("part:"):
            node, job = key.rsplit("@", 1)[-1].split(":")
            self._told.add((int(job), int(node)))

    def told(self, place: Place, job: int, lease: Lease, gpus: tuple[int, ...]) -> None:
        """Take a scheduler's own word: its clock counts, cut to the second."""
        key = f"{lease.lease_id}@{place.node}:{job}"
        own_clock = lease.source == "process"
        start = place.shifted(lease.start_seconds) if own_clock else lease.start_seconds
        end = place.shifted(lease.end_seconds) if own_clock else lease.end_seconds
        if end is None:
            end = self._known_end(key, place.time_seconds)
        self._told.add((job, place.node))
        self._end(part_key(job, place.node), place.time_seconds)
        self._put(
            LeaseRecord(
                lease_id=key,
                job=job,
                gpus=gpus,
                source=lease.source,
                start_seconds=float(int(start or 0.0)),
                end_seconds=None if end is None else float(int(end)),
                share_ratio=lease.share_ratio,
                qos=lease.qos,
            )
        )

    def _known_end(self, key: str, time: float) -> float | None:
        """The end of a lease, where a word of before it, as it comes late from a node's spool, says of none."""
        old = self._table.records.get(key)
        end = None if old is None else old.end_seconds
        # Ends are cut to the second.
        return end if end is not None and time <= end + 1.0 else None

    def of_part(self, place: Place, job: JobRecord, part: JobPart, *, instrumented: bool) -> None:
        """The lease that follows from a node's part of a job, where no scheduler tells it itself."""
        if (job.number, part.node) in self._told:
            return
        key = part_key(job.number, part.node)
        old = self._table.records.get(key)
        held = _held(place, job, part, instrumented=instrumented)
        if held is None:
            return
        source, gpus = held
        start = part.start_seconds if part.start_seconds is not None else place.first_seconds
        self._put(
            LeaseRecord(
                lease_id=key,
                job=job.number,
                gpus=tuple(sorted({*gpus, *(old.gpus if old is not None and old.source == source else ())})),
                source=source,
                start_seconds=float(int(start if old is None else min(start, old.start_seconds))),
                end_seconds=None if part.end_seconds is None else float(int(part.end_seconds)),
            )
        )

    def _end(self, key: str, time: float) -> None:
        lease = self._table.records.get(key)
        if lease is not None and lease.end_seconds is None:
            self._put(replace(lease, end_seconds=float(int(max(time, lease.start_seconds)))))

    def _put(self, lease: LeaseRecord) -> None:
        if lease.end_seconds is not None and lease.end_seconds < lease.start_seconds:
            lease = replace(lease, end_seconds=lease.start_seconds)
        if self._table.records.get(lease.lease_id) != lease:
            self._table.put(lease.lease_id, lease)


def part_key(job: int, node: int) -> str:
    """Id of the lease that is derived from a node's part of a job."""
    return f"part:{job}@{node}"


def _held(
    place: Place, job: JobRecord, part: JobPart, *, instrumented: bool
) -> tuple[Source, tuple[int, ...]] | None:
    """What the part holds and how that is known; ``None`` while it holds nothing."""
    if part.leased_gpus:
        if job.scheduler == "slurm":
            return "slurm", part.leased_gpus
        return ("kubernetes" if job.scheduler == "kubernetes" else "api"), part.leased_gpus
    if not part.gpus:
        return None
    if instrumented:
        return "registration", part.gpus
    age = place.time_seconds - (part.start_seconds if part.start_seconds is not None else place.time_seconds)
    return ("process", part.gpus) if age > PROCESS_SECONDS else None
