"""Files of metrics beside a job's output: those its processes have open, and those in the folders that it uses.

TensorBoard event files, JSON lines, CSV tables, MLflow's step times, and the copies of the console that torchrun and
W&B keep. Only regular files that changed since the job began and that the job's own user may read.
"""

import dataclasses
import itertools
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flopwatch_agent.job_paths import JobPath, job_path
from flopwatch_agent.log_file import FileIdentity, identity_of
from flopwatch_agent.permissions import may_read
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.shared_folders import Found, as_path, own_files
from flopwatch_agent.source import JobProcess, ObservedJob
from flopwatch_agent.trainers.tensorboard import TAGS

SCAN_SECONDS = 20.0
SHARED_SECONDS = 0.5
MAX_FOLDERS = 16
MAX_ENTRIES = 2000
MAX_DEPTH = 6
MAX_FILES = 8
MAX_DESCRIPTORS = 1024
START_SLACK_SECONDS = 2.0
WRITE_FLAGS = os.O_WRONLY | os.O_RDWR
STEP_TIMES = "|".join(re.escape(tag) for tag, quantity in TAGS.items() if quantity == "seconds")
KINDS = (
    re.compile(r"/attempt_\d+/\d+/std(?:out|err)\.log$"),
    re.compile(r"\.jsonl$"),
    re.compile(r"\.csv$"),
    re.compile(rf"/metrics/(?:{STEP_TIMES})$"),
    re.compile(r"/wandb/(?:offline-)?run-[^/]+/files/output\.log$"),
    re.compile(r"/wandb/(?:offline-)?run-[^/]+/run-[^/]+\.wandb$"),
    re.compile(r"/events\.out\.tfevents\.[^/]+$"),
)
"""Paths of files that may hold steps, the more telling kinds first."""
SIGNS = (".jsonl", ".csv", ".log", ".wandb", "tfevents", "/metrics/")
"""One of them is in every such path: most paths are ruled out by it alone."""
TRACKER_RUN = re.compile(r"(?P<run>.*/wandb/(?:offline-)?run-[^/]+)/")
"""W&B keeps its own log open in the run's folder."""
SKIPPED = re.compile(r"\.|checkpoint|global_step|iter_|epoch_?\d|artifacts$|cache$|node_modules$")
"""Folders that hold weights, not metrics."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricFile:
    """One file that may hold the job's steps."""

    identity: FileIdentity
    way: Path
    path: str
    kind: int
    """Index into ``KINDS``."""
    rank: int | None = None


class MetricFiles:
    """Looks for them, for each job only now and then."""

    def __init__(self, procfs: Procfs) -> None:
        self._procfs = procfs
        self._root = procfs.tree.root
        self._known: dict[str, tuple[float, tuple[MetricFile, ...]]] = {}
        self._parents: dict[int, int] = {}
        """Who started each process: looked up once for all jobs of a look."""
        self._parents_at = float("-inf")

    def find(self, job: ObservedJob, now: float) -> tuple[MetricFile, ...]:
        """The files of a live job, the more telling first."""
        kept = self._known.get(job.sighting.ref)
        if kept is None or not 0 <= now - kept[0] < SCAN_SECONDS:
            kept = self._known[job.sighting.ref] = (now, self._look(job, now) if job.processes else ())
        return kept[1]

    def forget(self, ref: str) -> None:
        """Drop what is kept of a job that ended."""
        self._known.pop(ref, None)

    def _look(self, job: ObservedJob, now: float) -> tuple[MetricFile, ...]:
        found: dict[FileIdentity, MetricFile] = {}
        folders: list[JobPath] = []
        for process in (*job.processes, *self._children(job, now)):
            self._open_ones(process, found, folders)
        folders += self._paths(job, job.output_paths)
        left = [MAX_ENTRIES]
        for folder in dict.fromkeys(folders[:MAX_FOLDERS]):
            for item, _ in self._below(job, folder, left):
                found.setdefault(item.identity, item)
        left = [MAX_ENTRIES]
        for folder in self._paths(job, job.shared_paths):
            items = list(self._below(job, folder, left))
            own = own_files(((below, status) for item, (below, status) in items), self._procfs, job.processes)
            for item, _ in items:
                if item.identity in own:
                    found.setdefault(item.identity, item)
        ordered = sorted(found.values(), key=lambda item: (item.kind, item.rank or 0, item.path))
        return tuple(ordered[:MAX_FILES])

    def _paths(self, job: ObservedJob, texts: tuple[str, ...]) -> list[JobPath]:
        """Folders as the job's first process means them."""
        named = (job_path(self._procfs, job.processes[0], path) for text in texts if (path := as_path(text)))
        return [folder for folder in named if folder is not None]

    def _below(
        self, job: ObservedJob, folder: JobPath, left: list[int]
    ) -> Iterator[tuple[MetricFile, Found]]:
        """Files of the known kinds below a folder that changed since the job began and that its user may read."""
        first = job.processes[0]
        start = job.sighting.start_time_seconds or first.start_time_seconds
        for name, kind, status in entries(folder.way, left):
            path = folder.below(name)
            if status.st_mtime >= start - START_SLACK_SECONDS and path.may_be_read_by(first):
                item = MetricFile(identity=identity_of(status), way=path.way, path=path.inside, kind=kind)
                yield item, (path.inside, status)

    def _children(self, job: ObservedJob, now: float) -> list[JobProcess]:
        """Processes that the job's own started and that are none of them, such as a tracker's writer."""
        own = {process.pid: process for process in job.processes}
        if not 0 <= now - self._parents_at < SHARED_SECONDS:
            self._parents = {pid: self._procfs.parent(pid) or 0 for pid in self._procfs.pids()}
            self._parents_at = now
        return [
            dataclasses.replace(own[parent], pid=pid, rank=None, is_top=False)
            for pid, parent in self._parents.items()
            if parent in own and pid not in own
        ]

    def _open_ones(
        self, process: JobProcess, found: dict[FileIdentity, MetricFile], folders: list[JobPath]
    ) -> None:
        """Files of the known kinds that a process writes, and folders of trackers that it is seen to use."""
        for name in self._procfs.tree.names(f"{process.pid}/fd")[:MAX_DESCRIPTORS]:
            path = self._procfs.tree.link(f"{process.pid}/fd/{name}") or ""
            run = TRACKER_RUN.match(path)
            if run is not None and (folder := job_path(self._procfs, process, run["run"])) is not None:
                folders.append(folder)
            kind = kind_of(path)
            if kind is None or not self._is_written(process.pid, name):
                continue
            way = self._root / f"{process.pid}/fd/{name}"
            try:
                status = way.stat()
            except OSError:
                continue
            may = status.st_uid == process.uid or may_read(Path(path), process.uid, process.groups)
            if stat.S_ISREG(status.st_mode) and may:
                item = MetricFile(
                    identity=identity_of(status), way=way, path=path, kind=kind, rank=process.rank
                )
                found.setdefault(item.identity, item)

    def _is_written(self, pid: int, name: str) -> bool:
        for line in (self._procfs.tree.text(f"{pid}/fdinfo/{name}") or "").splitlines():
            if line.startswith("flags:"):
                return bool(int(line.split()[1], 8) & WRITE_FLAGS)
        return False


def kind_of(path: str) -> int | None:
    """Which of ``KINDS`` a path is of; None for any other file."""
    if not any(sign in path for sign in SIGNS):
        return None
    return next((number for number, pattern in enumerate(KINDS) if pattern.search(path)), None)


def entries(folder: Path, limit: list[int]) -> Iterator[tuple[str, int, os.stat_result]]:
    """(path below the folder, kind, status) of regular files of the known kinds below a folder; links are not followed.

    At most ``limit[0]`` entries are looked at; it is lowered by those that were.
    """
    waiting = [(str(folder), 0)]
    while waiting and limit[0] > 0:
        here, depth = waiting.pop(0)
        try:
            with os.scandir(here) as listed:
                children = sorted(itertools.islice(listed, limit[0]), key=lambda entry: entry.name)
        except OSError:
            continue
        limit[0] -= len(children)
        for entry in children:
            try:
                if entry.is_dir(follow_symlinks=False):
                    if depth < MAX_DEPTH and not SKIPPED.match(entry.name):
                        waiting.append((entry.path, depth + 1))
                elif (kind := kind_of(entry.path)) is not None and entry.is_file(follow_symlinks=False):
                    yield os.path.relpath(entry.path, folder), kind, entry.stat(follow_symlinks=False)
            except OSError:
                continue
