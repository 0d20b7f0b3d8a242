"""Recorded batches made by hand: nodes that sample, jobs that step, and what else a node tells."""

import gzip
import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flopwatch.encoding import encode
from flopwatch.wire import (
    Batch,
    Event,
    GpuDevice,
    GpuSample,
    JobSighting,
    Lease,
    Phase,
    QueueSnapshot,
    SessionMark,
    StepRecord,
)

H100 = "NVIDIA H100 80GB HBM3"
BASE = 1_772_496_000.0
"""2026-03-03 00:00 UTC."""
Stretch = tuple[float, float, dict[str, Any]]


@dataclass
class NodeTape:
    """What one node tells; times are seconds after ``BASE``. Samples stand for the time before them."""

    name: str
    gpus: int = 8
    interval: float = 60.0
    devices: tuple[GpuDevice, ...] | None = None
    samples: dict[str, list[Stretch]] = field(default_factory=dict)
    rows: dict[str, list[tuple[float, Any]]] = field(default_factory=dict)

    def uuid(self, index: int) -> str:
        """The GPU in this place."""
        return f"GPU-{self.name}-{index}"

    def uuids(self, *indexes: int) -> tuple[str, ...]:
        """GPUs in these places; all without any."""
        return tuple(self.uuid(index) for index in (indexes or range(self.gpus)))

    def sample(self, indexes: Iterable[int] | None, start: float, end: float, **values: Any) -> None:
        """Samples of GPUs over a stretch."""
        for index in range(self.gpus) if indexes is None else indexes:
            self.samples.setdefault(self.uuid(index), []).append((start, end, values))

    def tell(self, kind: str, time: float, row: Any) -> None:
        """Something that goes into the batch of a time: a field of ``Batch``."""
        self.rows.setdefault(kind, []).append((time, row))

    def inventory(self) -> tuple[GpuDevice, ...]:
        """The node's GPUs."""
        if self.devices is not None:
            return self.devices
        return tuple(
            GpuDevice(uuid=self.uuid(i), slot=f"0000:{i + 16:02x}:00.0", name=H100, index=i)
            for i in range(self.gpus)
        )

    def event(self, time: float, kind: str, value: str, gpu: int | None = None) -> None:
        """A declaring event of the node, or of one GPU."""
        own = None if gpu is None else self.uuid(gpu)
        self.tell("events", time, Event(time_seconds=BASE + time, kind=kind, value=value, gpu=own))


def steps(
    tape: NodeTape,
    job: str,
    span: tuple[int, int, float],
    seconds: float = 10.0,
    session: int = 0,
    **more: Any,
) -> float:
    """Steps ``first`` to ``last`` one after another from a time; returns when they end."""
    first, last, start = span
    for index, step in enumerate(range(first, last + 1)):
        end = start + (index + 1) * seconds
        record = StepRecord(
            job=job, source="log", source_id=f"{job}.log", step=step, end_time_seconds=BASE + end,
            seconds=seconds, session=session, **more,
        )  # fmt: skip
        tape.tell("steps", end, record)
    return start + (last - first + 1) * seconds


def phase(tape: NodeTape, job: str, kind: str, span: tuple[float, float | None], **more: Any) -> None:
    """A phase of a run, told when it has ended."""
    begin, end = span
    row = Phase(
        job=job, kind=kind, begin_seconds=BASE + begin, end_seconds=None if end is None else BASE + end,
        source_id=f"{job}.log", **more,
    )  # fmt: skip
    tape.tell("phases", begin if end is None else end, row)


def session(
    tape: NodeTape, job: str, number: int, begin: float, end: float | None = None, **more: Any
) -> None:
    """A launch of a job: told at its begin, and again at its end."""
    row = SessionMark(job=job, source_id=f"{job}.log", session=number, begin_seconds=BASE + begin)
    tape.tell("sessions", begin, replace(row, resumed_from_step=more.get("resumed_from_step")))
    if end is not None:
        tape.tell("sessions", end, replace(row, end_seconds=BASE + end, **more))


def lease(
    tape: NodeTape, job: str, gpus: tuple[str, ...], span: tuple[float, float | None], **more: Any
) -> None:
    """A scheduler's lease, told at its begin and again with its end."""
    start, end = span
    row = Lease(lease_id=f"{job}/{tape.name}", job=job, gpus=gpus, source="slurm", start_seconds=BASE + start)
    row = replace(row, **more)
    tape.tell("leases", start, row)
    if end is not None:
        tape.tell("leases", end, replace(row, end_seconds=BASE + end))


def sighting(tape: NodeTape, ref: str, span: tuple[float, float | None], **more: Any) -> None:
    """A job as the node sees it, in every batch of its time."""
    start, end = span
    given = {"scheduler": "slurm", "scheduler_job_id": ref, "name": ref, "start_time_seconds": BASE + start}
    tape.tell("jobs", start, (start, end, JobSighting(ref=ref, **{**given, **more})))


def queue(tape: NodeTape, time: float, **more: Any) -> None:
    """What waits, as the scheduler told it."""
    given = {"partition": "main", "pending_jobs": 0, "pending_gpus": 0}
    tape.tell("queues", time, QueueSnapshot(time_seconds=BASE + time, **{**given, **more}))


def batches(tape: NodeTape, end: float, every: float = 600.0, simulated: bool = False) -> list[Batch]:
    """The node's batches up to a time, one every so often; a batch without samples is not sent."""
    result = []
    bounds = [0.0]
    while bounds[-1] < end:
        bounds.append(min(end, bounds[-1] + every))
    for number, until in enumerate(bounds):
        since = bounds[number - 1] if number else -1.0
        samples = tuple(sorted(_samples(tape, since, until), key=lambda sample: sample.time_seconds))
        rows = {
            kind: tuple(row for time, row in told if since < time <= until)
            for kind, told in tape.rows.items()
            if kind != "jobs"
        }
        jobs = tuple(_sightings(tape, since, until))
        if number and not (samples or jobs or any(rows.values())):
            continue
        result.append(
            Batch(
                version=1,
                node=tape.name,
                cluster="c",
                spool=f"spool-{tape.name}",
                sequence=number,
                boot_id="boot",
                sampled_at_seconds=BASE + until,
                monotonic_seconds=until,
                interval_seconds=tape.interval,
                agent_version="1",
                simulated=simulated,
                gpus=None if number else tape.inventory(),
                gpu_samples=samples,
                jobs=jobs,
                **rows,
            )
        )
    return result


def _samples(tape: NodeTape, since: float, until: float) -> Iterable[GpuSample]:
    for uuid, stretches in tape.samples.items():
        for start, end, values in stretches:
            time = start + tape.interval
            while time <= min(end, until):
                if time > since:
                    yield GpuSample(time_seconds=BASE + time, gpu=uuid, **values)
                time += tape.interval


def _sightings(tape: NodeTape, since: float, until: float) -> Iterable[JobSighting]:
    for _, (start, end, job) in tape.rows.get("jobs", ()):
        if start <= until and (end is None or until < end):
            yield job
        elif end is not None and since < end <= until:
            yield replace(job, end_time_seconds=BASE + end)


def written(path: Path, made: list[Batch], *, packed: bool = False, shuffled: int | None = None) -> Path:
    """The batches as JSON lines."""
    lines = [encode(batch) + b"\n" for batch in made]
    if shuffled is not None:
        random.Random(shuffled).shuffle(lines)  # noqa: S311 - an order, no secret
    data = b"".join(lines)
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


def loads(text: str) -> dict[str, Any]:
    """Printed JSON; a number that is not finite is refused."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    answer: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return answer
