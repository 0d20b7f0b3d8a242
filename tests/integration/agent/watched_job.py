"""A training process, and what an agent makes of its steps where time is the test's."""

import struct
import subprocess
import sys
import time
from pathlib import Path

from flopwatch.wire import StepRecord
from flopwatch_agent.log_finder import LogFinder
from flopwatch_agent.positions import Positions
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.source import ObservedJob
from flopwatch_agent.sources.jobs import JobsSource
from flopwatch_agent.sources.steps import StepsSource
from flopwatch_agent.sysfs import KernelTree
from flopwatch_agent.trainer_endpoints import TrainerEndpoints
from flopwatch_agent.trainers.reader import LogReader

ROW = "iter {}: loss 3.1234, time 250.00ms, mfu 40.00%\n"
PATIENCE, SCAN = 11.0, 21.0
HOLD = """
import sys, time
files = [open(path, "a") for path in sys.argv[1].split(":") if path]
print("up", flush=True)
time.sleep(600)
"""
TABLE = "step,train_loss,epoch,lr,step_time\n0,2.5,0,0.0003,0.5\n1,2.5,0,0.0003,0.5\n"
CONFIG = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 1000,
}  # fmt: skip
POD = "0d5c0e1a-77aa-4be7-9d3e-30c6e8b5f0aa"


class Job:
    """A process, and what an agent makes of its steps; time is the test's."""

    def __init__(self, folder: Path, proc: Path = Path("/proc")) -> None:
        self.folder, self.proc = folder, proc
        self.processes: list[subprocess.Popen[bytes]] = []
        self.restart()

    def restart(self) -> None:
        procfs = Procfs(KernelTree(self.proc))
        self.jobs = JobsSource(procfs, "boot")
        self.steps = StepsSource(
            finder=LogFinder(procfs, self.folder / "pods"),
            positions=Positions(self.folder, -1),
            new_reader=LogReader,
            node="n",
        )

    def with_endpoints(self, *urls: str) -> TrainerEndpoints:
        """The job under an agent that reads these endpoints when it is told to."""
        endpoints = TrainerEndpoints(urls, self.jobs._procfs, "n")
        self.steps._finder = LogFinder(self.jobs._procfs, self.folder / "pods", endpoints)
        return endpoints

    def start(
        self, *arguments: str, open_files: tuple[Path, ...] = (), stdout: Path | None = None, **options
    ) -> int:
        """A trainer that holds files open; its standard output is a file without steps unless told otherwise."""
        with (stdout or self.folder / "console").open("ab") as sink:
            command = [sys.executable, "-c", HOLD, ":".join(map(str, open_files)), *arguments]
            self.processes.append(
                subprocess.Popen(command, stdout=sink, stderr=subprocess.DEVNULL, cwd=self.folder, **options)
            )
        while not (stdout or self.folder / "console").read_bytes().endswith(b"up\n"):
            time.sleep(0.02)
        return self.processes[-1].pid

    def observed(self) -> tuple[ObservedJob, ...]:
        """The jobs at the real time, which the kernel's start times go by."""
        pids = tuple(process.pid for process in self.processes)
        return self.jobs.observe(time.time(), {"GPU-0": pids}, frozenset(), ())

    def look(self, now: float) -> tuple[StepRecord, ...]:
        observed = self.observed()
        self.steps.look(now, tuple(job for job in observed if not job.ended), {})
        found = self.steps.read(now).steps
        ended = tuple(job for job in observed if job.ended)
        return found + (self.steps.end(ended, now).steps if ended else ())

    def over(self, *moments: float) -> list[StepRecord]:
        began = time.time()
        return [step for moment in moments for step in self.look(began + moment)]


def said(steps: list[StepRecord]) -> list[tuple[str, int, float | None]]:
    return [(step.source, step.step, step.seconds) for step in steps]


def event(step: int, wall: float, tag: str, value: float) -> bytes:
    """A scalar as TensorBoard's writer frames it (TFRecord of an Event), checksums left empty."""

    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    simple = b"\x15" + struct.pack("<f", value)
    summary = field(1, field(1, tag.encode()) + simple)
    record = b"\x09" + struct.pack("<d", wall) + b"\x10" + bytes([step]) + field(5, summary)
    return struct.pack("<Q", len(record)) + b"\0" * 4 + record + b"\0" * 4


def event_file(tags: tuple[tuple[str, float], ...] = (("lm loss", 2.5), ("iteration-time", 0.5))) -> bytes:
    now = time.time()
    version = b"\x09" + struct.pack("<d", now) + b"\x1a\x0dbrain.Event:2"
    head = struct.pack("<Q", len(version)) + b"\0" * 4 + version + b"\0" * 4
    rows = (event(n, now + n, tag, value) for n in range(1, 6) for tag, value in tags)
    return head + b"".join(rows)


def cri(text: str) -> str:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000000Z", time.gmtime())
    return "".join(f"{stamp} stdout F {line}\n" for line in text.splitlines())
