"""The host's part of jobs: CPU of main threads and data loaders, waiting for storage, and the cgroup's accounts.

Everything is read through procfs and sysfs at most every ten seconds, and at most so many processes a job.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from flopwatch.wire import JobSample
from flopwatch_agent.attribution import SPAWNED
from flopwatch_agent.job_cgroup import Account, CgroupReader, Folders, folders_of
from flopwatch_agent.procfs import CLOCK_TICKS
from flopwatch_agent.source import NOTHING, JobProcess, ObservedJob, Readings
from flopwatch_agent.sysfs import KernelTree

READ_SECONDS = 10.0
FAMILY_SECONDS = 30.0
"""So long children are taken for all there are."""
MOST_TRAINING, MOST_LOADERS = 64, 512
LOADER_NAMES = ("pt_data_worker", "pt_data_pin")
"""What PyTorch calls its data-loader processes from 2.6 on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ticks:
    """What a process or thread had used, in clock ticks."""

    parent: int
    cpu: int
    storage_wait: int
    start: int
    comm: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Look:
    """Counters of one job's processes at one time, by pid."""

    time_seconds: float
    main: Mapping[int, Ticks]
    training: Mapping[int, Ticks]
    loaders: Mapping[int, Ticks]


class JobHostSource:
    """Keeps the counters of the look before; used by one thread."""

    def __init__(self, proc: KernelTree, sys: KernelTree, interval_seconds: float) -> None:
        self._proc = proc
        self._cgroups = CgroupReader(sys)
        self._interval = max(READ_SECONDS, interval_seconds)
        self._due = float("-inf")
        self._family = Family(proc)
        self._looks: dict[str, Look] = {}
        self._folders: dict[tuple[int, int], Folders] = {}
        self.latest: tuple[JobSample, ...] = ()
        """The newest sample of every live job."""

    def read(self, now: float, jobs: Iterable[ObservedJob]) -> Readings:
        """A sample of every job that has processes here; nothing while the last one is young."""
        if 0.0 <= now - self._due < self._interval:
            return NOTHING
        self._due = now
        waits = self._tells_waits()
        live = [job for job in jobs if job.processes and not job.ended]
        folders = self._own_folders(live)
        before, self._looks = self._looks, {}
        made = []
        for job in live:
            ref = job.sighting.ref
            look = self._looks[ref] = self._look(now, job)
            account = self._cgroups.read(folders.get(ref, Folders()))
            made.append(sample(ref, before.get(ref), look, account, waits=waits))
        self.latest = tuple(made)
        return Readings(job_samples=self.latest)

    def _tells_waits(self) -> bool:
        """Whether the kernel counts waiting for storage; older kernels do unless told not to."""
        return self._proc.text("sys/kernel/task_delayacct") != "0"

    def _own_folders(self, jobs: list[ObservedJob]) -> dict[str, Folders]:
        """By job: the folders of its cgroup; none where two jobs have the same."""
        found = {}
        keys = set()
        for job in jobs:
            first = job.processes[0]
            key = (first.pid, first.start_ticks)
            keys.add(key)
            if key not in self._folders:
                self._folders[key] = folders_of(self._proc.text(f"{first.pid}/cgroup") or "")
            found[job.sighting.ref] = self._folders[key]
        self._folders = {key: value for key, value in self._folders.items() if key in keys}
        shared = Counter(found.values())
        return {ref: each for ref, each in found.items() if shared[each] == 1}

    def _look(self, now: float, job: ObservedJob) -> Look:
        training = training_processes(job.processes)[:MOST_TRAINING]
        pids = [process.pid for process in training]
        own = {process.pid: stat for process in training if (stat := self._stat(process.pid)) is not None}
        main = {pid: stat for pid in own if (stat := self._stat(f"{pid}/task/{pid}")) is not None}
        loaders = {}
        for pid in self._family.loaders(now, pids)[:MOST_LOADERS]:
            stat = self._stat(pid)
            if stat is not None:
                loaders[pid] = stat
        return Look(time_seconds=now, main=main, training=own, loaders=loaders)

    def _stat(self, path: int | str) -> Ticks | None:
        return ticks(self._proc.text(f"{path}/stat"))


class Family:
    """Finds the data-loader processes of training processes."""

    def __init__(self, proc: KernelTree) -> None:
        self._proc = proc
        self._parents: dict[int, int] = {}
        self._words: dict[int, tuple[str, ...]] = {}
        self._children: dict[int, list[int]] = {}
        self._at = float("-inf")

    def loaders(self, now: float, training: list[int]) -> list[int]:
        """Children that run the training process's own program, or that Python's multiprocessing started."""
        if not 0.0 <= now - self._at < FAMILY_SECONDS:
            self._at = now
            self._look()
        trainers = set(training)
        found = []
        for pid in training:
            for child in self._children.get(pid, ()):
                if child in trainers:
                    continue
                # A fork server's children are the loaders; itself it only waits.
                found += [
                    one
                    for one in (child, *self._children.get(child, ()))
                    if one not in trainers and self._is_loader(one, pid)
                ]
        return list(dict.fromkeys(found))

    def _look(self) -> None:
        """Parents of processes that are new since the last look; one that ended is forgotten."""
        pids = [int(name) for name in self._proc.names("") if name.isdigit()]
        parents = {}
        for pid in pids:
            parent = self._parents.get(pid)
            if parent is None:
                stat = ticks(self._proc.text(f"{pid}/stat"))
                parent = None if stat is None else stat.parent
            if parent is not None:
                parents[pid] = parent
        self._parents = parents
        self._words = {pid: words for pid, words in self._words.items() if pid in parents}
        self._children = {}
        for pid, parent in parents.items():
            self._children.setdefault(parent, []).append(pid)

    def _is_loader(self, pid: int, trainer: int) -> bool:
        words = self._argv(pid)
        if any(mark in word for word in words for mark in SPAWNED):
            return True
        if words and words == self._argv(trainer):
            return True
        return (self._proc.text(f"{pid}/comm") or "").startswith(LOADER_NAMES)

    def _argv(self, pid: int) -> tuple[str, ...]:
        known = self._words.get(pid)
        if known is None:
            text = self._proc.text(f"{pid}/cmdline") or ""
            known = self._words[pid] = tuple(part for part in text.split("\0") if part)
        return known


def training_processes(processes: tuple[JobProcess, ...]) -> list[JobProcess]:
    """Those that compute: ranks where they are known, else all but the launchers, else all."""
    ranks = [process for process in processes if process.rank is not None]
    return ranks or [process for process in processes if not process.is_top] or list(processes)


def ticks(text: str | None) -> Ticks | None:
    """The counters of ``/proc/PID/stat``; None of a process that is gone or a zombie."""
    if text is None:
        return None
    end = text.rfind(")")
    fields = text[end + 2 :].split()
    if len(fields) < 20 or fields[0] in ("Z", "X"):
        return None
    return Ticks(
        parent=int(fields[1]),
        cpu=int(fields[11]) + int(fields[12]),
        storage_wait=int(fields[39]) if len(fields) > 39 else 0,
        start=int(fields[19]),
        comm=text[text.find("(") + 1 : end],
    )


def sample(ref: str, before: Look | None, now: Look, account: Account, *, waits: bool) -> JobSample:
    """What a job did between two looks; shares are unknown at the first, and without a process in both."""
    seconds = None if before is None else now.time_seconds - before.time_seconds
    counts = {"training_processes": len(now.training), "loader_processes": len(now.loaders)}
    if before is None or seconds is None or seconds <= 0.0:
        return JobSample(time_seconds=now.time_seconds, job=ref, **counts, **asdict(account))
    main, training, loaders = (
        used(getattr(before, name), getattr(now, name), seconds) for name in ("main", "training", "loaders")
    )
    wait = [
        share
        for name in ("main", "loaders")
        for share in used(getattr(before, name), getattr(now, name), seconds, "storage_wait")
    ]
    return JobSample(
        time_seconds=now.time_seconds,
        job=ref,
        interval_seconds=seconds,
        main_thread_ratio=min(max(main), 1.0) if main else None,
        training_cpu_cores=sum(training) if training else None,
        loader_cpu_cores=sum(loaders) if loaders else None,
        loader_busiest_ratio=max(loaders, default=None),
        io_wait_ratio=min(max(wait), 1.0) if waits and wait else None,
        **counts,
        **asdict(account),
    )


def used(
    before: Mapping[int, Ticks], now: Mapping[int, Ticks], seconds: float, counter: str = "cpu"
) -> list[float]:
    """Shares of a core that processes in both looks used between them."""
    found = []
    for pid, after in now.items():
        earlier = before.get(pid)
        if earlier is not None and earlier.start == after.start:
            step = getattr(after, counter) - getattr(earlier, counter)
            found.append(max(0.0, step / CLOCK_TICKS / seconds))
    return found
