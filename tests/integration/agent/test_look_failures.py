"""A look at jobs of which one part fails: what other parts gave is told, and nothing that was taken is lost."""

import dataclasses
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.agent.agent_process import eventually

from flopwatch_agent.configured_logs import Assigned
from flopwatch_agent.job_watch import Files, GpuView, JobWatch, Taken
from flopwatch_agent.log_finder import LogFinder
from flopwatch_agent.model_config import ConfigReader
from flopwatch_agent.pod_jobs import PodJobs
from flopwatch_agent.positions import Positions
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.sdk_socket import SdkSocket
from flopwatch_agent.sources.jobs import JobsSource
from flopwatch_agent.sources.steps import StepsSource
from flopwatch_agent.sysfs import KernelTree
from flopwatch_agent.trainer_endpoints import TrainerEndpoints
from flopwatch_agent.trainers.reader import LogReader

REPORTER = """
import sys
from flopwatch import StepReporter
reporter = StepReporter()
for step in range(3):
    with reporter.step(tokens=4096): pass
print("reported", flush=True)
sys.stdin.read()
"""
TRAINER = """
import sys
print("tokens per iteration will be: 491,520")
for step in range(3):
    print(f"iter {step}: loss 3.1234, time 250.00ms, mfu 40.00%", flush=True)
sys.stdin.read()
"""


READS = ("facts", "findings", "assign", "alone", "look", "add", "read")


class Broken:
    """A part of which every read fails; it counts them."""

    def __init__(self) -> None:
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        def fail(*_: object) -> Any:
            if name not in READS:
                return None
            self.calls += 1
            raise RuntimeError(f"{name} is broken")

        return fail


class NoLogs:
    def assign(self, jobs: object, now: float) -> Assigned:
        return Assigned(by_job={})


class Watched:
    """The thread that looks at jobs, over the real processes of this machine, and what it told."""

    def __init__(self, folder: Path, pids: tuple[int, ...], **broken: Any) -> None:
        procfs = Procfs(KernelTree(Path("/proc")))
        endpoints = TrainerEndpoints((), procfs, "node-a")
        finder = LogFinder(procfs, folder / "pods", endpoints)
        self.steps = StepsSource(
            finder=finder,
            positions=Positions(folder, -1),
            new_reader=broken.pop("reader", LogReader),
            node="node-a",
        )
        self.sdk = SdkSocket(folder / "steps.sock")
        view = GpuView(
            processes=lambda: {"GPU-a": pids}, devices=tuple, lists_processes=lambda: True, has_listed=lambda: True,
            interval_seconds=0.2,
        )  # fmt: skip
        files = Files(
            configs=ConfigReader(procfs), configured=NoLogs(), endpoints=endpoints,
            pods=PodJobs(folder / "pods", self.steps.has_steps),
        )  # fmt: skip
        self.watch = JobWatch(
            gpus=view,
            jobs=JobsSource(procfs, "boot"),
            steps=self.steps,
            files=dataclasses.replace(files, **broken),
            sdk=self.sdk,
        )
        self.told: list[Taken] = []
        self.sdk.start()
        self.watch.start()

    def take(self) -> list[Any]:
        """All steps so far."""
        self.told.append(self.watch.take())
        return [step for taken in self.told for step in taken.readings.steps]

    def stop(self) -> None:
        self.watch.stop(10.0)
        self.sdk.stop()


@pytest.fixture
def programs() -> Iterator[list["subprocess.Popen[bytes]"]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for program in started:
        program.kill()
        program.wait(10)
        for stream in (program.stdin, program.stdout):
            if stream is not None:
                stream.close()


def start(
    programs: list["subprocess.Popen[bytes]"], code: str, output: Path | None = None, **environment: str
) -> int:
    with (output or Path(os.devnull)).open("ab") as sink:
        programs.append(
            subprocess.Popen(
                [sys.executable, "-c", code],
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=sink if output else subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
    return programs[-1].pid


@pytest.mark.parametrize("part", ["configs", "configured", "endpoints", "pods", "allocated", "hosts"])
def test_when_one_part_fails_the_steps_of_logs_and_sdk_and_the_job_are_told(
    tmp_path: Path, programs: list["subprocess.Popen[bytes]"], caplog: pytest.LogCaptureFixture, part: str
) -> None:
    socket = tmp_path / "steps.sock"
    pid = start(programs, TRAINER, tmp_path / "train.log")
    broken = Broken()
    watched = Watched(tmp_path, (pid,), **{part: broken})
    try:
        reporter = start(programs, REPORTER, FLOPWATCH_SOCKET=str(socket))
        steps = eventually(lambda: found if len(found := watched.take()) >= 6 else None, 60.0)
        eventually(lambda: broken.calls >= 3, 60.0)
        # A look between two of the broken part's turns succeeds.
        eventually(lambda: not watched.watch.health().success, 60.0)
        health = watched.watch.health()
    finally:
        watched.stop()

    assert sorted((step.source, step.step) for step in steps) == [
        ("log", 0), ("log", 1), ("log", 2), ("sdk", 1), ("sdk", 2), ("sdk", 3),
    ]  # fmt: skip
    assert watched.watch.sdk_unattributed == 0
    assert health.errors >= 1
    said = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(said) == len({record.getMessage() for record in said}), "a failure is said once"
    assert reporter != pid


class Fussy(LogReader):
    """Fails on one line."""

    def feed(self, data: bytes, arrived_at_seconds: float | None = None) -> None:
        if b"poison" in data:
            raise ValueError("poison")
        super().feed(data, arrived_at_seconds)


def test_a_file_that_the_reader_fails_on_costs_only_itself(
    tmp_path: Path, programs: list["subprocess.Popen[bytes]"]
) -> None:
    bad = start(programs, "print('poison', flush=True); import sys; sys.stdin.read()", tmp_path / "bad.log")
    good = start(programs, TRAINER, tmp_path / "good.log")
    watched = Watched(tmp_path, (bad, good), reader=Fussy)
    try:
        steps = eventually(lambda: found if len(found := watched.take()) >= 3 else None, 60.0)
        logs = eventually(lambda: [log for log in watched.watch.peek().logs if not log.alive], 60.0)
    finally:
        watched.stop()

    assert [step.step for step in steps] == [0, 1, 2]
    assert [(log.path, log.alive) for log in logs] == [(str(tmp_path / "bad.log"), False)]
    assert "the agent failed on what it holds" in (logs[0].problem or "")
