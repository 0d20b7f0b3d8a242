"""GPUs through NVML: one thread keeps NVML open, and a worker reads each GPU in the rounds of the node."""

import dataclasses
import logging
import threading
import time
from collections.abc import Mapping
from typing import Literal

from flopwatch.wire import Event, GpuDevice, GpuSample
from flopwatch_agent import nvml
from flopwatch_agent.counter_watch import CounterWatch
from flopwatch_agent.freshness import is_fresh
from flopwatch_agent.gpu_reader import GpuReader, describe, describe_instance, instance_reads, reads_for
from flopwatch_agent.gpu_worker import STUCK_SECONDS, GpuWorker, worker_state
from flopwatch_agent.link_counts import LinkCounts, compare
from flopwatch_agent.nvml import NvmlError
from flopwatch_agent.nvml_events import EventWatch
from flopwatch_agent.nvml_fields import NEWEST_KNOWN_BRANCH, branch_of
from flopwatch_agent.rounds import Rounds
from flopwatch_agent.source import Inventory, Readings
from flopwatch_agent.xids import XidCounter

logger = logging.getLogger(__name__)

RETRY_SECONDS = 30.0
RESCAN_SECONDS = 60.0
CLOSE_SECONDS = 1.8
"""How long closing waits for calls that are under way; a wait for events lasts a second and a half."""
MISMATCH_RESTART_SECONDS = 60.0
NEEDS_NEW_PROCESS = frozenset((nvml.LIBRARY_MISMATCH, nvml.UNKNOWN))
OPENING = "NVML is being opened"
NvmlState = Literal["ok", "absent", "failed"]


class GpuSource:
    """All GPUs of the node. ``start`` returns at once; NVML is opened, and opened again, in a thread."""

    name = "gpu"

    def __init__(
        self,
        *,
        rounds: Rounds,
        gpm: bool,
        xids: XidCounter | None = None,
        watch: CounterWatch | None = None,
    ) -> None:
        self._rounds, self._interval = rounds, rounds.interval_seconds
        self._gpm = gpm
        self._xids = XidCounter() if xids is None else xids
        self._watch = CounterWatch() if watch is None else watch
        self._events: EventWatch | None = None
        self._workers: list[GpuWorker] = []
        self._known: dict[str, GpuDevice] = {}
        self._gaps: tuple[str, ...] = ()
        self._nvml: NvmlState = "absent"
        self._reason, self._driver = OPENING, ""
        self._began = time.monotonic()
        self._open = False
        self._mismatch_since: float | None = None
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._released = False
        self._thread = threading.Thread(target=self._keep_open, name="nvml", daemon=True)

    def start(self) -> None:
        """Begin to open NVML and to read."""
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """End all threads and close NVML; False when a call is stuck, and NVML then stays open."""
        self._stop.set()
        self._wake.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def release(self, *, released: bool) -> None:
        """Close the device files, so that MIG changes and driver reloads succeed; or open them again."""
        self._released = released
        self._wake.set()

    @property
    def is_closed(self) -> bool:
        """Whether it was asked to close the device files, and has."""
        return self._released and not self._open

    @property
    def is_closing(self) -> bool:
        """Whether it was asked to close the device files, and has not yet."""
        return self._released and self._open

    @property
    def branch_is_unknown(self) -> bool:
        """Whether the driver is newer than every branch whose numbers are known."""
        branch = branch_of(self._driver)
        return branch is not None and branch > NEWEST_KNOWN_BRANCH

    def details(self, now: float) -> dict[str, dict[str, float]]:
        """By UUID: what is told at ``/metrics`` only, of GPUs whose last sample is fresh."""
        fresh = {sample.gpu for sample in self.latest(now)}
        readers = (reader for worker in list(self._workers) for reader in worker.readers)
        return {r.device.uuid: r.details for r in readers if r.details and r.device.uuid in fresh}

    @property
    def needs_restart(self) -> bool:
        """Whether only a new process may use NVML: the driver was upgraded, or does not open after unknown errors."""
        since = self._mismatch_since
        return since is not None and time.monotonic() - since > MISMATCH_RESTART_SECONDS

    @property
    def lists_processes(self) -> bool:
        """Whether NVML tells processes, or may do so soon: it is still being opened."""
        opening = self._nvml == "absent" and self._reason == OPENING
        return self._nvml == "ok" or (opening and time.monotonic() - self._began < STUCK_SECONDS)

    def read(self, now: float) -> Readings:  # noqa: ARG002 - every sample carries its own time
        """The samples since the last read."""
        samples: list[GpuSample] = []
        for worker in list(self._workers):
            while worker.fresh:
                samples.append(worker.fresh.popleft())
        return Readings(gpu_samples=tuple(samples))

    def note_owners(self, owners: Mapping[str, str | None]) -> None:
        """Whose job holds each GPU now: it goes into the next samples."""
        of_job: dict[str, list[LinkCounts]] = {}
        for worker in list(self._workers):
            for reader in worker.readers:
                reader.job = owners.get(reader.device.uuid)
                if reader.job is not None:
                    of_job.setdefault(reader.job, []).append(reader.links)
        for links in of_job.values():
            compare(links)

    def latest(self, now: float) -> tuple[GpuSample, ...]:
        """Each GPU's last sample, none of them older than three intervals."""
        found = (sample for worker in list(self._workers) for sample in list(worker.latest.values()))
        return tuple(sample for sample in found if is_fresh(sample, now, self._interval))

    def processes(self) -> dict[str, tuple[int, ...] | None]:
        """Pids by GPU or MIG instance; None where they cannot be listed."""
        moment = time.monotonic()
        self._rounds.look_after(moment)
        result: dict[str, tuple[int, ...] | None] = {}
        for worker in list(self._workers):
            stuck = worker.stuck_for(moment) > STUCK_SECONDS
            result.update(dict.fromkeys(worker.processes, None) if stuck else worker.processes)
        return result

    def has_listed(self) -> bool:
        """Whether every GPU told its processes once; a look before that could take two jobs for one."""
        return self._reason != OPENING and all(worker.processes for worker in list(self._workers))

    def inventory(self) -> Inventory:
        """Every GPU that was ever seen, with its state now."""
        moment = time.monotonic()
        self._rounds.look_after(moment)
        present: dict[str, GpuDevice] = {}
        gaps = list(self._gaps)
        for worker in list(self._workers):
            state, reason = worker_state(worker, moment)
            for reader in worker.readers:
                device = reader.device
                if (device.state, device.reason) != (state, reason):
                    device = dataclasses.replace(device, state=state, reason=reason)
                present[device.uuid] = device
                gaps.extend(reader.gaps.values())
            gaps += [] if worker.slow is None else [worker.slow]
        for uuid, device in list(self._known.items()):
            if uuid not in present and self._open:
                gone = "NVML no longer lists it"
                present[uuid] = dataclasses.replace(device, state="lost", reason=gone)
        ordered = sorted(
            present.values(), key=lambda item: (item.slot, item.mig_parent_uuid is not None, item.uuid)
        )
        return Inventory(
            nvml=self._nvml,
            reason=self._reason or None,
            driver_version=self._driver or None,
            gpus=tuple(ordered),
            gaps=tuple(gaps),
        )

    def _keep_open(self) -> None:
        pause = RETRY_SECONDS
        while not self._stop.is_set():
            if self._released and self._open:
                self._close("released on request")
            elif not self._released:
                self._open_or_rescan()
            pause = RESCAN_SECONDS if self._open else RETRY_SECONDS
            self._wake.wait(pause)
            self._wake.clear()
        self._close("the agent is ending")

    def _open_or_rescan(self) -> None:
        if self._workers and all(worker.error_code == nvml.UNKNOWN for worker in self._workers):
            # A container that lost its device files answers so for ever, until NVML is opened anew.
            self._close("every GPU answers with an unknown error")
        try:
            if not self._open:
                nvml.init()
                self._driver = nvml.text_of(nvml.call("nvmlSystemGetDriverVersion"))
                self._open, self._nvml, self._reason = True, "ok", ""
            self._scan()
        except NvmlError as error:
            self._failed(error)

    def _failed(self, error: NvmlError) -> None:
        state: NvmlState = "absent" if error.code in nvml.ABSENT else "failed"
        if (state, str(error)) != (self._nvml, self._reason):
            logger.warning("no GPU data: %s; trying again every %d s", error, RETRY_SECONDS)
        self._nvml, self._reason = state, str(error)
        if error.code in NEEDS_NEW_PROCESS and self._mismatch_since is None:
            self._mismatch_since = time.monotonic()
        if self._open:
            self._close(str(error))

    def _scan(self) -> None:
        """Find the GPUs; start a worker for each that has none."""
        count = int(nvml.call("nvmlDeviceGetCount"))
        running = {frozenset(r.device.uuid for r in item.readers): item for item in self._workers}
        workers, gaps, handles = [], [], dict[str, nvml.Handle]()
        for index in range(count):
            try:
                handle = nvml.call("nvmlDeviceGetHandleByIndex", index)
                devices = self._devices(handle, index)
            except NvmlError as error:
                if error.code == nvml.LIBRARY_MISMATCH:
                    raise
                gaps.append(f"GPU with index {index}: {error}")
                continue
            key = frozenset(device.uuid for _, device in devices)
            if key in running:
                worker = running.pop(key)
                worker.renew([device for _, device in devices])
            else:
                worker = self._worker(devices)
            workers.append(worker)
            handles[devices[0][1].uuid] = handle
        seen = set(handles)
        lost = [
            item
            for item in running.values()
            if item.state != "ok" and item.readers[0].device.uuid not in seen
        ]
        for worker in running.values():
            if worker not in lost:
                worker.stop()
        # Before anybody sees the GPUs: who asks between the two would start the agent anew for nothing.
        self._mismatch_since = None
        self._workers, self._gaps = workers + lost, tuple(gaps)
        self._watch_events(handles)

    def _watch_events(self, handles: dict[str, nvml.Handle]) -> None:
        """Wait for the events of the GPUs there are; anew when they changed."""
        if self._events is not None and self._events.uuids == frozenset(handles):
            return
        if self._events is not None:
            self._events.stop()
        self._events = EventWatch(handles, self._xids, self._wake.set) if handles else None
        if self._events is not None:
            self._events.start()

    def _devices(self, handle: nvml.Handle, index: int) -> list[tuple[nvml.Handle, GpuDevice]]:
        device = describe(handle, index)
        found = [(handle, device)]
        found += [(item, describe_instance(item, device)) for item in nvml.mig_devices(handle)]
        self._known[device.uuid] = device
        return found

    def _worker(self, devices: list[tuple[nvml.Handle, GpuDevice]]) -> GpuWorker:
        parent, branch = devices[0][0], branch_of(self._driver)
        readers = [
            GpuReader(
                handle,
                device,
                reads_for(handle, branch, gpm=self._gpm)
                if device.mig_parent_uuid is None
                else instance_reads(parent, handle, gpm=self._gpm),
                self._watch,
            )
            for handle, device in devices
        ]
        worker = GpuWorker(readers, self._rounds)
        worker.start()
        logger.info("GPU %s: %s", devices[0][1].slot, devices[0][1].name)
        return worker

    def _close(self, reason: str) -> None:
        """Stop the workers, then close NVML; never while a call is inside the library."""
        waiting: list[GpuWorker | EventWatch] = list(self._workers)
        if self._events is not None:
            waiting.append(self._events)
        for item in waiting:
            item.stop()
        until = time.monotonic() + CLOSE_SECONDS
        ended = [item.join(max(0.0, until - time.monotonic())) for item in waiting]
        self._workers, self._events = [], None
        if self._open and all(ended):
            try:
                nvml.shutdown()
            except NvmlError as error:
                logger.info("NVML did not close: %s", error)
        if self._open and self._nvml == "ok":
            self._nvml, self._reason = "absent", reason
        self._open = False


def state_events(
    before: tuple[GpuDevice, ...], after: tuple[GpuDevice, ...], now: float
) -> tuple[Event, ...]:
    """A health event for each GPU whose state changed."""
    states = {device.uuid: device.state for device in before}
    return tuple(
        Event(
            time_seconds=now,
            kind="health",
            gpu=device.uuid,
            value="ok" if device.state == "ok" else "faulty",
            text=device.reason or "",
        )
        for device in after
        if device.uuid in states and states[device.uuid] != device.state and device.mig_parent_uuid is None
    )
