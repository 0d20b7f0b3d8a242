"""Reads one GPU, with its MIG instances, in its turns; one that is stuck costs only itself."""

import dataclasses
import logging
import threading
import time
from collections import deque

from flopwatch.wire import GpuDevice, GpuSample, GpuState
from flopwatch_agent import nvml
from flopwatch_agent.gpu_reader import GpuReader
from flopwatch_agent.nvml import NvmlError
from flopwatch_agent.rounds import AT_ONCE_SHARE, Rounds

logger = logging.getLogger(__name__)

PROCESS_SECONDS = 5.0
STUCK_SECONDS = 10.0
PROBE_INTERVALS = 6
SLOW_SECONDS = 1.0
"""A cycle that takes longer is followed by a rest."""
REST_FACTOR = 10.0
LONGEST_REST_SECONDS = 60.0
LOOK_AFTER_SECONDS = 0.1


class GpuWorker:
    """Reads one GPU and its MIG instances, in the rounds of the node."""

    def __init__(self, readers: list[GpuReader], rounds: Rounds) -> None:
        self.readers = readers
        self._rounds = rounds
        self.state: GpuState = "ok"
        self.reason: str | None = None
        self.latest: dict[str, GpuSample] = {}
        self.processes: dict[str, tuple[int, ...] | None] = {}
        self.fresh: deque[GpuSample] = deque(maxlen=256)
        self.busy_since: float | None = None
        self.error_code: int | None = None
        self.slow: str | None = None
        """Why it is read less often than was asked for."""
        self.pause_seconds = self._interval = rounds.interval_seconds
        self._due = float("-inf")
        """When the next whole sample is, by the monotonic clock."""
        self._stop, self._ended = threading.Event(), threading.Event()

    def start(self) -> None:
        """Begin reading."""
        self._rounds.add(self)

    def renew(self, devices: list[GpuDevice]) -> None:
        """Take over what a later scan says of the same devices, such as a narrower PCIe link."""
        known = {device.uuid: device for device in devices}
        for reader in self.readers:
            reader.renew(known.get(reader.device.uuid, reader.device))

    def stop(self) -> None:
        """Ask for no more reads after the present call."""
        self._stop.set()
        self._rounds.hurry(self)

    def join(self, seconds: float) -> bool:
        """Whether the last call ended within the time."""
        until = time.monotonic() + seconds
        while not self._ended.wait(min(LOOK_AFTER_SECONDS, max(0.0, until - time.monotonic()))):
            # It may wait for a GPU that does not answer.
            self._rounds.look_after(time.monotonic())
            if time.monotonic() >= until:
                return False
        return True

    def stuck_for(self, moment: float) -> float:
        """How long the present call has been running, by the monotonic clock."""
        since = self.busy_since
        return 0.0 if since is None else moment - since

    def turn(self, moment: float) -> float | None:
        """Read what is due; when the next read is. None once it was stopped, and gave back what it kept."""
        if self._stop.is_set():
            for reader in self.readers:
                reader.close()
            self._ended.set()
            return None
        full = moment >= self._due - self._interval * AT_ONCE_SHARE
        self.busy_since = moment
        try:
            self._cycle(full=full)
        except NvmlError as error:
            self._down(error)
        now, self.busy_since = time.monotonic(), None
        if full or now - moment > SLOW_SECONDS:
            # Cycles that this one was too long for are left out, not made up for.
            self._due = self._rounds.next_after(moment, self._pause(now - moment))
        longest = PROCESS_SECONDS if self.slow is None else self.pause_seconds
        return min(self._due, now + longest)

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
