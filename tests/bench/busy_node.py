"""A node as an agent meets it: eight GPUs with a process each, a busy log, eight InfiniBand ports, a collector."""

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import FakeCollector
from tests.integration.agent.kernel_files import write

TRAINER = Path(__file__).parents[1] / "e2e" / "trainer.py"
TICK = os.sysconf("SC_CLK_TCK")
GPUS = 8
COUNTERS = ("port_xmit_data", "port_rcv_data", "port_xmit_wait", "symbol_error", "link_downed")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def status_of(pid: int, name: str) -> int:
    """A number of /proc/PID/status, such as VmRSS in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name + ":"))


def memory_mib(pid: int) -> float:
    """What is resident."""
    return status_of(pid, "VmRSS") / 1024


def descriptors(pid: int) -> int:
    """Open files."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def scrape(port: int | str) -> bytes:
    """One page of metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as response:
        return bytes(response.read())


@dataclass
class BusyNode:
    """The node; programs are started on it and end with it."""

    fake: FakeNvml
    folder: Path
    collector: FakeCollector
    programs: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    @property
    def log(self) -> Path:
        """The trainer's own output."""
        return self.folder / "train.log"

    def train(self, step_seconds: float) -> None:
        """A process a GPU, one job of eight ranks; rank 0 writes a line each step."""
        for rank in range(GPUS):
            idle = [sys.executable, "-c", "import time; time.sleep(1e6)"]
            trainer = [sys.executable, str(TRAINER), "megatron", "--startup-seconds", "0",
                       "--step-seconds", str(step_seconds), "--control", str(self.folder / "control")]  # fmt: skip
            with (self.log if rank == 0 else self.folder / "quiet.log").open("ab") as sink:
                environment = {
                    "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(GPUS),
                    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
                }  # fmt: skip
                self._start(idle if rank else trainer, environment, sink)
        self.fake.write(
            f"gpus {GPUS}",
            *(f"proc {rank} {started.pid} 50000" for rank, started in enumerate(self.programs)),
        )

    def ports(self) -> Path:
        """A sysfs with eight InfiniBand ports."""
        root = self.folder / "sys"
        for index in range(8):
            folder = f"class/infiniband/mlx5_{index}/ports/1"
            for name in COUNTERS:
                write(root, f"{folder}/counters/{name}", "1000")
            write(root, f"{folder}/state", "4: ACTIVE")
            write(root, f"{folder}/rate", "400 Gb/sec (4X NDR)")
        return root

    def agent(self, interval_seconds: float) -> "subprocess.Popen[bytes]":
        """The agent, which pushes to the collector."""
        settings = {
            "INTERVAL_SECONDS": interval_seconds, "PORT": 0, "HOST": "127.0.0.1", "SDK_SOCKET": "off",
            "DATA_DIR": self.folder / "data", "SYS_ROOT": self.ports(), "COLLECTOR_URL": self.collector.url,
        }  # fmt: skip
        own = {f"FLOPWATCH_AGENT_{name}": str(value) for name, value in settings.items()}
        return self.program("agent", [sys.executable, "-m", "flopwatch_agent"], own)

    def program(
        self, name: str, command: list[str], environment: dict[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        """A program over the fake library, its output in ``NAME.log``."""
        with (self.folder / f"{name}.log").open("ab") as sink:
            # A real driver does not look at a file while a program waits for events.
            own = {**self.fake.environment, "FAKE_NVML_WAIT": "5", **(environment or {})}
            return self._start(command, own, sink)

    def metrics_port(self) -> int:
        """Where the agent serves its page; 0 before it does."""
        found = re.findall(r"metrics at [\d.]+:(\d+)", (self.folder / "agent.log").read_text())
        return int(found[-1]) if found else 0

    def follows_the_log(self) -> bool:
        """Whether steps of the busy log have come to the collector."""
        return bool(self.collector.all("steps"))

    def _start(
        self, command: list[str], environment: dict[str, str], sink: object
    ) -> "subprocess.Popen[bytes]":
        self.programs.append(
            subprocess.Popen(
                command,
                env={**os.environ, **environment},
                stdout=sink,
                stderr=sink,
                start_new_session=True,  # type: ignore[call-overload]
            )
        )
        return self.programs[-1]


@contextmanager
def busy_node(fake: FakeNvml, folder: Path, step_seconds: float = 0.5) -> Iterator[BusyNode]:
    """A node that trains, until the block ends."""
    node = BusyNode(fake, folder, FakeCollector(keeps_connections=True))
    try:
        node.train(step_seconds)
        yield node
    finally:
        for program in reversed(node.programs):
            program.terminate()
        for program in node.programs:
            try:
                program.wait(15)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait(5)
        node.collector.stop()
