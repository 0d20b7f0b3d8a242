"""The one job of ``flopwatch run``: its processes, its GPUs and its logs, whatever else runs on the node."""

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from flopwatch.wire import GpuDevice
from flopwatch_agent.attribution import JobIdentity, identity
from flopwatch_agent.configured_logs import Assigned
from flopwatch_agent.log_file import identity_of
from flopwatch_agent.log_finder import Output
from flopwatch_agent.procfs import Process, Procfs, allowed_environment
from flopwatch_agent.source import ObservedJob

VISIBLE_VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")


@dataclass(slots=True)
class OneJob:
    """A command's processes as one job, however they were started."""

    procfs: Procfs
    root: Process
    """The command itself; also known when it has ended by now."""
    identity: JobIdentity
    ended: bool = False
    """Set once the command is over: its job then is, too."""
    family: frozenset[int] = frozenset()
    """The command and its descendants, as of the last look."""
    _seen: set[tuple[int, int]] = field(default_factory=set)

    def members(self, now: float) -> frozenset[int]:
        """The command, and those of its descendants that are ranks of a training run."""
        self.family = self._descendants()
        found = {self.root.pid}
        for pid in self.family:
            process = self.procfs.process(pid, now)
            if process is not None and process.number("RANK") is not None:
                found.add(pid)
        return frozenset(found)

    def processes(
        self, listed: Mapping[str, tuple[int, ...] | None], own: frozenset[str]
    ) -> dict[str, tuple[int, ...] | None]:
        """The job's processes by GPU.

        In a container the driver names processes as the host numbers them: a process that is not in the table here
        then is this command's, because nobody else's is visible.
        """
        found: dict[str, tuple[int, ...] | None] = {}
        for gpu, pids in listed.items():
            if gpu not in own or pids is None:
                continue
            ours = tuple(pid for pid in pids if pid in self.family)
            hidden = not ours and any(self.procfs.key(pid) is None for pid in pids)
            found[gpu] = (self.root.pid,) if hidden else ours
        return found

    def _descendants(self) -> frozenset[int]:
        """Those of now, and those seen before whose parents have ended."""
        children: dict[int, list[int]] = {}
        for pid in self.procfs.pids():
            parent = self.procfs.parent(pid)
            if parent is not None:
                children.setdefault(parent, []).append(pid)
        left = [self.root.pid, *(pid for pid, start in self._seen if self.procfs.key(pid) == (pid, start))]
        found: set[int] = set()
        while left:
            pid = left.pop()
            if pid not in found:
                found.add(pid)
                left += children.get(pid, ())
        self._seen = {key for pid in found if (key := self.procfs.key(pid)) is not None}
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class OwnLogs:
    """The files that hold the command's output."""

    paths: tuple[Path, ...]

    def assign(self, jobs: tuple[ObservedJob, ...], now: float) -> Assigned:  # noqa: ARG002 - the form of it
        """All of them to the one job."""
        found = []
        for path in self.paths:
            try:
                status = path.stat()
            except OSError:
                continue
            found.append(Output(identity=identity_of(status), way=path, path=str(path), appended=False))
        return Assigned(by_job={job.sighting.ref: tuple(found) for job in jobs[:1]})


def one_job(procfs: Procfs, pid: int, argv: tuple[str, ...], now: float) -> OneJob:
    """The job of a command that was started a moment ago."""
    started = spawned_process(pid, argv, now)
    found = procfs.process(pid, now) or started
    root = dataclasses.replace(found, argv=argv, environment=started.environment)
    who = identity(root, root)
    if who.scheduler == "none":
        who = JobIdentity(key=f"run:{pid}", scheduler="none", master=who.master)
    return OneJob(procfs=procfs, root=root, identity=who)


def spawned_process(pid: int, argv: tuple[str, ...], now: float) -> Process:
    """What is known of a command without looking at it, which may have ended by now."""
    block = b"\0".join(os.fsencode(f"{key}={value}") for key, value in os.environ.items())
    return Process(
        pid=pid,
        start_ticks=0,
        start_time_seconds=now,
        ppid=os.getppid(),
        uid=os.getuid(),
        groups=frozenset((os.getgid(), *os.getgroups())),
        comm=argv[0].rsplit("/", 1)[-1],
        argv=argv,
        environment=allowed_environment(block),
    )


def visible_gpus(environ: Mapping[str, str], devices: tuple[GpuDevice, ...]) -> frozenset[str]:
    """UUIDs of the GPUs that the command may use: what the environment names, else all.

    A name is an index, or the beginning of a UUID, as CUDA reads them; the list ends at the first that is neither.
    """
    names = given_gpus(environ)
    if names is None:
        return frozenset(device.uuid for device in devices)
    found: set[str] = set()
    for name in names:
        match = [
            device.uuid
            for device in devices
            if (name.isdigit() and device.mig_parent_uuid is None and device.index == int(name))
            or (not name.isdigit() and device.uuid.startswith(name))
        ]
        if not match:
            break
        found.update(match)
    return frozenset(found)


def given_gpus(environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """What the environment names as the command's GPUs; None when it names none."""
    for variable in VISIBLE_VARIABLES:
        text = environ.get(variable)
        if text is not None and text.strip() not in ("all", ""):
            return (
                tuple(name.strip() for name in text.split(","))
                if text.strip() not in ("void", "none")
                else ()
            )
        if text == "" and variable == "CUDA_VISIBLE_DEVICES":
            return ()
    return None
