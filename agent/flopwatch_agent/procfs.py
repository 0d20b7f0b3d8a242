"""Processes from procfs: who they are, and only those variables of their environment that a job is known by."""

import os
from dataclasses import dataclass, field

from flopwatch_agent.sysfs import KernelTree

ENVIRONMENT = frozenset(
    (
        "SLURM_JOB_ID", "SLURM_JOBID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NODEID",
        "SLURM_JOB_NAME", "SLURM_JOB_ACCOUNT", "SLURM_JOB_USER", "SLURM_JOB_START_TIME", "SLURM_RESTART_COUNT",
        "SLURM_SUBMIT_DIR", "SLURM_STDOUTMODE", "SLURM_JOB_STDOUT", "SBATCH_OUTPUT", "SLURMD_NODENAME",
        "SLURM_JOB_NODELIST", "SLURM_NODELIST",
        "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_JOB_NUM_NODES",
        "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",
        "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "RAY_JOB_ID",
        "FLOPWATCH_MODEL", "FLOPWATCH_MFU_TARGET", "FLOPWATCH_JOB_NAME", "FLOPWATCH_JOB_KIND", "FLOPWATCH_OWNER",
        "FLOPWATCH_PARAMETERS",
        "HOME", "HF_HOME", "HF_HUB_CACHE", "WANDB_DIR", "MLFLOW_TRACKING_URI", "TENSORBOARD_LOGGING_DIR", "PET_LOG_DIR",
    )
)  # fmt: skip
"""The only variables that are kept; an environment also holds tokens and keys."""
MAX_ENVIRONMENT_BYTES = 1 << 20
SETTLED_SECONDS = 2.0
"""A younger process may still be between fork and exec, with the words of its parent."""
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """One live process. ``(pid, start_ticks)`` names it; a pid alone may be used again."""

    pid: int
    start_ticks: int
    start_time_seconds: float
    ppid: int
    uid: int
    groups: frozenset[int]
    comm: str
    argv: tuple[str, ...] = field(default=(), repr=False)
    environment: dict[str, str] | None = field(default=None, repr=False)
    """Allow-listed variables; None when they may not be read."""
    is_wiped: bool = False
    """Whether the process has overwritten its environment, as setproctitle does to make room for a title."""
    cgroup: str = ""

    @property
    def key(self) -> tuple[int, int]:
        """What tells it from any other process since boot."""
        return self.pid, self.start_ticks

    def variable(self, *names: str) -> str | None:
        """The first of the variables that is set and not empty."""
        found = (self.environment or {}).get
        return next((value for name in names if (value := found(name))), None)

    def number(self, *names: str) -> int | None:
        """The first of the variables that is set, as a whole number; None when it is not one."""
        text = self.variable(*names)
        return int(text) if text is not None and text.isdigit() else None


class Procfs:
    """Processes below a procfs root; what was read of a process is kept until the process ends."""

    def __init__(self, tree: KernelTree) -> None:
        self.tree = tree
        self._known: dict[tuple[int, int], Process] = {}
        self._asked: set[tuple[int, int]] = set()
        self._stats: dict[int, tuple[int, int] | None] = {}
        """What ``/proc/PID/stat`` said in this look; forgotten at its end."""

    def pids(self) -> tuple[int, ...]:
        """All pids."""
        return tuple(int(name) for name in self.tree.names("") if name.isdigit())

    def process(self, pid: int, now: float) -> Process | None:
        """The process with a pid; None when it ended, is a zombie, or was never there."""
        stat = self._stat(pid)
        if stat is None:
            return None
        ppid, start_ticks = stat
        self._asked.add((pid, start_ticks))
        known = self._known.get((pid, start_ticks))
        if known is not None:
            return known
        found = self._read(pid, ppid, start_ticks, now)
        if found is not None and found.argv and now - found.start_time_seconds > SETTLED_SECONDS:
            self._known[found.key] = found
        return found

    def key(self, pid: int) -> tuple[int, int] | None:
        """The pid and start of a live process."""
        stat = self._stat(pid)
        return None if stat is None else (pid, stat[1])

    def parent(self, pid: int) -> int | None:
        """The pid of the process that started a live process, read anew."""
        stat = self._read_stat(pid)
        return None if stat is None else stat[0]

    def forget_except(self, alive: frozenset[tuple[int, int]]) -> None:
        """Drop what is kept of every other process that was not asked for since the last call."""
        kept = alive | self._asked
        self._known = {key: value for key, value in self._known.items() if key in kept}
        self._asked = set()
        self._stats = {}

    def is_alive(self, pid: int, start_ticks: int) -> bool:
        """Whether this very process still runs."""
        stat = self._stat(pid)
        return stat is not None and stat[1] == start_ticks

    def _stat(self, pid: int) -> tuple[int, int] | None:
        """Parent and start of a live process, read once a look."""
        if pid not in self._stats:
            self._stats[pid] = self._read_stat(pid)
        return self._stats[pid]

    def _read_stat(self, pid: int) -> tuple[int, int] | None:
        """The same from the file. The name in brackets may hold anything, so fields count from its end."""
        text = self.tree.text(f"{pid}/stat")
        if text is None:
            return None
        fields = text[text.rfind(")") + 2 :].split()
        if len(fields) < 20 or fields[0] in ("Z", "X"):
            return None
        return int(fields[1]), int(fields[19])

    def _read(self, pid: int, ppid: int, start_ticks: int, now: float) -> Process | None:
        status = self._status(pid)
        if status is None:
            return None
        uid, groups, comm = status
        command = self._bytes(f"{pid}/cmdline") or b""
        environment = self._bytes(f"{pid}/environ")
        uptime = float((self.tree.text("uptime") or "0").split()[0])
        age = max(0.0, uptime - start_ticks / CLOCK_TICKS)
        return Process(
            pid=pid,
            start_ticks=start_ticks,
            start_time_seconds=now - age,
            ppid=ppid,
            uid=uid,
            groups=groups,
            comm=comm,
            argv=tuple(part.decode("utf-8", "replace") for part in command.split(b"\0") if part),
            environment=allowed_environment(environment),
            is_wiped=bool(environment)
            and not any(b"=" in part for part in (environment or b"").split(b"\0")),
            cgroup=self.tree.text(f"{pid}/cgroup") or "",
        )

    def _status(self, pid: int) -> tuple[int, frozenset[int], str] | None:
        text = self.tree.text(f"{pid}/status")
        values = dict(line.split(":", 1) for line in (text or "").splitlines() if ":" in line)
        try:
            uid = int(values["Uid"].split()[1])
            groups = {int(values["Gid"].split()[1]), *map(int, values.get("Groups", "").split())}
        except (KeyError, ValueError, IndexError):
            return None
        return uid, frozenset(groups), values.get("Name", "").strip()

    def _bytes(self, path: str) -> bytes | None:
        try:
            return self.tree.raw(path)[:MAX_ENVIRONMENT_BYTES]
        except OSError:
            return None


def allowed_environment(content: bytes | None) -> dict[str, str] | None:
    """The allow-listed variables of an environment block; None when there was none to read."""
    if content is None:
        return None
    kept = {}
    for part in content.split(b"\0"):
        name, separator, value = part.partition(b"=")
        if separator and (key := name.decode("utf-8", "replace")) in ENVIRONMENT:
            kept[key] = value.decode("utf-8", "replace")
    return kept
