"""What a scheduler gave out, whether or not a process uses it: from a prolog's files and from the kubelet.

A folder as ``dcgm-exporter`` reads it too: one file a GPU, named by the GPU's UUID, its NVML index, or, of a MIG
instance, ``<index>.<instance>``; one job id a line; an empty file means no job.
"""

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from flopwatch.wire import GpuDevice, JobSighting
from flopwatch_agent.source import ObservedJob

MAX_FILES = 1024
MAX_FILE_BYTES = 4096
JOB_ID = re.compile(r"[\w.+-]{1,64}")
FILE_NAME = re.compile(
    r"(?P<index>\d{1,3})(?:\.(?P<instance>\d{1,3}))?|(?P<uuid>(?:GPU|MIG)-[0-9A-Za-z/-]{1,64})"
)
SHARED = re.compile(r"(?P<uuid>(?:GPU|MIG)-[0-9A-Za-z-]+?)(?:::\d+|-\d{1,3})?$")
WHOLE_UUID = re.compile(r"(?:GPU|MIG)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocation:
    """GPUs of this node that a scheduler gave to one job."""

    scheduler: Literal["slurm", "kubernetes"]
    job_id: str
    gpus: tuple[str, ...]
    since_seconds: float | None = None
    name: str | None = None

    @property
    def ref(self) -> str:
        """The job's handle, the same as that of its processes."""
        return f"{self.scheduler}:{self.job_id}"


class JobFiles:
    """The prolog's folder, read anew at each look; what is no file of a GPU is passed over."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, devices: tuple[GpuDevice, ...], boot_seconds: float) -> tuple[Allocation, ...]:
        """The jobs that hold GPUs; a file from before the node's boot is of a job that died with it."""
        jobs: dict[str, tuple[list[str], float]] = {}
        for path in self._paths():
            uuid = gpu_of_file(path.name, devices)
            found = None if uuid is None else content_of(path)
            if uuid is None or found is None or found[1] < boot_seconds:
                continue
            for job in found[0]:
                gpus, since = jobs.setdefault(job, ([], found[1]))
                gpus.append(uuid)
                jobs[job] = (gpus, min(since, found[1]))
        return tuple(
            Allocation(scheduler="slurm", job_id=job, gpus=tuple(sorted(gpus)), since_seconds=since)
            for job, (gpus, since) in sorted(jobs.items())
        )

    def _paths(self) -> list[Path]:
        try:
            return sorted(self._folder.iterdir())[:MAX_FILES]
        except OSError:
            return []


def content_of(path: Path) -> tuple[tuple[str, ...], float] | None:
    """Job ids of a file and when it was written; None when it cannot be read: one bad file costs only its GPU."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE_BYTES).decode("ascii", "replace")
        written = path.stat().st_mtime
    except OSError:
        return None
    return tuple(dict.fromkeys(word for word in text.split() if JOB_ID.fullmatch(word))), written


def gpu_of_file(name: str, devices: tuple[GpuDevice, ...]) -> str | None:
    """The GPU or MIG instance that a file's name means; None for any other name."""
    match = FILE_NAME.fullmatch(name)
    if match is None:
        return None
    if match["uuid"] is not None:
        return gpu_of_device_id(name, devices)
    index = int(match["index"])
    if match["instance"] is None:
        return next((d.uuid for d in devices if d.index == index and d.mig_parent_uuid is None), None)
    instance = int(match["instance"])
    found = (d.uuid for d in devices if d.index == index and d.mig_instance_id == instance)
    return next(found, None)


def gpu_of_device_id(text: str, devices: tuple[GpuDevice, ...]) -> str | None:
    """The UUID that a device id means; None when it means none or several.

    It may be a UUID, a unique beginning of one, a time slice's number after it, or ``nvidia0/gi1`` as on GKE.
    """
    plain = re.fullmatch(r"nvidia(\d{1,3})(?:/gi(\d{1,3}))?", text)
    if plain is not None:
        minor, instance = int(plain[1]), plain[2]
        wanted = None if instance is None else int(instance)
        return next((d.uuid for d in devices if d.minor == minor and d.mig_instance_id == wanted), None)
    if re.match(r"(?:GPU|MIG)-\w", text) is None:
        return None
    whole = WHOLE_UUID.match(text)
    shared = SHARED.fullmatch(text)
    uuid = whole.group(0) if whole is not None else shared["uuid"] if shared is not None else text
    found = [device.uuid for device in devices if device.uuid.startswith(uuid)]
    return found[0] if len(found) == 1 else None


def with_allocations(
    jobs: tuple[ObservedJob, ...], allocations: Iterable[Allocation]
) -> tuple[ObservedJob, ...]:
    """The jobs with what they were given; a job that was given GPUs and runs nothing on them is one too."""
    given: dict[str, Allocation] = {}
    for item in allocations:
        old = given.get(item.ref)
        given[item.ref] = item if old is None else merged(old, item)
    seen = [with_gpus(job, given.pop(job.sighting.ref, None)) for job in jobs]
    return (*seen, *(idle_job(item) for item in given.values()))


def merged(one: Allocation, other: Allocation) -> Allocation:
    """One job as two sources tell it."""
    return dataclasses.replace(one, gpus=tuple(sorted({*one.gpus, *other.gpus})), name=one.name or other.name)


def with_gpus(job: ObservedJob, given: Allocation | None) -> ObservedJob:
    """The job with the GPUs it was given; what the job's own environment says comes after the scheduler."""
    if given is None:
        return job
    sighting = dataclasses.replace(job.sighting, leased_gpus=given.gpus, name=job.sighting.name or given.name)
    return dataclasses.replace(job, sighting=sighting)


def idle_job(given: Allocation) -> ObservedJob:
    """A job that holds GPUs and has no process on any of them."""
    sighting = JobSighting(
        ref=given.ref,
        scheduler=given.scheduler,
        scheduler_job_id=given.job_id,
        name=given.name,
        start_time_seconds=given.since_seconds,
        leased_gpus=given.gpus,
        waiting_for="a process on the GPUs that it was given",
    )
    return ObservedJob(sighting=sighting)
