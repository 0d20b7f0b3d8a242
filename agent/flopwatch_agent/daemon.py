"""The loop: takes what the sources read, tells it to ``/metrics``, and writes batches to the spool."""

import dataclasses
import errno
import functools
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from flopwatch.encoding import encode
from flopwatch.wire import Event, GpuSample
from flopwatch_agent.allocated import Allocated
from flopwatch_agent.batches import BatchMaker, Moment, NodeIdentity, owners_of
from flopwatch_agent.config import AgentSettings, data_folder
from flopwatch_agent.configured_logs import ConfiguredLogs
from flopwatch_agent.counter_watch import CounterWatch
from flopwatch_agent.daemon_parts import Queue, dcgm_page, locked, new_reader, node_pollers, queue, sdk_socket
from flopwatch_agent.freshness import is_fresh
from flopwatch_agent.gpu_files_state import GpuFilesState
from flopwatch_agent.job_watch import Files, GpuView, JobWatch, Taken
from flopwatch_agent.kernel_log import KernelLog
from flopwatch_agent.log_finder import LogFinder
from flopwatch_agent.log_formats import log_formats
from flopwatch_agent.model_config import ConfigReader
from flopwatch_agent.nic_affinity import Affinity, affinities
from flopwatch_agent.node_identity import boot_id, machine_id
from flopwatch_agent.own_use import OwnUse
from flopwatch_agent.pod_jobs import PodJobs
from flopwatch_agent.poller import Poller
from flopwatch_agent.positions import Positions
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.rounds import Rounds
from flopwatch_agent.sinks.exposition import ExpositionServer
from flopwatch_agent.source import Inventory, Readings, Snapshot, joined
from flopwatch_agent.sources.gpu import GpuSource, state_events
from flopwatch_agent.sources.job_host import JobHostSource
from flopwatch_agent.sources.jobs import JobsSource
from flopwatch_agent.sources.network import nvidia_controllers
from flopwatch_agent.sources.steps import StepsSource
from flopwatch_agent.sysfs import KernelTree
from flopwatch_agent.trainer_endpoints import TrainerEndpoints
from flopwatch_agent.xids import XidCounter

logger = logging.getLogger(__name__)

EARLY_SECONDS = 2.0
"""How long a new job, an end or a fault waits for the next batch at most."""
ROWS_SECONDS = 5.0
"""How long steps of known jobs, and samples taken more often, wait for it: a batch costs a sync and a request."""
TURN_SECONDS = 2.5
"""Between two looks for faults at least, where samples are taken more often."""
FINE_SECONDS = 1.0
"""Below this interval every sample is sent at once."""
EARLY_SHARE = 0.9
"""From this share of its time on a batch goes with the sample that is taken now."""
EXPECTED_SECONDS = 60.0
STOP_SECONDS = 4.0
LOOK_SECONDS = 10.0
CLOSING_SECONDS = 0.1
Outcome = Literal["stopped", "stuck", "restart"]


class Daemon:
    """One agent.

    Raises:
        SettingError: a setting cannot be used on this machine, such as a port in use.
    """

    def __init__(self, settings: AgentSettings, environ: Mapping[str, str], version: str) -> None:
        self._settings = settings
        proc, self._sys = KernelTree(settings.proc_root), KernelTree(settings.sys_root)
        boot = boot_id(proc)
        folder = data_folder(settings, environ)
        self._formats = log_formats(settings.log_format)
        self._lock_file = locked(folder)
        self._queue = queue(settings, folder)
        self._xids, self._watch = XidCounter(), CounterWatch()
        rounds = Rounds(settings.interval_seconds)
        self._gpu = GpuSource(rounds=rounds, gpm=settings.gpm, xids=self._xids, watch=self._watch)
        self._kernel_log = KernelLog(settings.kernel_log, self._xids, lambda: self._inventory.gpus)
        self._state = GpuFilesState(folder)
        self._pollers = node_pollers(settings, proc, self._sys, self._watch, rounds)
        self._use = OwnUse(settings.max_memory_bytes)
        self._dcgm = dcgm_page(settings, self._xids)
        self._sdk = sdk_socket(settings, environ)
        self._jobs = self._job_watch(Procfs(proc), boot, folder)
        self._maker = BatchMaker(self._identity(boot, version))
        self._turned: float | None = None
        self._server = ExpositionServer(settings.host, settings.port, self._now_known, version)
        self._inventory = Inventory()
        self._expected: tuple[str, ...] = ()
        self._expected_at = float("-inf")
        self._affinity: tuple[Affinity, ...] = ()
        self._events: tuple[Event, ...] = ()
        """Faults that no batch carries yet."""
        self._failed_writes = 0
        self._write_failed = False
        self._stopping = False

    def _identity(self, boot: str, version: str) -> NodeIdentity:
        settings = self._settings
        return NodeIdentity(
            node=settings.node_name,
            cluster=settings.cluster,
            boot_id=boot,
            machine_id=machine_id(),
            agent_version=version,
            interval_seconds=settings.interval_seconds,
            simulated=settings.simulated,
        )

    @property
    def metrics_port(self) -> int:
        """The port that ``/metrics`` is served on."""
        return self._server.port

    def stop(self) -> None:
        """Ask ``run`` to end; safe in a signal handler."""
        self._stopping = True
        self._jobs.bell.ring()

    def release(self, *, released: bool) -> None:
        """Close the GPUs' device files, or open them again; safe in a signal handler."""
        self._gpu.release(released=released)
        self._jobs.bell.ring()

    def run(self) -> Outcome:
        """Work until ``stop``.

        ``stuck``: a driver call never returned, so the process must end without cleaning up; ``restart``: a new
        process must go on, since the driver was upgraded or this one is larger than it may be.
        """
        self._gpu.start()
        for poller in self._pollers:
            poller.start()
        self._jobs.start()
        self._server.start()
        if self._dcgm is not None:
            self._dcgm.poller.start()
        if self._sdk is not None:
            self._sdk.start()
        if self._queue is not None:
            self._queue.pusher.start()
        settings = self._settings
        logger.info(
            "agent of node %s; metrics at %s:%d", settings.node_name, settings.host, self.metrics_port
        )
        outcome = self._turn()
        closed = self._close()
        return outcome if closed or outcome == "restart" else "stuck"

    def _turn(self) -> Outcome:
        interval = self._settings.interval_seconds
        pause = turn_seconds(interval)
        due, written = time.monotonic() + min(1.0, interval), float("-inf")
        while not self._stopping:
            moment = time.monotonic()
            is_due = moment >= due
            wait = batch_wait(interval, news=self._has_news, rows=self._jobs.has_rows)
            write = moment - written >= wait * (EARLY_SHARE if is_due else 1.0)
            if is_due or (write and written > 0):
                self._cycle(write=write)
                written = moment if write else written
                due = max(due + pause, time.monotonic()) if is_due else due
            self._use.look(moment)
            if self._gpu.needs_restart or self._use.is_too_large:
                return "restart"
            self._state.tell(released=self._gpu.is_closed)
            self._pause(due, written)
        self._cycle(write=True)
        return "stopped"

    @property
    def _has_news(self) -> bool:
        return self._jobs.changed.is_set() or bool(self._events)

    def _pause(self, due: float, written: float) -> None:
        """Wait until the next sample, or the next batch, or until there is news."""
        interval = self._settings.interval_seconds
        wait = batch_wait(interval, news=self._has_news, rows=self._jobs.has_rows)
        if written > 0:
            due = min(due, written + wait)
        if self._gpu.is_closing:
            due = min(due, time.monotonic() + CLOSING_SECONDS)
        self._jobs.bell.wait(max(0.01, min(due - time.monotonic(), LOOK_SECONDS)))

    def _cycle(self, *, write: bool) -> None:
        """A look at what changed, and a batch of everything since the last one where it is time."""
        now, monotonic = time.time(), time.monotonic()
        if monotonic - self._expected_at >= EXPECTED_SECONDS:
            self._expected, self._expected_at = nvidia_controllers(self._sys), monotonic
            self._affinity = affinities(self._sys, self._inventory.gpus)
        inventory = self._gpu.inventory()
        page = self._dcgm if inventory.nvml != "ok" else None
        if page is not None:
            inventory = dataclasses.replace(inventory, gpus=page.source.devices or inventory.gpus)
        if self._kernel_log.gap is not None:
            inventory = dataclasses.replace(inventory, gaps=(*inventory.gaps, self._kernel_log.gap))
        changes = state_events(self._inventory.gpus, inventory.gpus, now)
        self._inventory = inventory
        self._kernel_log.read(now)
        self._events += (*changes, *self._xids.take())
        taken = self._jobs.take() if write else self._jobs.peek()
        if write:
            events, self._events = self._events, ()
            parts = [taken.readings, Readings(events=events), self._gpu.read(now)]
            parts += [poller.take() for poller in self._pollers]
            if page is not None:
                parts.append(page.poller.take())
            if self._queue is not None:
                self._write(self._queue, now, monotonic, joined(parts), taken)
        self._gpu.note_owners(owners_of(taken.sightings))
        self._turned = now

    def _write(self, queue: Queue, now: float, monotonic: float, readings: Readings, taken: Taken) -> None:
        sequence = queue.spool.next_sequence
        batch = self._maker.make(
            Moment(
                now=now,
                monotonic=monotonic,
                spool=queue.spool.spool_id,
                sequence=sequence,
                readings=readings,
                inventory=self._inventory,
                expected_gpus=self._expected,
                sightings=taken.sightings,
                ended=taken.ended,
                logs=taken.logs,
                gaps=taken.gaps,
                spool_dropped=queue.spool.dropped,
            )
        )
        try:
            queue.positions.prepare(sequence, taken.positions)
            queue.spool.write(sequence, encode(batch))
            queue.positions.commit(sequence)
        except OSError as error:
            self._lost(error, taken)
            return
        if self._write_failed:
            logger.info("the spool can be written again")
        self._write_failed = False
        queue.pusher.notify()

    def _lost(self, error: OSError, taken: Taken) -> None:
        """A batch could not be written: count it, say it once, keep its rows for the next."""
        self._failed_writes += 1
        self._maker.forget_told()
        self._jobs.put_back(taken)
        if not self._write_failed:
            what = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror
            logger.error("the spool cannot be written (%s): hardware samples are lost until it can", what)
        self._write_failed = True

    def _now_known(self) -> Snapshot | None:
        """What ``/metrics`` tells: put together from what was read when somebody asks."""
        if self._turned is None:
            return None
        now, taken = time.time(), self._jobs.peek()
        read = joined([poller.latest or Readings() for poller in self._pollers])
        interval = self._settings.interval_seconds
        nodes = [sample for sample in read.node_samples if is_fresh(sample, now, interval)]
        return Snapshot(
            now=now,
            interval_seconds=interval,
            inventory=self._inventory,
            gpu_samples=self._latest_gpus(now),
            port_samples=tuple(item for item in read.port_samples if is_fresh(item, now, interval)),
            node_sample=nodes[-1] if nodes else None,
            job_samples=self._hosts.latest,
            jobs=taken.sightings,
            logs=taken.logs,
            last_steps=taken.last_steps,
            gpu_details=self._gpu.details(now),
            xids=self._xids.counts(),
            affinity=self._affinity,
            health=(*(poller.health() for poller in self._all_pollers()), self._jobs.health()),
            counters=self._counters(),
            turned_seconds=self._turned,
        )

    def _all_pollers(self) -> tuple[Poller, ...]:
        return self._pollers if self._dcgm is None else (*self._pollers, self._dcgm.poller)

    def _latest_gpus(self, now: float) -> tuple[GpuSample, ...]:
        """The GPUs' last samples: NVML's, or the exporter's while NVML cannot be used."""
        if self._dcgm is None or self._inventory.nvml == "ok":
            return self._gpu.latest(now)
        return (self._dcgm.poller.latest or Readings()).gpu_samples

    def _counters(self) -> tuple[tuple[str, int], ...]:
        steps = self._steps
        found = [
            ("gpus_expected", len(self._expected)),
            ("branch_unknown", int(self._gpu.branch_is_unknown)),
            ("sdk_malformed", steps.sdk_malformed),
            ("sdk_claims", steps.sdk_claims),
            ("sdk_unattributed", self._jobs.sdk_unattributed),
            ("spool_failed", self._failed_writes),
            ("resident_bytes", self._use.resident_bytes),
            ("open_files", self._use.open_files),
            ("counter_resets", self._watch.resets),
            ("counter_leaps", self._watch.leaps),
        ]
        if self._sdk is not None:
            found += [
                ("sdk_refused_rate", self._sdk.refused_by_rate),
                ("sdk_refused_size", self._sdk.refused_by_size),
            ]
        if self._queue is not None:
            spool, state = self._queue.spool, self._queue.pusher.state
            found += [
                ("spool_waiting_batches", spool.waiting),
                ("spool_waiting_bytes", spool.waiting_bytes),
                ("spool_dropped", spool.dropped),
                ("push_sent", state.sent),
                ("push_rejected", state.rejected),
                ("push_failed", state.failed_attempts),
            ]
        return tuple(found)

    def _job_watch(self, procfs: Procfs, boot: str, folder: Path) -> JobWatch:
        committed = self._queue.spool.next_sequence - 1 if self._queue is not None else -1
        positions = self._queue.positions if self._queue is not None else Positions(folder, committed)
        settings = self._settings
        endpoints = TrainerEndpoints(settings.trainer_endpoints, procfs, settings.node_name)
        finder = LogFinder(procfs, settings.pod_logs, endpoints)
        self._steps = StepsSource(
            finder=finder,
            positions=positions,
            new_reader=functools.partial(new_reader, self._formats),
            node=self._settings.node_name,
        )
        view = GpuView(
            processes=self._gpu.processes,
            devices=lambda: self._inventory.gpus or self._gpu.inventory().gpus,
            lists_processes=lambda: self._gpu.lists_processes,
            has_listed=self._gpu.has_listed,
            interval_seconds=self._settings.interval_seconds,
        )
        self._hosts = JobHostSource(procfs.tree, self._sys, settings.interval_seconds)
        jobs = JobsSource(procfs, boot)
        allocated = Allocated(settings, procfs.tree, self._sys)
        configured = ConfiguredLogs(self._settings.log_globs, finder.holds, self._steps.has_steps)
        pods = PodJobs(settings.pod_logs, self._steps.has_steps)
        files = Files(
            configs=ConfigReader(procfs),
            configured=configured,
            endpoints=endpoints,
            pods=pods,
            allocated=allocated,
            hosts=self._hosts,
        )
        return JobWatch(gpus=view, jobs=jobs, steps=self._steps, files=files, sdk=self._sdk)

    def _close(self) -> bool:
        """End every part within a few seconds; what is spooled stays for the next start. False: a call is stuck."""
        self._jobs.stop(1.0)
        for poller in self._all_pollers():
            poller.stop()
        if self._sdk is not None:
            self._sdk.stop()
        if self._queue is not None:
            self._queue.pusher.stop(1.5)
        self._server.stop()
        closed = self._gpu.stop(STOP_SECONDS)
        if not closed:
            logger.warning("a call into the driver is stuck; the agent ends without closing NVML")
        self._kernel_log.close()
        os.close(self._lock_file)
        return closed


def turn_seconds(interval_seconds: float) -> float:
    """Seconds from one turn of the loop to the next: samples wait in the sources, so not each of them needs one."""
    return interval_seconds if interval_seconds < FINE_SECONDS else max(interval_seconds, TURN_SECONDS)


def batch_wait(interval_seconds: float, *, news: bool, rows: bool) -> float:
    """Seconds from one batch to the next: few for news, at most five where steps wait, else the interval."""
    if news:
        return min(EARLY_SECONDS, interval_seconds)
    if interval_seconds < FINE_SECONDS:
        return interval_seconds
    return ROWS_SECONDS if rows else max(ROWS_SECONDS, interval_seconds)
