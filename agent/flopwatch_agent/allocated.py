"""Joins what schedulers gave out on this node to the jobs that are seen, and tells when it was given back."""

import dataclasses
import os
from pathlib import Path

from flopwatch.wire import GpuDevice, JobSighting
from flopwatch_agent.allocations import Allocation, JobFiles, gpu_of_device_id, with_allocations
from flopwatch_agent.config import AgentSettings
from flopwatch_agent.pod_resources import PodDevices, PodResources
from flopwatch_agent.source import ObservedJob
from flopwatch_agent.sysfs import KernelTree

POD_SLICES = (
    "fs/cgroup/kubepods.slice", "fs/cgroup/kubepods", "fs/cgroup/memory/kubepods.slice", "fs/cgroup/memory/kubepods",
)  # fmt: skip
CLASSES = ("", "burstable", "besteffort", "kubepods-burstable.slice", "kubepods-besteffort.slice")


class Allocated:
    """The prolog's folder and the kubelet, as one; safe in the jobs' thread only."""

    def __init__(self, settings: AgentSettings, proc: KernelTree, sys: KernelTree) -> None:
        self._files = JobFiles(settings.job_files)
        self._kubelet = PodResources(settings.pod_resources)
        self._pod_logs = settings.pod_logs
        self._sys = sys
        self._boot = boot_seconds(proc)
        self._idle: dict[str, JobSighting] = {}
        self._given: tuple[Allocation, ...] = ()

    @property
    def gaps(self) -> tuple[str, ...]:
        """What could not be asked, one sentence each."""
        return () if self._kubelet.gap is None else (self._kubelet.gap,)

    def stop(self) -> None:
        """Ask the kubelet no more."""
        self._kubelet.stop()

    def look(self, devices: tuple[GpuDevice, ...]) -> dict[str, Allocation]:
        """Ask what is given out now; by GPU: the job that it was given to, where that is one job only."""
        self._kubelet.start()
        self._given = (*self._files.read(devices, self._boot), *self._pods(devices))
        found: dict[str, list[Allocation]] = {}
        for item in self._given:
            for gpu in item.gpus:
                found.setdefault(gpu, []).append(item)
        return {gpu: items[0] for gpu, items in found.items() if len(items) == 1}

    def add(
        self, jobs: tuple[ObservedJob, ...], now: float
    ) -> tuple[tuple[ObservedJob, ...], tuple[JobSighting, ...]]:
        """(the jobs with what they were given as of the last look, idle ones that gave it back since the last call)."""
        found = with_allocations(jobs, self._given)
        seen = {job.sighting.ref for job in jobs}
        idle = {job.sighting.ref: job.sighting for job in found if job.sighting.ref not in seen}
        gone = [item for ref, item in self._idle.items() if ref not in idle and ref not in seen]
        self._idle = idle
        return found, tuple(dataclasses.replace(item, end_time_seconds=now) for item in gone)

    def _pods(self, devices: tuple[GpuDevice, ...]) -> list[Allocation]:
        """What pods hold; the kubelet also lists pods that ended, which have no cgroup any more."""
        pods = self._kubelet.pods
        if not pods:
            return []
        running = running_pods(self._sys)
        found = []
        for pod in pods:
            uid = pod_uid(self._pod_logs, pod)
            gpus = tuple(u for text in pod.device_ids if (u := gpu_of_device_id(text, devices)) is not None)
            if uid is not None and gpus and (running is None or uid.replace("-", "") in running):
                found.append(
                    Allocation(
                        scheduler="kubernetes", job_id=uid, gpus=tuple(sorted(set(gpus))), name=pod.name
                    )
                )
        return found


def boot_seconds(proc: KernelTree) -> float:
    """When the node was booted, in epoch seconds; 0 when the kernel does not say it."""
    for line in (proc.text("stat") or "").splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return 0.0


def pod_uid(folder: Path, pod: PodDevices) -> str | None:
    """The UID of a pod by its name, from the kubelet's folder of logs; the newest where a name was used again."""
    head = f"{pod.namespace}_{pod.name}_"
    try:
        entries = [entry for entry in os.scandir(folder) if entry.name.startswith(head)]
        newest = max(entries, key=lambda entry: entry.stat().st_mtime, default=None)
    except OSError:
        return None
    return None if newest is None else newest.name.removeprefix(head)


def running_pods(sys: KernelTree) -> frozenset[str] | None:
    """UIDs without dashes of the pods that have a cgroup; None where the node's cgroups are not seen."""
    folders = [folder for folder in POD_SLICES if sys.exists(folder)]
    if not folders:
        return None
    names = (
        name for folder in folders for kind in CLASSES for name in sys.names(f"{folder}/{kind}".rstrip("/"))
    )
    heads = (name.removesuffix(".slice").rpartition("pod")[2] for name in names if "pod" in name)
    return frozenset(head.replace("_", "").replace("-", "") for head in heads)
