"""Jobs: from the processes that compute on the GPUs, or speak to the SDK's socket, to the jobs they belong to."""

import functools
import pwd
from collections.abc import Mapping
from dataclasses import dataclass, field

from flopwatch.wire import Finding, GpuDevice, JobKind, JobSighting
from flopwatch_agent.allocations import Allocation, gpu_of_device_id
from flopwatch_agent.attribution import (
    JobIdentity,
    config_paths,
    identity,
    job_kind,
    metrics_ports,
    output_paths,
    pod_uid,
    program_name,
    rendezvous,
    slurm_job,
    started_by_parent,
)
from flopwatch_agent.hub_cache import model_caches
from flopwatch_agent.procfs import SETTLED_SECONDS, Process, Procfs
from flopwatch_agent.run_job import OneJob
from flopwatch_agent.shared_folders import shared_paths
from flopwatch_agent.slurm_output import SlurmFile, slurm_files
from flopwatch_agent.source import JobProcess, ObservedJob

MAX_CLIMB = 8
KINDS: tuple[JobKind, ...] = ("pretrain", "finetune", "rl", "eval", "inference", "interactive")
WITHOUT_ENVIRONMENT = (
    "the environment of processes of user id {uid} cannot be read: give the agent CAP_SYS_PTRACE, "
    "or run it as that user; rank and world size are unknown without it"
)
WIPED_ENVIRONMENT = (
    "processes of user id {uid} have overwritten their environment, as setproctitle does (SPT_NOENV=1 keeps it): rank "
    "and world size are unknown, and the job is known by its cgroup or by whom its GPUs were given to"
)
WITHOUT_PROCESS = (
    "{count} processes that NVML lists are not in the process table: run the agent in the host's process namespace "
    "(hostPID), or point agent.proc_root at the host's"
)


@dataclass(slots=True)
class Tracked:
    """A job that is alive on this node."""

    ref: str
    identity: JobIdentity
    members: dict[tuple[int, int], Process] = field(default_factory=dict)
    tops: set[tuple[int, int]] = field(default_factory=set)
    gpus: set[str] = field(default_factory=set)
    ranks: dict[str, int | None] = field(default_factory=dict)
    """By GPU: the rank that computes on it; None where it is not known, or is not one."""
    by_lease: bool = False
    """Whether it is known only by whom the GPUs were given to when its first process was seen."""


class JobsSource:
    """Keeps the jobs of the node; a job lives while any of its processes does. ``only``: all are one command's."""

    name = "jobs"

    def __init__(self, procfs: Procfs, boot_id: str, only: OneJob | None = None) -> None:
        self._procfs = procfs
        self._only = only
        self._boot = boot_id[:8]
        self._tracked: dict[str, Tracked] = {}
        self._seen: set[tuple[int, int]] = set()
        self._users: dict[int, str | None] = {}
        self.leases: Mapping[str, Allocation] = {}
        """By GPU: the one job that a scheduler gave it to."""
        self.gaps: tuple[str, ...] = ()
        """What could not be read and why, as of the last look."""
        self.blind: tuple[str, ...] = ()
        """Those of them that keep whole jobs from being seen."""
        self.unseen_gpus: tuple[str, ...] = ()
        """GPUs on which the driver lists processes that are not in the process table."""

    def observe(
        self,
        now: float,
        processes: Mapping[str, tuple[int, ...] | None],
        peers: frozenset[int],
        devices: tuple[GpuDevice, ...],
    ) -> tuple[ObservedJob, ...]:
        """The jobs at ``now``: those alive, then those that ended since the last look.

        ``processes`` are pids by GPU, ``peers`` pids that the SDK's socket knows.
        """
        for job in self._tracked.values():
            job.gpus.clear()
            job.ranks.clear()
        invisible = self._take_in(now, processes, peers)
        ended = self._drop_dead()
        self._procfs.forget_except(frozenset(key for job in self._tracked.values() for key in job.members))
        self.gaps = self._gaps(invisible)
        alive = [self._observed(job, devices, None) for job in self._tracked.values()]
        return (*alive, *(self._observed(job, devices, now) for job in ended))

    def scan(self, now: float) -> frozenset[int]:
        """Pids of distributed training workers that started since the last scan: the way when NVML lists none."""
        if self._only is not None:
            return self._only.members(now)
        found: set[int] = set()
        seen: set[tuple[int, int]] = set()
        for pid in self._procfs.pids():
            key = self._procfs.key(pid)
            if key is None or key in self._seen:
                seen.update(() if key is None else (key,))
                continue
            process = self._procfs.process(pid, now)
            if process is None:
                continue
            if now - process.start_time_seconds > SETTLED_SECONDS:
                seen.add(key)
            if process.number("WORLD_SIZE") and process.number("RANK") is not None:
                found.add(pid)
        self._seen = seen
        return frozenset(found)

    def ref_of(self, pid: int) -> str | None:
        """The job that a live process belongs to."""
        for job in self._tracked.values():
            if any(key[0] == pid for key in job.members):
                return job.ref
        return None

    def start_of(self, pid: int) -> int | None:
        """When a member of a job started, in ticks since boot."""
        keys = (key for job in self._tracked.values() for key in job.members)
        return next((start for member, start in keys if member == pid), None)

    def _take_in(
        self, now: float, processes: Mapping[str, tuple[int, ...] | None], peers: frozenset[int]
    ) -> int:
        pids: dict[int, set[str]] = {pid: set() for pid in peers}
        for gpu, listed in processes.items():
            for pid in listed or ():
                pids.setdefault(pid, set()).add(gpu)
        invisible, unseen = 0, set[str]()
        for pid, gpus in sorted(pids.items()):
            process = self._process(pid, now)
            if process is None:
                invisible, unseen = invisible + bool(gpus), unseen | gpus
                continue
            self._join(process, self._top(process, now), gpus)
        self.unseen_gpus = tuple(sorted(unseen))
        return invisible

    def _process(self, pid: int, now: float) -> Process | None:
        """A live process, or the one command, of which an ended process table entry tells nothing any more."""
        process = self._procfs.process(pid, now)
        if self._only is None or pid != self._only.root.pid or (process is not None and process.argv):
            return process
        return self._only.root

    def _top(self, process: Process, now: float) -> Process:
        """The launcher or script at the head of a worker's line of parents."""
        if self._only is not None:
            return self._only.root
        top = process
        for _ in range(MAX_CLIMB):
            parent = self._procfs.process(top.ppid, now)
            if parent is None or not started_by_parent(top, parent):
                break
            top = parent
        return top

    def _join(self, process: Process, top: Process, gpus: set[str]) -> None:
        who, by_lease = self._identity(process, top, gpus)
        job = self._tracked.get(who.key)
        if job is not None and not self._continues(job, process, top):
            del self._tracked[who.key]
            job = None
        if job is None:
            ref = who.key if who.scheduler != "none" else f"process:{self._boot}:{top.pid}:{top.start_ticks}"
            job = self._tracked[who.key] = Tracked(ref=ref, identity=who, by_lease=by_lease)
        job.members[process.key] = process
        job.members[top.key] = top
        job.tops.add(top.key)
        job.gpus |= gpus
        rank = rank_of(process)
        for gpu in gpus:
            job.ranks[gpu] = rank if job.ranks.get(gpu, rank) == rank else None

    def _identity(self, process: Process, top: Process, gpus: set[str]) -> tuple[JobIdentity, bool]:
        """The job of a process, and whether only the lease of its GPUs tells it; what was told once stays."""
        if self._only is not None:
            return self._only.identity, False
        who = identity(process, top)
        if who.scheduler != "none":
            return who, False
        own = (job for job in self._tracked.values() if process.key in job.members)
        known = next(own, None)
        if known is not None:
            return (known.identity, True) if known.by_lease else (who, False)
        given = {self.leases.get(gpu) for gpu in gpus}
        lease = given.pop() if len(given) == 1 else None
        if lease is None:
            return who, False
        leased = JobIdentity(
            key=lease.ref, scheduler=lease.scheduler, scheduler_job_id=lease.job_id, master=who.master
        )
        return leased, True

    def _continues(self, job: Tracked, process: Process, top: Process) -> bool:
        """Whether a process joins a live job; one with all its members dead was another run at the same address."""
        if process.key in job.members or top.key in job.members or job.identity.scheduler != "none":
            return True
        return any(self._procfs.is_alive(*key) for key in job.members)

    def _drop_dead(self) -> list[Tracked]:
        ended = []
        if self._only is not None:
            ended = list(self._tracked.values()) if self._only.ended else []
            self._tracked = {} if self._only.ended else self._tracked
            return ended
        for key, job in list(self._tracked.items()):
            dead = [member for member in job.members if not self._procfs.is_alive(*member)]
            if len(dead) == len(job.members):
                ended.append(self._tracked.pop(key))
                continue
            for member in dead:
                del job.members[member]
        return ended

    def _gaps(self, invisible: int) -> tuple[str, ...]:
        uids = {
            p.uid for job in self._tracked.values() for p in job.members.values() if p.environment is None
        }
        wiped = {p.uid for job in self._tracked.values() for p in job.members.values() if p.is_wiped}
        gaps = [WITHOUT_ENVIRONMENT.format(uid=uid) for uid in sorted(uids)]
        gaps += [WIPED_ENVIRONMENT.format(uid=uid) for uid in sorted(wiped)]
        self.blind = (WITHOUT_PROCESS.format(count=invisible),) if invisible else ()
        return (*gaps, *self.blind)

    def _observed(self, job: Tracked, devices: tuple[GpuDevice, ...], end: float | None) -> ObservedJob:
        members = sorted(job.members.values(), key=lambda item: (item.start_ticks, item.pid))
        configs = dict.fromkeys(path for process in members for path in config_paths(process.argv))
        outputs = dict.fromkeys(path for process in members for path in output_paths(process.argv))
        sighting, findings = self._sighting(job, members, devices, end)
        return ObservedJob(
            sighting=sighting,
            processes=tuple(as_job_process(item, is_top=item.key in job.tops) for item in members),
            config_paths=tuple(configs),
            output_paths=tuple(outputs),
            shared_paths=shared_paths(functools.partial(variable, members)),
            output_files=output_files(members),
            metrics_ports=tuple(dict.fromkeys(port for item in members for port in metrics_ports(item.argv))),
            model_caches=model_caches(functools.partial(variable, members)),
            declared_model=variable(members, "FLOPWATCH_MODEL"),
            declared_parameters=number(members, "FLOPWATCH_PARAMETERS"),
            findings=findings,
            ended=end is not None,
        )

    def _sighting(
        self, job: Tracked, members: list[Process], devices: tuple[GpuDevice, ...], end: float | None
    ) -> tuple[JobSighting, tuple[Finding, ...]]:
        first = members[0]
        target, doubt = declared_target(job.ref, variable(members, "FLOPWATCH_MFU_TARGET"))
        who = job.identity
        sighting = JobSighting(
            ref=job.ref,
            scheduler=who.scheduler,
            scheduler_job_id=who.scheduler_job_id,
            array_parent_id=variable(members, "SLURM_ARRAY_JOB_ID"),
            restart_count=number(members, "SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT"),
            uid=first.uid,
            user=self._user(members, first.uid, who.scheduler),
            account=variable(members, "SLURM_JOB_ACCOUNT"),
            name=job_name(members),
            kind=kind_of(members),
            master=who.master or next((m for p in members if (m := rendezvous(p))), None),
            world_size=world_size(members),
            ranks=tuple(sorted({rank for item in members if (rank := rank_of(item)) is not None})),
            start_time_seconds=first.start_time_seconds,
            end_time_seconds=end,
            gpus=tuple(sorted(job.gpus)),
            gpu_ranks=gpu_ranks(job),
            leased_gpus=leased_gpus(members, devices),
            mfu_target_ratio=target,
            owner_contact=variable(members, "FLOPWATCH_OWNER"),
        )
        return sighting, (doubt,) if doubt is not None else ()

    def _user(self, members: list[Process], uid: int, scheduler: str) -> str | None:
        told = variable(members, "SLURM_JOB_USER")
        if told is not None or scheduler == "kubernetes":
            return told
        if uid not in self._users:
            try:
                self._users[uid] = pwd.getpwuid(uid).pw_name
            except KeyError:
                self._users[uid] = None
        return self._users[uid]


def gpu_ranks(job: Tracked) -> tuple[int | None, ...]:
    """The rank on each GPU, in the order of the GPUs' names; empty where none is known."""
    ranks = tuple(job.ranks.get(gpu) for gpu in sorted(job.gpus))
    return ranks if any(rank is not None for rank in ranks) else ()


def as_job_process(process: Process, *, is_top: bool) -> JobProcess:
    """What the log reader needs to know of a process."""
    return JobProcess(
        pid=process.pid,
        start_ticks=process.start_ticks,
        start_time_seconds=process.start_time_seconds,
        uid=process.uid,
        groups=process.groups,
        is_top=is_top,
        rank=rank_of(process),
    )


def output_files(members: list[Process]) -> tuple[SlurmFile, ...]:
    """Where Slurm may put the output of a job's processes on this node."""
    of_slurm = (item for item in members if pod_uid(item.cgroup) is None)
    return tuple(dict.fromkeys(file for item in of_slurm for file in slurm_files(item.variable)))


def variable(members: list[Process], *names: str) -> str | None:
    """The variable as the first process that has it says."""
    return next((value for item in members if (value := item.variable(*names)) is not None), None)


def number(members: list[Process], *names: str) -> int | None:
    """The variable as a whole number, as the first process that has it says."""
    return next((value for item in members if (value := item.number(*names)) is not None), None)


def rank_of(process: Process) -> int | None:
    """The process's global rank, as torch or Slurm numbers it."""
    rank = process.number("RANK")
    return rank if rank is not None or not in_step(process) else process.number("SLURM_PROCID")


def world_size(members: list[Process]) -> int | None:
    """Ranks of the whole job: torch's own count, else the tasks of the Slurm step that started them."""
    told = number(members, "WORLD_SIZE")
    if told is not None:
        return told if told > 0 else None
    tasks = [value for item in members if in_step(item) and (value := item.number("SLURM_NTASKS"))]
    return tasks[0] if tasks and tasks[0] > 1 else None


def in_step(process: Process) -> bool:
    """Whether ``srun`` started the process: its cgroup has a numbered step, not ``batch`` or ``extern``."""
    return slurm_job(process.cgroup) is not None and (process.variable("SLURM_STEP_ID") or "").isdigit()


def job_name(members: list[Process]) -> str | None:
    """The name given by the owner or the scheduler, else the script's."""
    told = variable(members, "FLOPWATCH_JOB_NAME", "SLURM_JOB_NAME")
    return told[:128] if told else next((name for item in members if (name := program_name(item.argv))), None)


def kind_of(members: list[Process]) -> JobKind:
    """The declared kind, else what the command lines say."""
    told = variable(members, "FLOPWATCH_JOB_KIND")
    for kind in KINDS:
        if kind == told:
            return kind
    found = (job_kind(item) for item in members)
    return next((kind for kind in found if kind != "unknown"), "unknown")


def declared_target(ref: str, text: str | None) -> tuple[float | None, Finding | None]:
    """``FLOPWATCH_MFU_TARGET`` as a ratio; a finding when it is none."""
    if text is None:
        return None, None
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if 0.0 < value <= 1.0:
        return value, None
    doubt = "FLOPWATCH_MFU_TARGET is not a ratio above 0 and at most 1, nor a percentage such as 45%; it is ignored"
    return None, Finding(job=ref, code="bad_declaration", text=doubt)


def leased_gpus(members: list[Process], devices: tuple[GpuDevice, ...]) -> tuple[str, ...] | None:
    """GPUs that Slurm gave the job here, by global indices (minor numbers) or UUIDs; None when they do not all fit."""
    text = variable(members, "SLURM_JOB_GPUS", "SLURM_STEP_GPUS")
    if not text:
        return None
    by_minor = {device.minor: device.uuid for device in devices if device.mig_parent_uuid is None}
    found = [
        by_minor.get(int(part)) if part.isdigit() else gpu_of_device_id(part, devices)
        for part in text.split(",")
    ]
    known = [uuid for uuid in found if uuid is not None]
    return tuple(known) if known and len(known) == len(found) else None
