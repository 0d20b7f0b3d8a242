"""What Slurm says, from the documents of its commands or of slurmrestd. The way there is a ``SlurmDoor``."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from flopwatch_collector.schedulers.reading import Reading, ScheduledJob, ScheduledNode, SchedulerUnreachable
from flopwatch_collector.schedulers.slurm_jobs import Row, ended_from_accounting, job_from_queue
from flopwatch_collector.schedulers.slurm_nodes import gpu_limits, node_from, reserved

T = TypeVar("T")
LOOK_BACK_SECONDS = 900.0
"""Accounting is asked about jobs that ended since the last reading and so long before it."""
MOST_PROBLEMS = 5


class SlurmDoor(Protocol):
    """Asks Slurm. Each answer is a JSON document; None where this Slurm has no such answer."""

    def jobs(self) -> Row:
        """All jobs that the controller knows: ``{"jobs": […]}``."""
        ...

    def nodes(self) -> Row | None:
        """``{"nodes": […]}``."""
        ...

    def more(self, what: str, since_seconds: float) -> Row | None:
        """``reservations``, ``qos``, or ``ended``: the jobs of accounting since a time."""
        ...


@dataclass(kw_only=True)
class Slurm:
    """Reads one Slurm cluster."""

    door: SlurmDoor
    accounting: bool = True
    """Ask accounting how jobs ended that the controller has forgotten."""
    last_seconds: float | None = None

    def read(self, now: float) -> Reading:
        """All that Slurm says now.

        Raises:
            SchedulerUnreachable: the jobs cannot be read; what else cannot be read is missing in the reading.
        """
        problems: list[str] = []
        jobs = _made(_rows(self.door.jobs(), "jobs"), job_from_queue, problems)
        nodes = self._nodes(now, problems)
        since = (self.last_seconds if self.last_seconds is not None else now) - LOOK_BACK_SECONDS
        limits = self._asked("qos", since, problems)
        ended = self._asked("ended", since, problems) if self.accounting else None
        known = {job.scheduler_job_id for job in jobs}
        forgotten = [
            job
            for job in _made(_rows(ended, "jobs") if ended else (), ended_from_accounting, problems)
            if job.scheduler_job_id not in known
        ]
        self.last_seconds = now
        return Reading(
            time_seconds=now,
            jobs=(*jobs, *forgotten),
            nodes=nodes,
            limits=None if limits is None else gpu_limits(limits),
            problems=tuple(problems[:MOST_PROBLEMS]),
        )

    def _nodes(self, now: float, problems: list[str]) -> tuple[ScheduledNode, ...] | None:
        try:
            document = self.door.nodes()
        except SchedulerUnreachable as error:
            problems.append(str(error))
            return None
        if document is None:
            problems.append("this Slurm tells no nodes as JSON")
            return None
        nodes = _made(_rows(document, "nodes"), node_from, problems)
        told = self._asked("reservations", now, problems)
        try:
            kept = reserved(_rows(told, "reservations") if told else (), now)
        except ValueError as error:
            problems.append(f"a reservation is left out: {error}")
            kept = {}
        return tuple(_in_maintenance(node, kept) for node in nodes)

    def _asked(self, what: str, since: float, problems: list[str]) -> Row | None:
        try:
            return self.door.more(what, since)
        except SchedulerUnreachable as error:
            problems.append(str(error))
            return None


def _in_maintenance(node: ScheduledNode, kept: Mapping[str, tuple[float, str]]) -> ScheduledNode:
    if node.name not in kept:
        return node
    since, name = kept[node.name]
    return replace(
        node, maintenance=True, maintenance_since_seconds=since, maintenance_text=f"reservation {name}"
    )


def _rows(document: Row, name: str) -> Iterable[Row]:
    """The list of a document.

    Raises:
        SchedulerUnreachable: there is none: the answer is another program's.
    """
    rows = document.get(name)
    if not isinstance(rows, list):
        raise SchedulerUnreachable(f"Slurm's answer has no list {name!r}")
    return [row for row in rows if isinstance(row, Mapping)]


def _made(rows: Iterable[Row], made: Callable[[Row], T | None], problems: list[str]) -> list[T]:
    """What the rows are; one that is not understood costs only itself."""
    result: list[T] = []
    for row in rows:
        try:
            found = made(row)
        except ValueError as error:
            problems.append(f"a row of Slurm's answer is left out: {error}")
            continue
        if found is not None:
            result.append(found)
    return result


def jobs_of(document: Mapping[str, Any]) -> list[ScheduledJob]:
    """The jobs of one document of ``squeue --json``."""
    return _made(_rows(document, "jobs"), job_from_queue, [])
