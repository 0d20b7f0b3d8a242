"""Reads one GPU, with its MIG instances, in a thread of its own, so that a stuck GPU costs only itself."""

import dataclasses
import logging
import threading
import time
from collections import deque

from flopwatch.wire import GpuDevice, GpuSample, GpuState
from flopwatch_agent import nvml
from flopwatch_agent.gpu_reader import GpuReader
from flopwatch_agent.nvml import NvmlError

logger = logging.getLogger(__name__)

PROCESS_SECONDS = 5.0
STUCK_SECONDS = 10.0
PROBE_INTERVALS = 6
SLOW_SECONDS = 1.0
"""A cycle that takes longer is followed by a rest."""
REST_FACTOR = 10.0
LONGEST_REST_SECONDS = 60.0


class GpuWorker:
    """Reads one GPU and its MIG instances in a thread of its own."""

    def __init__(self, readers: list[GpuReader], interval_seconds: float) -> None:
        self.readers = readers
        self.state: GpuState = "ok"
        self.reason: str | None = None
        self.latest: dict[str, GpuSample] = {}
        self.processes: dict[str, tuple[int, ...] | None] = {}
        self.fresh: deque[GpuSample] = deque(maxlen=256)
        self.busy_since: float | None = None
        self.error_code: int | None = None
        self.slow: str | None = None
        """Why it is read less often than was asked for."""
        self.pause_seconds = self._interval = interval_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"gpu-{readers[0].device.slot}", daemon=True)

    def start(self) -> None:
        """Begin reading."""
        self._thread.start()

    def renew(self, devices: list[GpuDevice]) -> None:
        """Take over what a later scan says of the same devices, such as a narrower PCIe link."""
        known = {device.uuid: device for device in devices}
        for reader in self.readers:
            reader.renew(known.get(reader.device.uuid, reader.device))

    def stop(self) -> None:
        """Ask the thread to end after its present call."""
        self._stop.set()

    def join(self, seconds: float) -> bool:
        """Whether the thread ended within the time."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stuck_for(self, moment: float) -> float:
        """How long the present call has been running, by the monotonic clock."""
        since = self.busy_since
        return 0.0 if since is None else moment - since

    def _run(self) -> None:
        self._read_on()
        for reader in self.readers:
            reader.close()

    def _read_on(self) -> None:
        """Read until stopped."""
        due = time.monotonic()
        while not self._stop.is_set():
            self.busy_since = time.monotonic()
            full = self.busy_since >= due
            try:
                self._cycle(full=full)
            except NvmlError as error:
                self._down(error)
            moment, began, self.busy_since = time.monotonic(), self.busy_since, None
            if full or moment - began > SLOW_SECONDS:
                pause = self._pause(moment - began)
                # Cycles that this one was too long for are left out, not made up for.
                due += pause * max(1.0, (moment - due) // pause + 1.0)
            longest = PROCESS_SECONDS if self.slow is None else self.pause_seconds
            self._stop.wait(max(0.01, min(due - moment, longest)))

    def _pause(self, took_seconds: float) -> float:
        """How long until the next cycle: a GPU whose driver answers slowly is left alone most of the time."""
        pause = self._interval if self.state == "ok" else self._interval * PROBE_INTERVALS
        self.slow, self.pause_seconds = None, self._interval
        if took_seconds > SLOW_SECONDS:
            pause = max(pause, min(took_seconds * REST_FACTOR, LONGEST_REST_SECONDS))
            slot = self.readers[0].device.slot
            self.slow = f"GPU {slot}: the driver takes over a second, so it is read every {pause:.0f} s"
            self.pause_seconds = pause
            stretched = {
                key: dataclasses.replace(item, interval_seconds=pause) for key, item in self.latest.items()
            }
            self.latest.update(stretched)
        for reader in self.readers:
            reader.interval_seconds = self.pause_seconds if self.slow else None
        return pause

    def _cycle(self, *, full: bool) -> None:
        if not full:
            if self.state == "ok":
                self.processes = {item.device.uuid: item.processes() for item in self.readers}
            return
        if self.state != "ok":
            for reader in self.readers:
                reader.forget()
        for reader in self.readers:
            sample = reader.sample(time.time())
            self.latest[sample.gpu] = sample
            self.fresh.append(sample)
        self.processes = {item.device.uuid: item.pids for item in self.readers}
        self.state, self.reason, self.error_code = "ok", None, None

    def _down(self, error: NvmlError) -> None:
        states: dict[int, GpuState] = {nvml.GPU_IS_LOST: "lost", nvml.RESET_REQUIRED: "reset_required"}
        if self.error_code != error.code:
            logger.warning("GPU %s is down: %s", self.readers[0].device.slot, error)
        self.state = states.get(error.code, "unreadable")
        self.reason, self.error_code = str(error), error.code
        self.processes = dict.fromkeys((item.device.uuid for item in self.readers), None)


def worker_state(worker: GpuWorker, moment: float) -> tuple[GpuState, str | None]:
    """The state of a GPU, a stuck call included."""
    stuck = worker.stuck_for(moment)
    if stuck > STUCK_SECONDS:
        return "unreadable", "the driver does not answer"
    return worker.state, worker.reason
