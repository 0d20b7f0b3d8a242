"""The host: CPU, waiting for I/O, memory, pressure and disks, from procfs."""

import re

from flopwatch.wire import NodeSample
from flopwatch_agent.source import Readings
from flopwatch_agent.sysfs import HeldFiles, KernelTree

SECTOR_BYTES = 512
SLOW_SECONDS = 60.0
PAGING_SECONDS = 10.0
"""The kernel sums /proc/vmstat over all cores for each read."""
MEMORY = frozenset(("MemTotal", "MemAvailable"))
PAGING = ("pgmajfault", "workingset_refault_file")
WHOLE_DISKS = ("sd", "nvme", "vd", "xvd", "hd", "mmcblk", "dasd")


class HostSource:
    """Reads procfs; CPU ratios are over the time since the read before."""

    name = "host"

    def __init__(self, proc: KernelTree, sys: KernelTree) -> None:
        self._files, self._sys = HeldFiles(proc), sys
        self._disks_at = self._paging_at = float("-inf")
        self._whole: frozenset[bytes] = frozenset()
        self._ticks: tuple[int, ...] | None = None

    def read(self, now: float) -> Readings:
        """One node sample."""
        if not 0 <= now - self._disks_at < SLOW_SECONDS:
            self._disks_at = now
            self._files.close()
            names = (name for name in self._sys.names("block") if name.startswith(WHOLE_DISKS))
            self._whole = frozenset(name.encode() for name in names)
        busy, waiting = self._cpu()
        memory = meminfo(self._text("meminfo"), MEMORY)
        read_bytes, written_bytes = self._disks()
        paging = self._paging(now)
        sample = NodeSample(
            time_seconds=now,
            cpu_busy_ratio=busy,
            io_wait_ratio=waiting,
            memory_available_bytes=memory.get("MemAvailable"),
            memory_total_bytes=memory.get("MemTotal"),
            memory_pressure_ratio=pressure_ratio(self._text("pressure/memory")),
            cpu_pressure_ratio=pressure_ratio(self._text("pressure/cpu")),
            io_pressure_ratio=pressure_ratio(self._text("pressure/io")),
            major_faults=paging.get("pgmajfault"),
            cache_refaults=paging.get("workingset_refault_file"),
            disk_read_bytes=read_bytes,
            disk_write_bytes=written_bytes,
        )
        return Readings(node_samples=(sample,))

    def _paging(self, now: float) -> dict[str, int]:
        """The counters of paging; nothing between two reads of them."""
        if 0 <= now - self._paging_at < PAGING_SECONDS:
            return {}
        self._paging_at = now
        return vmstat(self._files.bytes("vmstat") or b"")

    def _text(self, path: str) -> str:
        return (self._files.bytes(path) or b"").decode("ascii", "replace")

    def _cpu(self) -> tuple[float | None, float | None]:
        # The kernel writes the sum first, before thousands of lines of interrupts.
        ticks = cpu_ticks((self._files.bytes("stat") or b"").partition(b"\n")[0].decode("ascii", "replace"))
        before, self._ticks = self._ticks, ticks
        if before is None or ticks is None:
            return None, None
        return cpu_ratios(before, ticks)

    def _disks(self) -> tuple[int | None, int | None]:
        content = self._files.bytes("diskstats")
        if content is None:
            return None, None
        rows = [p for line in content.splitlines() if len(p := line.split()) >= 10 and p[2] in self._whole]
        if not rows:
            return None, None
        return tuple(sum(int(row[column]) for row in rows) * SECTOR_BYTES for column in (5, 9))  # type: ignore[return-value]  # two columns


def cpu_ticks(text: str) -> tuple[int, ...] | None:
    """The first eight counters of the line ``cpu`` of /proc/stat: user nice system idle iowait irq softirq steal."""
    line = text.partition("\n")[0]
    return tuple(int(part) for part in line.split()[1:9]) if line.startswith("cpu ") else None


def cpu_ratios(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[float | None, float | None]:
    """Busy and waiting shares between two readings; None when no time passed or a counter went back."""
    steps = [b - a for a, b in zip(before, after, strict=False)]
    total = sum(steps)
    if total <= 0 or len(steps) < 5 or min(steps[:3]) < 0:
        return None, None
    waiting = min(max(steps[4] / total, 0.0), 1.0)
    busy = min(max((total - steps[3] - steps[4]) / total, 0.0), 1.0)
    return busy, waiting


def meminfo(text: str, names: frozenset[str]) -> dict[str, int]:
    """The named values of /proc/meminfo in bytes."""
    values: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        parts = rest.split()
        if name in names and len(parts) == 2 and parts[1] == "kB" and parts[0].isdigit():
            values[name] = int(parts[0]) * 1024
            if len(values) == len(names):
                break
    return values


def vmstat(content: bytes) -> dict[str, int]:
    """Page faults that needed storage, and file pages that were read again, of /proc/vmstat."""
    found: dict[str, int] = {}
    for name in PAGING:
        _, separator, rest = content.partition(b"\n" + name.encode() + b" ")
        value = rest.partition(b"\n")[0]
        if separator and value.isdigit():
            found[name] = int(value)
    return found


def pressure_ratio(text: str) -> float | None:
    """Share of the last 10 seconds in which some task waited for the resource; None without pressure accounting."""
    some = re.search(r"^some avg10=(\d+(?:\.\d+)?)", text, re.MULTILINE)
    return None if some is None else min(float(some[1]) / 100, 1.0)
