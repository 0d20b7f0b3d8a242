"""A real Slurm of one node for the end-to-end tests: its own munge, ports and folder; started and ended here."""

import os
import re
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.e2e.processes import Processes, until
from tests.ports import free_port

CONFIGURATION = Path(__file__).parents[1] / "fixtures" / "slurm" / "one_node.conf"
DAEMONS = {"munged": "munge", "slurmctld": "slurm-wlm", "slurmd": "slurm-wlm"}


@dataclass
class Slurm:
    """A running Slurm, told by its commands."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**without_slurm(), "SLURM_CONF": str(self.folder / "slurm.conf")}

    def ask(self, *command: str) -> str:
        done = subprocess.run(
            command,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def submit(self, script: str, *options: str) -> str:
        """Submit a batch script; returns its job id."""
        path = self.folder / f"job-{secrets.token_hex(4)}.sh"
        path.write_text("#!/bin/sh\n" + script)
        return self.ask("sbatch", "--parsable", *options, str(path))

    def state(self, job: str) -> str:
        found = re.search(r"JobState=(\S+)", self.ask("scontrol", "show", "job", job))
        return found[1] if found else ""


def without_slurm() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "SBATCH"))}


def require_daemons() -> None:
    """Skip where Slurm is not installed or cannot run; fail where everything must be tested."""
    missing = sorted(
        {package for name, package in DAEMONS.items() if shutil.which(name, path=search_path()) is None}
    )
    if not missing and os.geteuid() == 0:
        return
    reason = f"needs root and Debian's {', '.join(missing) or 'slurm-wlm'}"
    if os.environ.get("FLOPWATCH_TEST_EVERYTHING") == "1" and missing:
        pytest.fail(reason)
    pytest.skip(reason)


def search_path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


@contextmanager
def running(processes: Processes, folder: Path) -> Iterator[Slurm]:
    """Munge, controller and node daemon, until the block ends."""
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True, mode=0o755)
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    values = {"DIR": str(folder), "HOST": host, "CONTROLLER": str(free_port()), "DAEMON": str(free_port())}
    text = CONFIGURATION.read_text().partition("\n")[2]
    (folder / "slurm.conf").write_text(re.sub("|".join(values), lambda match: values[match[0]], text))
    slurm = Slurm(folder)
    munge = [
        f"--{name}={folder / f'munge.{name}'}" for name in ("socket", "pid-file", "log-file", "seed-file")
    ]
    start(processes, slurm, "munged", "--foreground", "--force", f"--key-file={key}", *munge)
    until((folder / "munge.socket").exists, 10, "munge's socket")
    start(processes, slurm, "slurmctld", "-D", "-f", str(folder / "slurm.conf"))
    start(processes, slurm, "slurmd", "-D", "-f", str(folder / "slurm.conf"), "-N", host)
    until(lambda: is_idle(slurm), 20, "the node is idle")
    try:
        yield slurm
    finally:
        slurm.ask("scancel", "--full", "--signal=KILL", "--user=root")
        until(lambda: not slurm.ask("squeue", "--noheader", "--states=running,completing"), 60, "no job runs")


def start(processes: Processes, slurm: Slurm, name: str, *arguments: str) -> None:
    program = shutil.which(name, path=search_path())
    assert program is not None
    processes.start(name, program, *arguments, env={"SLURM_CONF": str(slurm.folder / "slurm.conf")})


def is_idle(slurm: Slurm) -> bool:
    done = subprocess.run(
        ["sinfo", "--noheader", "--format=%T"],
        env=slurm.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() == "idle"
