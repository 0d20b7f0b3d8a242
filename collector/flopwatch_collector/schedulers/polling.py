"""Schedulers asked again and again: one thread each, which costs only itself when its scheduler is away."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from flopwatch_collector.config_schedulers import SchedulerSettings
from flopwatch_collector.ingest.decode import MalformedBatch
from flopwatch_collector.model import FleetState
from flopwatch_collector.schedulers.delivery import FAILURES, Delivery
from flopwatch_collector.schedulers.node_states import NodeStates
from flopwatch_collector.schedulers.placing import Fleet
from flopwatch_collector.schedulers.queue_depth import snapshots
from flopwatch_collector.schedulers.reading import GpuLimit, Reading, SchedulerUnreachable
from flopwatch_collector.schedulers.telling import About, closed, inventory, partitions, told
from flopwatch_collector.store.port import Control

REFRESH_SECONDS = 120.0
"""What has not changed is told again after so long: a job that nobody names is taken to be over."""
QUEUE_SECONDS = 600.0
AGAIN_SECONDS = 600.0
LIMITS = "scheduler_limits"
STOP_SECONDS = 5.0

log = logging.getLogger(__name__)


class Scheduler(Protocol):
    """Reads one scheduler."""

    def read(self, now: float) -> Reading:
        """All that it says now.

        Raises:
            SchedulerUnreachable: it cannot be asked.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """The GPU limits that a scheduler told last."""

    cluster: str
    time_seconds: float
    limits: tuple[GpuLimit, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """How the reading of one scheduler fares."""

    name: str
    kind: str
    cluster: str
    read_seconds: float | None
    """When it was last read; None before it was."""
    problem: str | None
    running_jobs: int | None
    pending_gpus: int | None


@dataclass(kw_only=True)
class Poll:
    """Asks one scheduler, and tells what it says."""

    settings: SchedulerSettings
    scheduler: Scheduler
    delivery: Delivery
    nodes: NodeStates
    state: Callable[[], FleetState]
    control: Control
    partitions: frozenset[str] = frozenset()
    """In which something waited when it was last told."""
    _sent: dict[str, tuple[Any, float]] = field(default_factory=dict, repr=False)
    _queue: tuple[Any, float] = field(default=(None, 0.0), repr=False)
    _said: dict[str, float] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.health = Health(
            name=self.settings.shown_name,
            kind=self.settings.kind,
            cluster=self.settings.cluster,
            read_seconds=None,
            problem=None,
            running_jobs=None,
            pending_gpus=None,
        )

    def turn(self, now: float) -> None:
        """Read and tell once; a scheduler that cannot be read changes nothing, and is said.

        Raises:
            Unavailable: the store or the control state cannot be reached.
            Overloaded: too much waits.
        """
        try:
            reading = self.scheduler.read(now)
        except SchedulerUnreachable as error:
            self._say(str(error), now)
            self._note(problem=str(error))
            return
        for problem in reading.problems:
            self._say(problem, now)
        self._tell(reading)
        self.nodes.reading(self.settings.shown_name, self.settings.cluster, reading)
        if reading.limits is not None:
            kept = Limits(cluster=self.settings.cluster, time_seconds=now, limits=reading.limits)
            self.control.save(LIMITS, {self.settings.shown_name: kept})
        self._note(
            read_seconds=now,
            problem=reading.problems[0] if reading.problems else None,
            running_jobs=sum(job.state == "running" and bool(job.allocations) for job in reading.jobs),
            pending_gpus=sum(each.pending_gpus for each in snapshots(reading.jobs, (), now)),
        )

    def _tell(self, reading: Reading) -> None:
        """Nodes first, so that what is told of jobs finds their GPUs; then jobs, leases and the queue."""
        now, cluster = reading.time_seconds, self.settings.cluster
        known = inventory(reading, self._fleet())
        fresh = {
            name: about
            for name, about in known.items()
            if self._sent.get(f"inventory:{name}", (None, 0.0))[0] != about.gpu_count
        }
        self.delivery.deliver(cluster, fresh, now)
        self._sent.update({f"inventory:{name}": (about.gpu_count, now) for name, about in fresh.items()})
        fleet = self._fleet()
        about = told(reading, fleet)
        for name, over in closed(reading, fleet, f"{self.settings.kind}:").items():
            _join(about.setdefault(name, About()), over)
        due = {name: each for name, each in about.items() if self._due(name, each, now)}
        self._add_queue(due, reading, fleet)
        self.delivery.deliver(cluster, due, now)
        self._sent.update({name: (_content(each), now) for name, each in due.items()})

    def _fleet(self) -> Fleet:
        return Fleet(state=self.state(), cluster=self.settings.cluster)

    def _due(self, name: str, about: About, now: float) -> bool:
        content, at = self._sent.get(name, (None, 0.0))
        if content != _content(about):
            return True
        return bool(about.leases) and now - at >= REFRESH_SECONDS

    def _add_queue(self, due: dict[str, About], reading: Reading, fleet: Fleet) -> None:
        """The queue's depth, when it has changed, on the first node of the cluster."""
        depth = snapshots(reading.jobs, self.partitions, reading.time_seconds)
        content = [
            (each.partition, each.pending_jobs, each.pending_gpus, each.largest_request_gpus)
            for each in depth
        ]
        before, at = self._queue
        place = min(fleet.nodes, default=None)
        if place is None or (content == before and reading.time_seconds - at < QUEUE_SECONDS):
            return
        due.setdefault(place, About()).queues = depth
        self._queue, self.partitions = (content, reading.time_seconds), partitions(depth)

    def _say(self, problem: str, now: float) -> None:
        """Log a problem once in ten minutes."""
        if now - self._said.get(problem, float("-inf")) >= AGAIN_SECONDS:
            self._said = {text: at for text, at in self._said.items() if now - at < AGAIN_SECONDS}
            self._said[problem] = now
            log.warning("scheduler %s: %s", self.settings.shown_name, problem)

    def _note(self, **changed: Any) -> None:
        values = {name: getattr(self.health, name) for name in Health.__slots__}
        self.health = Health(**{**values, **changed})


def _content(about: About) -> tuple[Any, ...]:
    findings = tuple((each.job, each.code) for each in about.findings)
    return (tuple(about.jobs.values()), tuple(about.leases), findings, about.gpu_count)


def _join(about: About, more: About) -> None:
    for ref, job in more.jobs.items():
        about.jobs.setdefault(ref, job)
    about.leases += more.leases
    about.touched += more.touched


@dataclass(kw_only=True)
class Polls:
    """All schedulers, and the declarations of nodes, on their own threads."""

    polls: tuple[Poll, ...]
    nodes: NodeStates
    prepare: Callable[[float], None] = lambda _: None
    """Tells the site's own inventory; called at every turn of the declarations."""
    on_duty: Callable[[], bool] = lambda: True
    clock: Callable[[], float] = time.time
    nodes_seconds: float = 10.0
    _stopping: threading.Event = field(default_factory=threading.Event, repr=False)
    _threads: list[threading.Thread] = field(default_factory=list, repr=False)

    def start(self) -> None:
        """Begin to ask."""
        work: Mapping[str, tuple[Callable[[float], Any], float]] = {
            "node-states": (self._turn_nodes, self.nodes_seconds),
            **{
                f"scheduler-{poll.settings.shown_name}": (poll.turn, poll.settings.interval_seconds)
                for poll in self.polls
            },
        }
        for name, (turn, seconds) in work.items():
            thread = threading.Thread(target=self._run, args=(turn, seconds), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Ask no more; what is being read is finished."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=STOP_SECONDS)

    def health(self) -> list[Health]:
        """How each scheduler fares."""
        return [poll.health for poll in self.polls]

    def _turn_nodes(self, now: float) -> None:
        self.prepare(now)
        self.nodes.turn(now)

    def _run(self, turn: Callable[[float], Any], seconds: float) -> None:
        """A turn every interval. One that fails is logged; the next one is tried."""
        wait = 0.0
        while not self._stopping.wait(wait):
            wait = seconds
            if not self.on_duty():
                continue
            try:
                turn(self.clock())
            except FAILURES as error:
                log.warning("%s waits: %s", threading.current_thread().name, error)
            except MalformedBatch as error:
                log.error("%s: %s", threading.current_thread().name, error)  # noqa: TRY400 - its words say all
