"""XIDs from the kernel's log, where the agent may read it: they are there also when the driver sends no event."""

import os
from collections.abc import Callable
from pathlib import Path

from flopwatch.wire import GpuDevice
from flopwatch_agent.xids import XidCounter, gpu_at, xid_of_line

MAX_RECORDS = 2000
RECORD_BYTES = 8192


class KernelLog:
    """``/dev/kmsg`` from its present end on, or a file in the same form: ``priority,number,time,flags;text``."""

    def __init__(self, path: Path, xids: XidCounter, devices: Callable[[], tuple[GpuDevice, ...]]) -> None:
        self._path, self._xids, self._devices = path, xids, devices
        self._descriptor: int | None = None
        self._rest = b""
        self.gap: str | None = None
        """Why it cannot be read, one sentence; None while it can."""
        self._open()

    def read(self, now: float) -> None:
        """Count the XIDs of every record since the last call; bounded, and never waits."""
        for _ in range(MAX_RECORDS):
            content = self._next()
            if not content:
                return
            lines = (self._rest + content).split(b"\n")
            self._rest = lines.pop()[-RECORD_BYTES:]
            for line in lines:
                found = xid_of_line(line.decode("utf-8", "replace")) if b"NVRM: Xid" in line else None
                if found is not None:
                    self._xids.note("kernel", gpu_at(found[0], self._devices()), found[1], now)

    def close(self) -> None:
        """Read no more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> None:
        try:
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._descriptor, 0, os.SEEK_END)
        except OSError as error:
            self.close()
            self.gap = (
                f"{self._path} cannot be read ({error.strerror}): XIDs come from the driver's events alone, which are "
                "missing when a GPU falls off the bus; CAP_SYSLOG gives it"
            )

    def _next(self) -> bytes:
        if self._descriptor is None:
            return b""
        try:
            return os.read(self._descriptor, RECORD_BYTES)
        except BrokenPipeError:
            return (
                b"\n"  # the kernel overwrote records before they were read; the next read goes on after them
            )
        except BlockingIOError:
            return b""
        except OSError as error:
            self.close()
            self.gap = f"{self._path} cannot be read any more ({error.strerror})"
            return b""
