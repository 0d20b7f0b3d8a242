"""Where a job's output goes: from ``/proc/PID/fd`` to the regular file behind it, or to the reason for none."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from flopwatch_agent.attribution import slurm_job
from flopwatch_agent.endpoint_stream import EndpointStream
from flopwatch_agent.job_paths import job_path
from flopwatch_agent.log_file import FileIdentity, identity_of
from flopwatch_agent.metric_files import MetricFile, MetricFiles
from flopwatch_agent.permissions import may_read
from flopwatch_agent.pod_logs import POD_LOGS, pod_logs
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.source import JobProcess, ObservedJob
from flopwatch_agent.trainer_endpoints import TrainerEndpoints

WRITE_FLAGS = os.O_WRONLY | os.O_RDWR
ANCESTORS = 4
SCAN_SECONDS = 20.0
SHARED_SECONDS = 0.5
MAX_OUTPUTS = 4096
MAX_NAMED = 16
SLURM_DAEMONS = frozenset(("slurmstepd", "slurmd"))
"""They take a task's output on its way to another process, and what they write themselves is the node's log."""
LOG_SUFFIXES = (".log", ".out", ".txt", ".jsonl", ".csv", ".err")

TERMINAL = (
    "its output goes to a terminal, which is not read: start it with '2>&1 | tee train.log', "
    "or report steps with flopwatch.StepReporter"
)
DISCARDED = (
    "its output is discarded (/dev/null): let it go to a file, or report steps with flopwatch.StepReporter"
)
PIPE = (
    "its output goes to a pipe whose reader writes no file that was found: add '| tee train.log', "
    "or report steps with flopwatch.StepReporter"
)
SOCKET = (
    "its output goes to a socket, such as the system's journal: let it go to a file, "
    "or report steps with flopwatch.StepReporter"
)
NO_PERMISSION = (
    "the output of its processes cannot be looked up: give the agent CAP_SYS_PTRACE (and CAP_DAC_READ_SEARCH for "
    "files that only their owner may read), or run it as that user"
)
READ_PERMISSION = (
    "give the agent CAP_DAC_READ_SEARCH or run it as that user; on a root-squashed file system run "
    "'flopwatch tail' in the job's script"
)
"""What is missing where a file may not be opened."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """A regular file that a process of the job writes."""

    identity: FileIdentity
    way: Path
    """How to open it: through the process's own descriptor, or by its path."""
    path: str
    """The path to show."""
    appended: bool
    """Opened for appending: what stood in it before may be another run's."""
    rank: int | None = None
    stream: EndpointStream | None = None
    """What is read instead of a file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outputs:
    """What was found for one job."""

    files: tuple[Output, ...] = ()
    reason: str | None = None
    """Why there is no file, in words for the job's owner."""
    beside: tuple[Output, ...] = ()
    """Files of metrics, where they were asked for."""


class LogFinder:
    """Looks at what the processes of a job write to. ``pod_root`` is where the kubelet keeps pods' output."""

    def __init__(
        self,
        procfs: Procfs,
        pod_root: Path = POD_LOGS,
        endpoints: TrainerEndpoints | None = None,
        strangers: frozenset[int] = frozenset(),
    ) -> None:
        self.procfs = procfs
        self._strangers = strangers
        """Processes whose files are nobody's log, whatever they read."""
        self._pod_root = pod_root
        self._endpoints = endpoints
        self._metrics = MetricFiles(procfs)
        self._root = procfs.tree.root
        self._prefix = f"{self._root}/"
        self._related: dict[str, tuple[float, dict[FileIdentity, Output]]] = {}
        self._outputs: dict[tuple[int, int, int], Output] = {}
        """The file behind a process's descriptor, as of the last look."""
        self._inputs: dict[int, str | None] = {}
        self._inputs_at = float("-inf")

    def find(self, job: ObservedJob, now: float, *, beside: bool = False) -> Outputs:
        """The files behind the job's standard output and error, else behind those who read its pipes.

        ``beside``: its files of metrics too.
        """
        files: dict[FileIdentity, Output] = {}
        reasons: list[str] = []
        pipes: set[int] = set()
        if len(self._outputs) > MAX_OUTPUTS:
            self._outputs.clear()
        for process in job.processes:
            for number in (1, 2):
                self._look(process, number, files, reasons, pipes)
        if not files or pipes:
            files.update(self._kept_indirect(job, pipes, now, direct=bool(files)))
        metrics = [as_output(item) for item in self._metrics.find(job, now)] if beside else []
        if beside and self._endpoints is not None:
            metrics += [as_page(stream) for stream in self._endpoints.of_job(job, now)]
        return Outputs(
            files=tuple(files.values()),
            reason=None if files else next(iter(reasons), None),
            beside=tuple(item for item in metrics if item.identity not in files),
        )

    def holds(self, job: ObservedJob, identity: FileIdentity) -> bool:
        """Whether a process of the job has a file open."""
        for process in job.processes:
            for name in self.procfs.tree.names(f"{process.pid}/fd"):
                try:
                    status = (self._root / f"{process.pid}/fd/{name}").stat()
                except OSError:
                    continue
                if identity_of(status) == identity:
                    return True
        return False

    def forget(self, ref: str) -> None:
        """Drop what is kept of a job that ended."""
        self._related.pop(ref, None)
        self._metrics.forget(ref)

    def _look(
        self,
        process: JobProcess,
        number: int,
        files: dict[FileIdentity, Output],
        reasons: list[str],
        pipes: set[int],
    ) -> None:
        """Sort one descriptor into a file, a pipe or a reason."""
        try:
            status = os.stat(f"{self._prefix}{process.pid}/fd/{number}")  # noqa: PTH116 - twice a process and look
        except PermissionError:
            reasons.append(NO_PERMISSION)
            return
        except OSError:
            return
        if stat.S_ISREG(status.st_mode):
            key = (process.pid, process.start_ticks, number)
            output = self._outputs.get(key)
            if output is None or output.identity != identity_of(status):
                output = self._outputs[key] = self._output(process.pid, number, status, process.rank)
            files.setdefault(output.identity, output)
        elif stat.S_ISFIFO(status.st_mode):
            pipes.add(status.st_ino)
            reasons.append(PIPE)
        elif stat.S_ISSOCK(status.st_mode):
            reasons.append(SOCKET)
        elif stat.S_ISCHR(status.st_mode):
            reasons.append(DISCARDED if os.major(status.st_rdev) == 1 else TERMINAL)

    def _output(self, pid: int, number: int, status: os.stat_result, rank: int | None) -> Output:
        link = self.procfs.tree.link(f"{pid}/fd/{number}") or f"/proc/{pid}/fd/{number}"
        return Output(
            identity=identity_of(status),
            way=self._root / f"{pid}/fd/{number}",
            path=link,
            appended=bool(self._flags(pid, number) & os.O_APPEND),
            rank=rank,
        )

    def _flags(self, pid: int, number: int) -> int:
        """How the descriptor was opened; appending when it cannot be told."""
        for line in (self.procfs.tree.text(f"{pid}/fdinfo/{number}") or "").splitlines():
            if line.startswith("flags:"):
                return int(line.split()[1], 8)
        return os.O_APPEND

    def _kept_indirect(
        self, job: ObservedJob, pipes: set[int], now: float, *, direct: bool
    ) -> dict[FileIdentity, Output]:
        """What ``_indirect`` finds, looked up anew only now and then: it goes through all processes."""
        kept = self._related.get(job.sighting.ref)
        if kept is None or not 0 <= now - kept[0] < SCAN_SECONDS:
            kept = self._related[job.sighting.ref] = (now, self._indirect(job, pipes, now, direct=direct))
        return kept[1]

    def _indirect(
        self, job: ObservedJob, pipes: set[int], now: float, *, direct: bool
    ) -> dict[FileIdentity, Output]:
        """Files of those who read the job's pipes, of its Slurm step's client, else the job's own open log files."""
        files = {} if direct else self._of_pod(job)
        if files:
            return files
        for pid, by_stdin in self._readers(job, pipes, now) if pipes else ():
            self._written(pid, job, files, every=by_stdin)
        if not files and not direct:
            files.update(self._of_slurm(job))
        if not files and not direct:
            for process in job.processes:
                self._written(process.pid, job, files, every=False)
        return files

    def _of_slurm(self, job: ObservedJob) -> dict[FileIdentity, Output]:
        """The file that Slurm makes of the job's output, on whatever node it is opened."""
        for named in job.output_files[:MAX_NAMED]:
            path = job_path(self.procfs, job.processes[0], named.path)
            if path is None or not path.may_be_read_by(job.processes[0]):
                continue
            try:
                status = path.way.stat()
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_uid == job.processes[0].uid:
                identity = identity_of(status)
                output = Output(
                    identity=identity, way=path.way, path=path.inside, appended=not named.of_one_job
                )
                return {identity: output}
        return {}

    def _of_pod(self, job: ObservedJob) -> dict[FileIdentity, Output]:
        """What the container runtime writes of the job's pod: the job's own output, whoever may read the file."""
        uid = job.sighting.scheduler_job_id
        if job.sighting.scheduler != "kubernetes" or uid is None:
            return {}
        return {
            identity: Output(identity=identity, way=path, path=str(path), appended=True)
            for identity, path in pod_logs(self._pod_root, uid).items()
        }

    def _standard_inputs(self, now: float) -> dict[int, str | None]:
        """What every process reads: looked up once for all jobs of a look."""
        if not 0 <= now - self._inputs_at < SHARED_SECONDS:
            tree = self.procfs.tree
            self._inputs = {pid: tree.link(f"{pid}/fd/0") for pid in self.procfs.pids()}
            self._inputs_at = now
        return self._inputs

    def _readers(self, job: ObservedJob, pipes: set[int], now: float) -> list[tuple[int, bool]]:
        """Who takes the pipes, and whether as its standard input, which is what ``tee`` does."""
        links = {f"pipe:[{inode}]" for inode in pipes}
        ours = {process.pid for process in job.processes}
        slurm = job.sighting.scheduler_job_id if job.sighting.scheduler == "slurm" else None
        found = []
        for pid, standard_input in self._standard_inputs(now).items():
            if pid in ours or pid in self._strangers:
                continue
            reads = standard_input in links
            same = slurm is not None and self._is_of_slurm(pid, slurm, now)
            if reads or same:
                found.append((pid, reads or self._comm(pid) == "srun"))
        above = (pid for pid in self._ancestors(job) if pid not in self._strangers)
        return found + [(pid, False) for pid in above if self._holds(pid, links)]

    def _ancestors(self, job: ObservedJob) -> list[int]:
        """Parents of the job's top processes: a launcher that captures output reads the pipe itself."""
        found: list[int] = []
        for process in job.processes:
            pid = process.pid
            for _ in range(ANCESTORS if process.is_top else 0):
                fields = (self.procfs.tree.text(f"{pid}/stat") or "").rpartition(")")[2].split()
                pid = int(fields[1]) if len(fields) > 1 else 0
                if pid <= 1 or pid in found or self._comm(pid) in SLURM_DAEMONS:
                    break
                found.append(pid)
        return found

    def _is_of_slurm(self, pid: int, job: str, now: float) -> bool:
        """Whether a process belongs to a job: by its cgroup, and ``srun`` by its environment where there is none."""
        found = slurm_job(self.procfs.tree.text(f"{pid}/cgroup") or "")
        if found is not None or self._comm(pid) != "srun":
            return found == job
        client = self.procfs.process(pid, now)
        return client is not None and client.variable("SLURM_JOB_ID", "SLURM_JOBID") == job

    def _comm(self, pid: int) -> str:
        return (self.procfs.tree.text(f"{pid}/comm") or "").strip()

    def _holds(self, pid: int, links: set[str]) -> bool:
        return any(
            self.procfs.tree.link(f"{pid}/fd/{name}") in links for name in self.procfs.tree.names(f"{pid}/fd")
        )

    def _written(self, pid: int, job: ObservedJob, files: dict[FileIdentity, Output], *, every: bool) -> None:
        """Regular files that a process has open for writing and the job's user may read."""
        for name in self.procfs.tree.names(f"{pid}/fd"):
            way = self._root / f"{pid}/fd/{name}"
            try:
                status = way.stat()
            except OSError:
                continue
            if not stat.S_ISREG(status.st_mode) or not self._flags(pid, int(name)) & WRITE_FLAGS:
                continue
            path = self.procfs.tree.link(f"{pid}/fd/{name}") or ""
            wanted = every or name in ("1", "2") or path.endswith(LOG_SUFFIXES)
            if not wanted or not self._readable(job, path, status):
                continue
            files.setdefault(identity_of(status), self._output(pid, int(name), status, None))

    def _readable(self, job: ObservedJob, path: str, status: os.stat_result) -> bool:
        first = job.processes[0]
        return status.st_uid == first.uid or may_read(Path(path), first.uid, first.groups)


def as_output(item: MetricFile) -> Output:
    """A file of metrics as a file to follow: what stood in it before may be another run's."""
    return Output(identity=item.identity, way=item.way, path=item.path, appended=True, rank=item.rank)


def as_page(stream: EndpointStream) -> Output:
    """A trainer's endpoint as a file to follow: all of it was scraped from this run."""
    return Output(
        identity=stream.identity, way=Path(stream.url), path=stream.url, appended=False, stream=stream
    )
