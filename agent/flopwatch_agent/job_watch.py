"""Jobs and their steps, in one thread: processes to jobs, jobs to logs, logs and SDK messages to steps."""

import functools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from flopwatch.wire import Finding, FollowedLog, GpuDevice, JobSighting, StepRecord
from flopwatch_agent.allocated import Allocated
from flopwatch_agent.bell import Bell
from flopwatch_agent.configured_logs import Assigned
from flopwatch_agent.log_follow import Position
from flopwatch_agent.model_config import ConfigReader
from flopwatch_agent.pod_jobs import PodJobs
from flopwatch_agent.sdk_socket import Datagram, SdkSocket
from flopwatch_agent.source import NOTHING, ObservedJob, Readings, SourceHealth, joined
from flopwatch_agent.sources.job_host import JobHostSource
from flopwatch_agent.sources.jobs import JobsSource
from flopwatch_agent.sources.steps import StepsSource
from flopwatch_agent.trainer_endpoints import TrainerEndpoints

logger = logging.getLogger(__name__)
T = TypeVar("T")

TICK_SECONDS = (0.1, 1.0)
"""Shortest and longest time between two looks at logs and SDK messages; else the interval."""
RELAXED = 2.5
"""So much longer where every log that is at work tells the times of its rows."""
SHORTEST_SECONDS = 0.02
"""Between two looks however many processes send their first message."""
OBSERVE_SECONDS = (0.5, 5.0)
"""Shortest and longest time between two looks at processes, when NVML lists no other ones; else five intervals."""
SCAN_SECONDS = 5.0
FIRST_SECONDS = 5.0
"""How long the first look at processes waits for a GPU that does not answer."""
MAX_PENDING_STEPS = 50_000


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuView:
    """What the jobs' side needs of the GPUs."""

    processes: Callable[[], dict[str, tuple[int, ...] | None]]
    devices: Callable[[], tuple[GpuDevice, ...]]
    lists_processes: Callable[[], bool]
    """Whether NVML tells processes, or is still being opened."""
    has_listed: Callable[[], bool]
    """Whether every GPU told its processes once."""
    interval_seconds: float


class NamedLogs(Protocol):
    """Logs that somebody named, and whose they are."""

    def assign(self, jobs: tuple[ObservedJob, ...], now: float) -> Assigned:
        """The logs by job, and jobs that are nothing but a log."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Files:
    """Files beside a job's own output."""

    configs: ConfigReader
    configured: NamedLogs
    endpoints: TrainerEndpoints
    pods: PodJobs
    allocated: Allocated | None = None
    """What schedulers gave out; None where nobody asks."""
    hosts: JobHostSource | None = None
    """The host's part of jobs; None where nobody asks."""


@dataclass(slots=True)
class Taken:
    """What became known since the last take, whole: rows and the positions that belong to them."""

    readings: Readings = field(default_factory=Readings)
    sightings: tuple[JobSighting, ...] = ()
    ended: tuple[JobSighting, ...] = ()
    positions: dict[str, Position] = field(default_factory=dict)
    logs: tuple[FollowedLog, ...] = ()
    last_steps: tuple[StepRecord, ...] = ()
    gaps: tuple[str, ...] = ()


class JobWatch:
    """The thread; it sets ``changed``, and rings, when there is what should not wait for the next interval."""

    def __init__(
        self,
        *,
        gpus: GpuView,
        jobs: JobsSource,
        steps: StepsSource,
        files: Files,
        sdk: SdkSocket | None,
    ) -> None:
        self.changed = threading.Event()
        self.bell = Bell()
        self.sdk_unattributed = 0
        self._gpus, self._jobs, self._steps, self._sdk = gpus, jobs, steps, sdk
        self._configs, self._configured, self._endpoints = files.configs, files.configured, files.endpoints
        self._pods, self._allocated = files.pods, files.allocated
        self._hosts = files.hosts
        self._lock = threading.Lock()
        self._taken = Taken()
        self._observed: tuple[ObservedJob, ...] = ()
        self._of_processes: tuple[ObservedJob, ...] = ()
        self._told_failures: set[str] = set()
        self._failed = False
        self._peers: set[int] = set()
        self._scanned: frozenset[int] = frozenset()
        self._told: set[tuple[str, str, str]] = set()
        self._observe_at = self._scan_at = 0.0
        self._began: float | None = None
        self._ready = self._hears = False
        self._listed: dict[str, tuple[int, ...] | None] = {}
        self._tick_seconds = within(TICK_SECONDS, gpus.interval_seconds)
        self._observe_seconds = within(OBSERVE_SECONDS, gpus.interval_seconds * 5)
        self._errors, self._success, self._duration = 0, True, 0.0
        self._read_seconds = time.time()
        self._stop, self._wake = threading.Event(), threading.Event()
        if sdk is not None:
            sdk.on_stranger = self._wake.set
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._endpoints.start()
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """End after the present look."""
        self._stop.set()
        self._wake.set()
        self._endpoints.stop()
        if self._allocated is not None:
            self._allocated.stop()
        self._thread.join(seconds)

    def look_now(self) -> None:
        """One whole look in the caller's thread, after ``stop``: what came since the thread's last one."""
        self._observe_at = self._scan_at = 0.0
        self._ready = True
        self._look(time.time(), time.monotonic())

    def take(self) -> Taken:
        """Everything since the last call; sightings, logs and positions as they are now."""
        with self._lock:
            taken = self._taken
            self._taken = Taken(
                sightings=taken.sightings, logs=taken.logs, last_steps=taken.last_steps, gaps=taken.gaps
            )
            self.changed.clear()
        return taken

    def peek(self) -> Taken:
        """Sightings, logs and last steps as they are now; rows stay for the next ``take``."""
        with self._lock:
            taken = self._taken
            return Taken(
                sightings=taken.sightings, logs=taken.logs, last_steps=taken.last_steps, gaps=taken.gaps
            )

    @property
    def has_rows(self) -> bool:
        """Whether rows wait to be taken."""
        readings = self._taken.readings
        return bool(readings.steps or readings.phases)

    def put_back(self, taken: Taken) -> None:
        """Rows that could not be written anywhere come again with the next take, bounded."""
        with self._lock:
            merged = joined([taken.readings, self._taken.readings])
            if len(merged.steps) <= MAX_PENDING_STEPS:
                self._taken.readings = merged
                self._taken.positions = {**taken.positions, **self._taken.positions}
                self._taken.ended = taken.ended + self._taken.ended

    def health(self) -> SourceHealth:
        """How the last look went."""
        return SourceHealth(
            name="jobs",
            success=self._success,
            read_seconds=self._read_seconds,
            duration_seconds=self._duration,
            errors=self._errors,
        )

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            self._failed = False
            self._guarded("a look", functools.partial(self._look, time.time(), began), None)
            self._success = not self._failed
            if self._success:
                self._read_seconds = time.time()
            self._duration = time.monotonic() - began
            self._stop.wait(SHORTEST_SECONDS)
            self._wake.wait(self._pause_seconds())
            self._wake.clear()

    def _pause_seconds(self) -> float:
        """Time until the next look: longer while neither messages nor the times of rows depend on it."""
        if not self._ready:
            return TICK_SECONDS[0]
        is_dated = not self._hears and not self._steps.needs_arrivals(time.time())
        return self._tick_seconds * (RELAXED if is_dated else 1.0)

    def _guarded(self, what: str, part: Callable[[], T], otherwise: T) -> T:
        """What a part of a look gives; where it fails, the rest of the look and its rows are not lost with it."""
        try:
            return part()
        except Exception:
            if what not in self._told_failures:
                logger.exception("%s failed; it is tried again, and said once", what)
                self._told_failures.add(what)
            self._errors += 1
            self._failed = True
            return otherwise

    def _look(self, now: float, moment: float) -> None:
        ready = self._is_ready(moment)
        messages = self._sdk.take() if self._sdk is not None and ready else []
        known = [item for item in messages if self._jobs.ref_of(item.pid) is not None]
        strange = [item for item in messages if self._jobs.ref_of(item.pid) is None]
        self._hears = bool(messages)
        strangers = {item.pid for item in strange} - self._peers
        listed = self._gpus.processes()
        observed = ready and (bool(strangers) or moment >= self._observe_at or listed != self._listed)
        # The last words of a process that has ended by now are still its job's.
        parts = [self._heard(known)]
        ended: tuple[JobSighting, ...] = ()
        if observed:
            self._peers |= strangers
            self._observe_at, self._listed = moment + self._observe_seconds, listed
            ended = self._guarded("looking at jobs", lambda: self._observe(now, moment, parts), ended)
        parts.append(self._heard(strange))
        parts.append(self._guarded("reading logs", lambda: self._steps.read(now), NOTHING))
        if self._hosts is not None:
            hosts = self._hosts
            parts.append(
                self._guarded("the host's part of jobs", lambda: hosts.read(now, self._observed), NOTHING)
            )
        readings = joined(parts)
        if observed or messages or readings != NOTHING:
            self._publish(readings, ended)

    def _heard(self, messages: list[Datagram]) -> Readings:
        return self._guarded("hearing the SDK", lambda: self._steps.hear(self._attributed(messages)), NOTHING)

    def _is_ready(self, moment: float) -> bool:
        """Whether the first look at processes need not wait any more."""
        self._began = moment if self._began is None else self._began
        self._ready = self._ready or self._gpus.has_listed() or moment - self._began > FIRST_SECONDS
        return self._ready

    def _observe(self, now: float, moment: float, parts: list[Readings]) -> tuple[JobSighting, ...]:
        observed = self._seen(now, moment)
        self._peers = {pid for pid in self._peers if self._jobs.ref_of(pid) is not None}
        live = tuple(job for job in observed if not job.ended)
        assigned = self._guarded(
            "looking at configured logs", lambda: self._configured.assign(live, now), Assigned(by_job={})
        )
        none: tuple[tuple[ObservedJob, ...], tuple[ObservedJob, ...]] = ((), ())
        pages, over = self._guarded("looking at endpoints", lambda: self._endpoints.alone(now), none)
        refs = frozenset(job.sighting.ref for job in observed)
        unseen = self._jobs.unseen_gpus
        pods, past = self._guarded("looking at pods", lambda: self._pods.look(now, unseen, refs), none)
        gone = (*(job for job in observed if job.ended), *assigned.ended, *over, *past)
        live += (*assigned.alone, *pages, *pods)
        findings = self._findings(now, live, assigned)
        findings += [item for job in (*observed, *pods) for item in job.findings]
        parts.append(Readings(findings=self._new(findings)))
        if gone:
            parts.append(self._guarded("reading ends of logs", lambda: self._steps.end(gone, now), NOTHING))
        silent = {job.sighting.ref for job in past if not self._steps.has_steps(job.sighting.ref)}
        told = (job.sighting for job in gone if job.sighting.ref not in silent)
        ended = tuple(self._steps.completed(sighting) for sighting in told)
        for job in gone:
            self._steps.forget(job.sighting.ref)
            self._configs.forget(job.sighting.ref)
        done = {job.sighting.ref for job in gone}
        self._told = {key for key in self._told if key[0] not in done} if done else self._told
        return ended + self._allocate(live, now)

    def _seen(self, now: float, moment: float) -> tuple[ObservedJob, ...]:
        """The jobs of processes; where the look fails those of the one before: none ends because it cannot be seen."""
        if not self._gpus.lists_processes() and moment >= self._scan_at:
            self._scan_at = moment + SCAN_SECONDS
            nobody: frozenset[int] = frozenset()
            self._scanned = self._guarded("looking at processes", lambda: self._jobs.scan(now), nobody)
        seeds = frozenset(self._peers) | self._scanned
        self._scanned = frozenset()
        if self._allocated is not None:
            look = functools.partial(self._allocated.look, self._gpus.devices())
            self._jobs.leases = self._guarded("asking for allocations", look, self._jobs.leases)
        observed = self._guarded(
            "looking at jobs' processes",
            lambda: self._jobs.observe(now, self._listed, seeds, self._gpus.devices()),
            self._of_processes,
        )
        self._of_processes = tuple(job for job in observed if not job.ended)
        return observed

    def _findings(self, now: float, live: tuple[ObservedJob, ...], assigned: Assigned) -> list[Finding]:
        """Begin to follow logs and read configurations; what is wrong with them."""
        nothing: tuple[Finding, ...] = ()
        look = functools.partial(self._steps.look, now, live, assigned.by_job)
        found = list(self._guarded("looking for logs", look, nothing))
        for job in live:
            read = functools.partial(self._configured_of, job, now)
            found += self._guarded("reading configurations", read, nothing)
        return found

    def _allocate(self, live: tuple[ObservedJob, ...], now: float) -> tuple[JobSighting, ...]:
        """Add what schedulers gave out; the jobs whose allocation is over."""
        self._observed = live
        allocated, released = self._allocated, tuple[JobSighting, ...]()
        if allocated is not None:
            self._observed, released = self._guarded(
                "looking at allocations",
                lambda: allocated.add(live, now),
                (live, released),
            )
        return released

    def _configured_of(self, job: ObservedJob, now: float) -> tuple[Finding, ...]:
        """Take in what a job's configuration files say; what is wrong with them comes back."""
        for facts in self._configs.facts(job, now):
            self._steps.add_run(job.sighting.ref, facts)
        return tuple(self._configs.findings(job))

    def _attributed(self, messages: list[Datagram]) -> list[tuple[Datagram, str, int]]:
        """Messages with the job of their sender; those of senders that are gone are counted."""
        found = []
        for datagram in messages:
            ref = self._jobs.ref_of(datagram.pid)
            start = self._jobs.start_of(datagram.pid)
            if ref is None or start is None:
                self.sdk_unattributed += 1
                continue
            found.append((datagram, ref, start))
        return found

    def _new(self, findings: list[Finding]) -> tuple[Finding, ...]:
        """Findings that were not told yet."""
        fresh = []
        for finding in findings:
            key = (finding.job, finding.code, finding.text)
            if key not in self._told:
                self._told.add(key)
                fresh.append(finding)
        return tuple(fresh)

    def _publish(self, readings: Readings, ended: tuple[JobSighting, ...]) -> None:
        told = (job.sighting for job in self._observed if not self._pods.is_silent(job.sighting.ref))
        sightings = tuple(self._steps.completed(sighting) for sighting in told)
        logs = tuple(log for log in self._steps.logs() if not self._pods.is_silent(log.job))
        last_steps, positions = self._steps.last_steps(), self._steps.positions()
        with self._lock:
            known = {item.ref for item in self._taken.sightings}
            taken = self._taken
            stepped = {step.job for step in taken.last_steps}
            had_rows = self.has_rows
            taken.readings = joined([taken.readings, readings])
            taken.sightings, taken.logs, taken.last_steps = sightings, logs, last_steps
            taken.ended += ended
            taken.positions = positions
            taken.gaps = (*self._jobs.gaps, *(self._allocated.gaps if self._allocated is not None else ()))
            news = (
                ended
                or any(item.ref not in known for item in sightings)
                or any(step.job not in stepped for step in readings.steps)
            )
        if news:
            self.changed.set()
        if news or (self.has_rows and not had_rows):
            self.bell.ring()


def within(bounds: tuple[float, float], value: float) -> float:
    """The value, or the bound that it is beyond."""
    return min(max(value, bounds[0]), bounds[1])
