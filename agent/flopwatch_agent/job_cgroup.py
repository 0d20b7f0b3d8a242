"""What the kernel accounts to a job's cgroup, version 1 or 2: memory, page cache, storage, and pressure."""

import re
from dataclasses import dataclass

from flopwatch_agent.attribution import POD
from flopwatch_agent.sources.host import pressure_ratio
from flopwatch_agent.sysfs import KernelTree

ROOT = "fs/cgroup"
SLURM_JOB = re.compile(r"job_\d+")
SLUID = re.compile(r"s[0-9A-Z]{10,}", re.IGNORECASE)
SHARED = re.compile(
    r"session-\w+\.scope|user@\d+\.service|user-\d+\.slice|(?:user|system|init)\.(?:slice|scope)"
)
"""Cgroups that hold a whole login, or all services: what they did is not one job's."""
UNLIMITED_BYTES = 1 << 60
MEMORY_VALUES = frozenset(
    ("inactive_file", "total_inactive_file", "pgmajfault", "total_pgmajfault", "workingset_refault_file",
     "total_workingset_refault_file")
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Folders:
    """Where a job's accounts lie below sysfs; None: there is no account of its own."""

    memory: str | None = None
    storage: str | None = None
    unified: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """One reading; counters are cumulative, None is not known."""

    cpu_pressure_ratio: float | None = None
    memory_pressure_ratio: float | None = None
    io_pressure_ratio: float | None = None
    memory_used_bytes: int | None = None
    memory_limit_bytes: int | None = None
    disk_read_bytes: int | None = None
    disk_write_bytes: int | None = None
    major_faults: int | None = None
    cache_refaults: int | None = None


def folders_of(cgroup: str) -> Folders:
    """The folders for the text of ``/proc/PID/cgroup``.

    Controllers of version 1 win over the unified tree beside them, which then holds none of them.
    """
    paths: dict[str, str] = {}
    for line in cgroup.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for name in [""] if number == "0" else controllers.split(","):
            paths[name] = path
    memory, storage = (own_path(paths[name]) if name in paths else None for name in ("memory", "blkio"))
    if "memory" in paths or "blkio" in paths:
        return Folders(
            memory=None if memory is None else f"{ROOT}/memory{memory}",
            storage=None if storage is None else f"{ROOT}/blkio{storage}",
            unified=False,
        )
    whole = own_path(paths.get("", "/"))
    folder = None if whole is None else f"{ROOT}{whole}"
    return Folders(memory=folder, storage=folder)


def own_path(path: str) -> str | None:
    """The path of the job's cgroup: cut at Slurm's job or the pod, else as it is; None where others share it."""
    parts = [part for part in path.split("/") if part]
    if not parts or ".." in parts:
        return None
    for position, part in enumerate(parts):
        before = parts[position - 1] if position else ""
        slurm = "slurm" in path and (
            SLURM_JOB.fullmatch(part) or (before == "slurmstepd.scope" and SLUID.fullmatch(part))
        )
        if slurm or ("kubepods" in path and POD.search(f"/{part}")):
            return "/" + "/".join(parts[: position + 1])
    return None if SHARED.fullmatch(parts[-1]) else "/" + "/".join(parts)


class CgroupReader:
    """Reads accounts; which devices are whole disks is looked up once."""

    def __init__(self, sys: KernelTree) -> None:
        self._sys = sys
        self._disks: dict[str, bool] = {}

    def read(self, folders: Folders) -> Account:
        """What is accounted now; version 1 knows no pressure."""
        return self._unified(folders) if folders.unified else self._first(folders)

    def _unified(self, folders: Folders) -> Account:
        folder = folders.memory
        if folder is None:
            return Account()
        values = numbers(self._sys.text(f"{folder}/memory.stat") or "", MEMORY_VALUES)
        read, written = self._io_stat(self._sys.text(f"{folder}/io.stat"))
        cpu, memory, storage = (
            pressure_ratio(self._sys.text(f"{folder}/{name}.pressure") or "")
            for name in ("cpu", "memory", "io")
        )
        return Account(
            cpu_pressure_ratio=cpu, memory_pressure_ratio=memory, io_pressure_ratio=storage,
            memory_used_bytes=without(self._sys.number(f"{folder}/memory.current"), values.get("inactive_file")),
            memory_limit_bytes=self._sys.number(f"{folder}/memory.max"),
            disk_read_bytes=read, disk_write_bytes=written,
            major_faults=values.get("pgmajfault"), cache_refaults=values.get("workingset_refault_file"),
        )  # fmt: skip

    def _first(self, folders: Folders) -> Account:
        values: dict[str, int] = {}
        used = limit = None
        if folders.memory is not None:
            values = numbers(self._sys.text(f"{folders.memory}/memory.stat") or "", MEMORY_VALUES)
            used = self._sys.number(f"{folders.memory}/memory.usage_in_bytes")
            limit = self._sys.number(f"{folders.memory}/memory.limit_in_bytes")
        read = written = None
        if folders.storage is not None:
            read, written = self._service_bytes(
                self._sys.text(f"{folders.storage}/blkio.throttle.io_service_bytes_recursive")
                or self._sys.text(f"{folders.storage}/blkio.throttle.io_service_bytes")
            )
        return Account(
            memory_used_bytes=without(used, values.get("total_inactive_file")),
            memory_limit_bytes=None if limit is None or limit >= UNLIMITED_BYTES else limit,
            disk_read_bytes=read,
            disk_write_bytes=written,
            major_faults=values.get("total_pgmajfault"),
            cache_refaults=values.get("total_workingset_refault_file"),
        )

    def _io_stat(self, text: str | None) -> tuple[int | None, int | None]:
        """Bytes read and written of whole disks: what a mapped device did stands in its disks' lines as well."""
        if text is None:
            return None, None
        read = written = 0
        for line in text.splitlines():
            device, _, rest = line.partition(" ")
            if self._is_disk(device):
                values = dict(part.split("=", 1) for part in rest.split() if "=" in part)
                read += whole(values.get("rbytes"))
                written += whole(values.get("wbytes"))
        return read, written

    def _service_bytes(self, text: str | None) -> tuple[int | None, int | None]:
        if text is None:
            return None, None
        sums = {"Read": 0, "Write": 0}
        for line in text.splitlines():
            parts = line.split()
            if len(parts) == 3 and parts[1] in sums and self._is_disk(parts[0]):
                sums[parts[1]] += whole(parts[2])
        return sums["Read"], sums["Write"]

    def _is_disk(self, device: str) -> bool:
        known = self._disks.get(device)
        if known is None:
            known = self._disks[device] = self._sys.exists(f"dev/block/{device}/device")
        return known


def numbers(text: str, names: frozenset[str]) -> dict[str, int]:
    """The named values of lines ``name value``."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name in names and value.isdigit():
            found[name] = int(value)
    return found


def whole(text: str | None) -> int:
    """A count in a line of a file; one that is not there counts nothing."""
    return int(text) if text is not None and text.isdigit() else 0


def without(used: int | None, droppable: int | None) -> int | None:
    """Memory less the file pages that may be dropped; None where one of them is not known."""
    return None if used is None or droppable is None else max(0, used - droppable)
