"""A node on which jobs come and go, as an agent sees it: its processes are files, so that thousands take seconds."""

import gc
import itertools
import os
import shutil
import types
from pathlib import Path

from prometheus_client.exposition import generate_latest
from prometheus_client.registry import CollectorRegistry
from tests.integration.agent.kernel_files import write

from flopwatch_agent.allocated import Allocated
from flopwatch_agent.batches import BatchMaker, Moment, NodeIdentity
from flopwatch_agent.config import AgentSettings
from flopwatch_agent.configured_logs import ConfiguredLogs
from flopwatch_agent.job_watch import Files, GpuView, JobWatch, Taken
from flopwatch_agent.log_finder import LogFinder
from flopwatch_agent.model_config import ConfigReader
from flopwatch_agent.pod_jobs import PodJobs
from flopwatch_agent.positions import Positions
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.sinks.exposition import SnapshotCollector
from flopwatch_agent.source import Inventory, Readings, Snapshot
from flopwatch_agent.sources.job_host import JobHostSource
from flopwatch_agent.sources.jobs import JobsSource
from flopwatch_agent.sources.steps import StepsSource
from flopwatch_agent.sysfs import KernelTree
from flopwatch_agent.trainer_endpoints import TrainerEndpoints
from flopwatch_agent.trainers.reader import LogReader

ROWS = "".join(f"iter {n}: loss 3.1234, time 250.00ms, mfu 40.00%\n" for n in range(8))
SKIPPED = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, types.CodeType)


class Node:
    """Jobs of one process each, on GPUs of their own, with a log and a finding; time is the machine's."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._numbers = folder, itertools.count(1000)
        self.live: dict[int, str] = {}
        self.steps_seen = 0
        write(folder / "proc", "uptime", "1000.0 1.0")
        tree, sys = KernelTree(folder / "proc"), KernelTree(folder / "sys")
        procfs = Procfs(tree)
        endpoints = TrainerEndpoints((), procfs, "n")
        self.positions = Positions(folder, -1)
        finder = LogFinder(procfs, folder / "pods", endpoints)
        steps = StepsSource(finder=finder, positions=self.positions, new_reader=LogReader, node="n")
        self.hosts = JobHostSource(tree, sys, 0.0)
        files = Files(
            configs=ConfigReader(procfs), endpoints=endpoints, pods=PodJobs(folder / "pods", steps.has_steps),
            configured=ConfiguredLogs((f"{folder}/*.log",), finder.holds, steps.has_steps), hosts=self.hosts,
            allocated=Allocated(AgentSettings(job_files=folder / "jobs", pod_resources=folder / "none"), tree, sys),
        )  # fmt: skip
        view = GpuView(
            processes=lambda: {f"GPU-{pid}": (pid,) for pid in self.live}, devices=tuple,
            lists_processes=lambda: True, has_listed=lambda: True, interval_seconds=1.0,
        )  # fmt: skip
        self.watch = JobWatch(gpus=view, jobs=JobsSource(procfs, "boot"), steps=steps, files=files, sdk=None)
        self.maker = BatchMaker(
            NodeIdentity(
                node="n", cluster="c", boot_id="b", machine_id=None, agent_version="1", interval_seconds=1.0
            )
        )
        self.taken = Taken()
        self._sequence = 0

    def begin(self, count: int) -> None:
        """So many new jobs."""
        for number in itertools.islice(self._numbers, count):
            log = self.folder / f"{number}.out"
            log.write_text(ROWS)
            self._process(number, log)
            self.live[number] = f"slurm:{number}"

    def end(self) -> None:
        """All of them are over, and their files gone."""
        for number in self.live:
            shutil.rmtree(self.folder / "proc" / str(number))
            (self.folder / f"{number}.out").unlink()
        self.live.clear()

    def look(self) -> None:
        """What the agent's threads do from one batch to the next."""
        self.watch.look_now()
        self.taken = taken = self.watch.take()
        self.steps_seen += len(taken.readings.steps)
        self._sequence += 1
        moment = Moment(
            now=1.0, monotonic=float(self._sequence), spool="s", sequence=self._sequence, inventory=Inventory(),
            readings=Readings(steps=taken.readings.steps), sightings=taken.sightings, ended=taken.ended,
            logs=taken.logs,
        )  # fmt: skip
        self.maker.make(moment)
        self.positions.prepare(self._sequence, taken.positions)
        self.positions.commit(self._sequence)

    def page(self) -> str:
        """``/metrics`` as of the last look."""
        snapshot = Snapshot(
            now=1.0, interval_seconds=1.0, jobs=self.taken.sightings, logs=self.taken.logs,
            last_steps=self.taken.last_steps, job_samples=self.hosts.latest,
        )  # fmt: skip
        registry = CollectorRegistry()
        registry.register(SnapshotCollector(lambda: snapshot, "1"))
        return generate_latest(registry).decode()

    def kept(self) -> int:
        """Objects that the agent's parts hold on to."""
        gc.collect()
        seen: set[int] = set()
        waiting: list[object] = [self.watch, self.positions, self.maker]
        while waiting:
            item = waiting.pop()
            if id(item) in seen or isinstance(item, SKIPPED):
                continue
            seen.add(id(item))
            waiting += gc.get_referents(item)
        return len(seen)

    def _process(self, pid: int, log: Path) -> None:
        folder = self.folder / "proc" / str(pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "fd" / "1").symlink_to(log)
        owner = f"{os.getuid()} " * 4
        # Doubtful words of its owner are told as a finding each.
        environment = b"RANK=0\0WORLD_SIZE=1\0FLOPWATCH_MFU_TARGET=much\0"
        (folder / "environ").write_bytes(environment)
        (folder / "cmdline").write_bytes(
            b"python\0train.py\0--output_dir\0" + str(log.parent).encode() + b"\0"
        )
        (folder / "stat").write_text(f"{pid} (python) S 1 " + "0 " * 17 + "99000 " + "0 " * 20)
        (folder / "status").write_text(f"Name:\tpython\nUid:\t{owner}\nGid:\t{owner}\nGroups:\t\n")
        (folder / "cgroup").write_text(f"0::/system.slice/slurmstepd.scope/job_{pid}/step_0/user/task_0\n")
