"""What a process costs, from /proc: CPU by thread, memory, files, threads, bytes on disk; a reading a second."""

import os
import re
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One process at one moment."""

    at_seconds: float
    """``time.time()``."""
    cpu_seconds: float
    by_thread: dict[int, float]
    resident_bytes: int
    anonymous_bytes: int
    files: int
    threads: int
    disk_bytes: int


def reading(pid: int, folder: Path | None) -> Reading:
    """The process now.

    Raises:
        OSError: it has ended.
    """
    root = Path("/proc") / str(pid)
    tasks = {int(task.name): _cpu(task / "stat") for task in (root / "task").iterdir()}
    status = dict(re.findall(r"(\w+):\s+(\d+)", (root / "status").read_text()))
    return Reading(
        at_seconds=time.time(),
        cpu_seconds=_cpu(root / "stat"),
        by_thread=tasks,
        resident_bytes=int(status["VmRSS"]) * 1024,
        anonymous_bytes=int(status["RssAnon"]) * 1024,
        files=len(list((root / "fd").iterdir())),
        threads=int(status["Threads"]),
        disk_bytes=_size(folder),
    )


def _cpu(stat: Path) -> float:
    try:
        fields = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICK


def _size(folder: Path | None) -> int:
    total = 0
    for path in folder.rglob("*") if folder is not None else ():
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total


@dataclass
class Watch:
    """Reads a process every second until stopped."""

    pid: int
    folder: Path | None = None
    every_seconds: float = 1.0
    readings: list[Reading] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self.readings.append(reading(self.pid, self.folder))
            except OSError:
                return
            self._stop.wait(self.every_seconds)

    def stop(self) -> list[Reading]:
        """All readings, with a last one."""
        self._stop.set()
        self._thread.join()
        self.readings.append(reading(self.pid, self.folder))
        return self.readings

    def between(self, begin: float, end: float) -> tuple[Reading, Reading]:
        """The first reading from ``begin`` on and the last one until ``end``, wall times."""
        inside = [each for each in self.readings if begin <= each.at_seconds <= end]
        return inside[0], inside[-1]
