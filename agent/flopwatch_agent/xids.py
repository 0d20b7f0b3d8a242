"""XIDs as counters: what the driver's events and the kernel's log say of the same faults, each counted once."""

import re
import threading
from dataclasses import dataclass
from typing import Literal

from flopwatch.wire import Event, GpuDevice

XID_LINE = re.compile(r"NVRM: Xid \(PCI:([0-9A-Fa-f:.]+)[^)]*\): (\d+)")
MAX_KEPT_EVENTS = 1000
Teller = Literal["driver", "kernel", "exporter"]


@dataclass(frozen=True, kw_only=True, slots=True)
class XidCount:
    """How often one XID of one GPU was seen since the agent began."""

    gpu: str
    xid: int
    count: int
    last_seconds: float


class XidCounter:
    """Counts by GPU and XID; safe for threads.

    Both tellers speak of the same faults, so the larger count is the true one: each may miss some, as the driver
    does when a GPU falls off the bus, and the kernel's log when it may not be read.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[tuple[str, int], dict[Teller, int]] = {}
        self._last: dict[tuple[str, int], float] = {}
        self._events: list[Event] = []

    def note(self, teller: Teller, gpu: str, xid: int, now: float) -> None:
        """One XID of a GPU (its UUID), as one of the tellers said it."""
        with self._lock:
            counts = self._told.setdefault((gpu, xid), {})
            before = max(counts.values(), default=0)
            counts[teller] = counts.get(teller, 0) + 1
            self._last[gpu, xid] = now
            if counts[teller] > before and len(self._events) < MAX_KEPT_EVENTS:
                self._events.append(Event(time_seconds=now, kind="xid", gpu=gpu, code=xid, text=f"XID {xid}"))

    def take(self) -> tuple[Event, ...]:
        """The faults since the last call."""
        with self._lock:
            events, self._events = tuple(self._events), []
        return events

    def counts(self) -> tuple[XidCount, ...]:
        """All faults since the agent began."""
        with self._lock:
            return tuple(
                XidCount(gpu=gpu, xid=xid, count=max(counts.values()), last_seconds=self._last[gpu, xid])
                for (gpu, xid), counts in sorted(self._told.items())
            )


def xid_of_line(line: str) -> tuple[str, int] | None:
    """PCI address without its function, such as ``0000:1b:00``, and XID of a line of the kernel's log."""
    match = XID_LINE.search(line)
    if match is None:
        return None
    address = match.group(1).lower().partition(".")[0]
    head, _, rest = address.partition(":")
    return f"{int(head, 16):04x}:{rest}", int(match.group(2))


def gpu_at(address: str, devices: tuple[GpuDevice, ...]) -> str:
    """The UUID of the GPU at a PCI address; the address itself while no GPU is known there."""
    found = (d.uuid for d in devices if d.mig_parent_uuid is None and d.slot.partition(".")[0] == address)
    return next(found, address)
