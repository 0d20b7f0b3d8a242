"""The recorder of ``flopwatch run``: a process beside the command that samples its GPUs and reads its output.

It is no parent of the command and stands in no one's way: when it ends, however it ends, the command goes on. When
the relay ends, it takes the command's output over, so that the command does not notice that either.
"""

import dataclasses
import functools
import json
import logging
import os
import select
import shutil
import socket
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flopwatch.encoding import encode
from flopwatch.wire import Batch, GpuSample, JobSighting, StepRecord
from flopwatch_agent.batches import BatchMaker, Moment, NodeIdentity
from flopwatch_agent.config import AgentSettings
from flopwatch_agent.job_watch import Files, GpuView, JobWatch, Taken
from flopwatch_agent.log_finder import LogFinder
from flopwatch_agent.log_formats import log_formats
from flopwatch_agent.model_config import ConfigReader
from flopwatch_agent.node_identity import boot_id, machine_id
from flopwatch_agent.pod_jobs import PodJobs
from flopwatch_agent.poller import Poller
from flopwatch_agent.positions import Positions
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.rounds import Rounds
from flopwatch_agent.run_job import OwnLogs, given_gpus, one_job, visible_gpus
from flopwatch_agent.run_relay import Stream, copy
from flopwatch_agent.run_summary import RunSeen, summary, world_size
from flopwatch_agent.sdk_socket import SdkSocket
from flopwatch_agent.sinks.push import Pusher, Target
from flopwatch_agent.source import Inventory, Readings, joined
from flopwatch_agent.sources.gpu import GpuSource
from flopwatch_agent.sources.host import HostSource
from flopwatch_agent.sources.job_host import JobHostSource
from flopwatch_agent.sources.jobs import JobsSource
from flopwatch_agent.sources.network import NetworkSource, nvidia_controllers
from flopwatch_agent.sources.steps import StepsSource
from flopwatch_agent.spool import Spool
from flopwatch_agent.sysfs import KernelTree
from flopwatch_agent.trainer_endpoints import TrainerEndpoints
from flopwatch_agent.trainers.reader import LogReader

logger = logging.getLogger(__name__)

FIRST_SECONDS = 1.0
ALIVE_SECONDS = 0.5
PUSH_SECONDS = 10.0
STOP_SECONDS = 3.0
MESSAGE_BYTES = 65_536
SOCKET_PATH_BYTES = 100
NICENESS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPlan:
    """What is recorded and where it goes."""

    argv: tuple[str, ...]
    folder: Path
    stem: str
    """What the names of this node's files begin with."""
    settings: AgentSettings
    version: str

    @property
    def batches(self) -> Path:
        """The recording: one batch a line."""
        return self.folder / f"{self.stem}.jsonl"


@dataclass(slots=True)
class Seen:
    """What the summary is made of."""

    steps: list[StepRecord] = field(default_factory=list)
    samples: list[GpuSample] = field(default_factory=list)
    job: JobSighting | None = None
    status: int | None = None


def record(plan: RunPlan, control: socket.socket, streams: tuple[Stream, ...]) -> None:
    """Record until the command is over, and tell the relay what came out; runs in a process of its own."""
    os.nice(NICENESS)
    for one in streams:
        os.close(one.writer)
    silence = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(silence, number)
    logging.basicConfig(
        filename=plan.folder / f"{plan.stem}.flopwatch.log",
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    private = Path(tempfile.mkdtemp(prefix="flopwatch-"))
    try:
        sdk = private_socket(private)
        control.send(json.dumps({"socket": None if sdk is None else str(sdk.path)}).encode())
        message = told(control)
        if message is not None:
            Recorder(
                plan, int(message["pid"]), (control, sdk, private), tuple(one.path for one in streams)
            ).run(streams)
    finally:
        shutil.rmtree(private, ignore_errors=True)


def private_socket(folder: Path) -> SdkSocket | None:
    """The SDK's socket for this command alone; None where the path is too long or cannot be a socket."""
    path = folder / "steps.sock"
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
        return None
    try:
        return SdkSocket(path)
    except OSError as error:
        logger.warning("no SDK socket at %s: %s", path, error)
        return None


def told(control: socket.socket) -> dict[str, Any] | None:
    """The relay's next message; None when the relay is gone."""
    try:
        body = control.recv(MESSAGE_BYTES)
    except ConnectionError:
        return None
    return json.loads(body) if body else None


class Recorder:
    """Everything that reads, for one command."""

    def __init__(
        self,
        plan: RunPlan,
        pid: int,
        given: tuple[socket.socket, SdkSocket | None, Path],
        logs: tuple[Path, ...],
    ) -> None:
        self._plan, self._logs = plan, logs
        self._control, self._sdk, private = given
        settings = plan.settings
        proc, self._sys = KernelTree(settings.proc_root), KernelTree(settings.sys_root)
        self._procfs = Procfs(proc)
        self._only = one_job(self._procfs, pid, plan.argv, time.time())
        rounds = Rounds(settings.interval_seconds)
        self._gpu = GpuSource(rounds=rounds, gpm=settings.gpm)
        self._pollers = (
            Poller(HostSource(proc, self._sys), rounds),
            Poller(NetworkSource(self._sys), rounds),
        )
        boot = boot_id(proc)
        self._inventory = Inventory()
        self._own: frozenset[str] = frozenset()
        self._private = private
        self._jobs = self._job_watch(boot)
        self._maker = BatchMaker(self._identity(boot))
        self._push = push_to_collector(settings, plan.folder / f"{plan.stem}.spool")
        self._spool_id = uuid.uuid4().hex if self._push is None else self._push[0].spool_id
        self._sequence = 0 if self._push is None else self._push[0].next_sequence
        self._file = plan.batches.open("wb")
        self._seen = Seen()

    def run(self, streams: tuple[Stream, ...]) -> None:
        """Until the command is over and all of it is written."""
        self._gpu.start()
        for part in (*self._pollers, self._jobs, self._sdk, self._push and self._push[1]):
            if part is not None:
                part.start()
        self._follow(streams)
        self._finish()

    def _follow(self, streams: tuple[Stream, ...]) -> None:
        """A batch each interval, until the relay says that the command ended."""
        interval = self._plan.settings.interval_seconds
        due = time.monotonic() + min(FIRST_SECONDS, interval)
        while True:
            ready, _, _ = select.select([self._control], [], [], max(0.0, due - time.monotonic()))
            if not ready:
                self._cycle()
                due = max(due + interval, time.monotonic())
                continue
            message = told(self._control)
            if message is None:
                self._take_over(streams)
                return
            if "broken" in message:
                os.close(streams[message["broken"]].reader)
            if "ended" in message:
                self._seen.status = message["ended"]
                return

    def _take_over(self, streams: tuple[Stream, ...]) -> None:
        """The relay is gone: keep the command's output and go on until it ends."""
        logger.warning("the relay ended before the command; its output goes on to the file only")
        for one in streams:
            one.target = None
            threading.Thread(target=drain, args=(one,), daemon=True).start()
        key = self._only.root.key
        due = time.monotonic()
        while Procfs(self._procfs.tree).is_alive(*key):
            if time.monotonic() >= due:
                self._cycle()
                due = time.monotonic() + self._plan.settings.interval_seconds
            time.sleep(ALIVE_SECONDS)

    def _finish(self) -> None:
        time.sleep(0.05)  # the SDK's last datagrams are on their way to the thread that takes them
        self._jobs.stop(STOP_SECONDS)
        self._jobs.look_now()
        self._cycle()
        self._only.ended = True
        self._jobs.look_now()
        self._cycle()
        for poller in self._pollers:
            poller.stop()
        if self._sdk is not None:
            self._sdk.stop()
        if self._push is not None:
            self._push[1].stop(PUSH_SECONDS)
        self._file.close()
        self._tell()
        self._gpu.stop(STOP_SECONDS)

    def _tell(self) -> None:
        """The summary, to its file and to the relay."""
        seen = self._seen
        found = summary(
            RunSeen(
                job=seen.job,
                steps=tuple(seen.steps),
                samples=tuple(seen.samples),
                devices=tuple(item for item in self._inventory.gpus if item.uuid in self._own),
                nvml=self._inventory.reason if self._inventory.nvml != "ok" else None,
                status=seen.status,
            )
        )
        found["recording"] = str(self._plan.batches)
        found["waiting_batches"] = None if self._push is None else self._push[0].waiting
        text = json.dumps(found, indent=2, allow_nan=False)
        (self._plan.folder / f"{self._plan.stem}.summary").write_text(text + "\n", encoding="utf-8")
        try:
            self._control.send(json.dumps({"summary": found}).encode())
        except OSError as error:
            logger.info("nobody waits for the summary: %s", error)

    def _cycle(self) -> None:
        now = time.time()
        taken = self._jobs.take()
        self._look_at_gpus()
        readings = joined([taken.readings, self._gpu.read(now), *(poller.take() for poller in self._pollers)])
        samples = tuple(item for item in readings.gpu_samples if item.gpu in self._own)
        readings = dataclasses.replace(readings, gpu_samples=samples)
        self._seen.steps += readings.steps
        self._seen.samples += samples
        self._write(self._batch(now, readings, self._facts(taken)))

    def _look_at_gpus(self) -> None:
        found = self._gpu.inventory()
        self._own = visible_gpus(os.environ, found.gpus)
        gpus = tuple(item for item in found.gpus if item.uuid in self._own)
        self._inventory = dataclasses.replace(found, gpus=gpus)

    def _facts(self, taken: Taken) -> Taken:
        """The sightings with the GPUs that the command was given: those named, or all where it has a rank on each."""
        own = tuple(sorted(self._own))

        def complete(job: JobSighting) -> JobSighting:
            is_known = given_gpus(os.environ) is not None or world_size(job) == len(own)
            return (
                dataclasses.replace(job, leased_gpus=own)
                if job.leased_gpus is None and own and is_known
                else job
            )

        taken.sightings = tuple(complete(job) for job in taken.sightings)
        taken.ended = tuple(self._end_of(complete(job)) for job in taken.ended)
        self._seen.job = next(iter((*taken.ended, *taken.sightings)), self._seen.job)
        return taken

    def _end_of(self, job: JobSighting) -> JobSighting:
        return dataclasses.replace(job, exit_reason=exit_reason(self._seen.status))

    def _batch(self, now: float, readings: Readings, taken: Taken) -> Batch:
        return self._maker.make(
            Moment(
                now=now,
                monotonic=time.monotonic(),
                spool=self._spool_id,
                sequence=self._sequence,
                readings=readings,
                inventory=self._inventory,
                expected_gpus=nvidia_controllers(self._sys) if given_gpus(os.environ) is None else (),
                sightings=taken.sightings,
                ended=taken.ended,
                logs=taken.logs,
                gaps=taken.gaps,
            )
        )

    def _write(self, batch: Batch) -> None:
        body = encode(batch)
        try:
            self._file.write(body + b"\n")
            self._file.flush()
            if self._push is not None:
                self._push[0].write(self._sequence, body)
                self._push[1].notify()
        except OSError as error:
            logger.warning("a batch could not be written: %s", error)
        self._sequence += 1

    def _identity(self, boot: str) -> NodeIdentity:
        settings = self._plan.settings
        return NodeIdentity(
            node=settings.node_name,
            cluster=settings.cluster,
            boot_id=boot,
            machine_id=machine_id(),
            agent_version=self._plan.version,
            interval_seconds=settings.interval_seconds,
            simulated=settings.simulated,
        )

    def _job_watch(self, boot: str) -> JobWatch:
        settings = self._plan.settings
        endpoints = TrainerEndpoints(settings.trainer_endpoints, self._procfs, settings.node_name)
        relay = frozenset((os.getpid(), os.getppid()))
        finder = LogFinder(self._procfs, settings.pod_logs, endpoints, relay)
        formats = log_formats(settings.log_format)
        steps = StepsSource(
            finder=finder,
            positions=Positions(self._private, -1),
            new_reader=functools.partial(
                LogReader, utc_offset_seconds=float(time.localtime().tm_gmtoff), user_formats=formats
            ),
            node=settings.node_name,
        )
        view = GpuView(
            processes=lambda: self._only.processes(self._gpu.processes(), self._own),
            devices=lambda: self._inventory.gpus,
            lists_processes=lambda: False,
            has_listed=lambda: True,
            interval_seconds=settings.interval_seconds,
        )
        files = Files(
            configs=ConfigReader(self._procfs),
            configured=OwnLogs(self._logs),
            endpoints=endpoints,
            pods=PodJobs(settings.pod_logs, steps.has_steps),
            hosts=JobHostSource(self._procfs.tree, self._sys, settings.interval_seconds),
        )
        jobs = JobsSource(self._procfs, boot, self._only)
        return JobWatch(gpus=view, jobs=jobs, steps=steps, files=files, sdk=self._sdk)


def drain(one: Stream) -> None:
    """Keep what the command writes; the file alone takes it."""
    copy(one, lambda _: None)


def push_to_collector(settings: AgentSettings, folder: Path) -> tuple[Spool, Pusher] | None:
    """The queue to a collector; None without one."""
    if settings.collector_url is None:
        return None
    spool = Spool(folder, settings.spool_max_bytes)
    target = Target(url=settings.collector_url, bearer=settings.bearer, ca_file=settings.ca_file)
    return spool, Pusher(target, spool)


def exit_reason(status: int | None) -> str | None:
    """How the command ended, as a session says it; None when nobody saw it."""
    if status is None:
        return None
    return "completed" if status == 0 else f"signal {-status}" if status < 0 else f"exit {status}"
