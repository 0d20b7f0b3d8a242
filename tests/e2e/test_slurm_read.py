"""A real Slurm with four GPUs, read by the collector: jobs, queue, a drain, an end."""

import os
import re
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.processes import Processes, until
from tests.ports import free_port

from flopwatch_collector.schedulers.queue_depth import snapshots
from flopwatch_collector.schedulers.reading import Reading, ScheduledJob
from flopwatch_collector.schedulers.slurm import Slurm
from flopwatch_collector.schedulers.slurm_commands import SlurmCommands

CONFIGURATION = """
ClusterName=test
SlurmctldHost=HOST(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=DIR/munge.socket
StateSaveLocation=DIR/state
SlurmdSpoolDir=DIR/spool
SlurmctldPidFile=DIR/slurmctld.pid
SlurmdPidFile=DIR/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
GresTypes=gpu
ReturnToService=2
SlurmctldPort=CONTROLLER
SlurmdPort=DAEMON
NodeName=HOST NodeAddr=127.0.0.1 CPUs=16 RealMemory=1000 Gres=gpu:h100:4 State=UNKNOWN
PartitionName=main Nodes=HOST Default=YES MaxTime=INFINITE State=UP
"""
SEARCH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
HOST = socket.gethostname().partition(".")[0]


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        known = {
            name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH"))
        }
        self.environ = {**known, "SLURM_CONF": str(folder / "slurm.conf")}
        self.slurm = Slurm(door=SlurmCommands(environ=self.environ), accounting=False)

    def ask(self, *command: str) -> str:
        done = subprocess.run(
            command,
            env=self.environ,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def submit(self, *options: str) -> str:
        return self.ask("sbatch", "--parsable", "--output=/dev/null", *options, "--wrap", "sleep 120")

    def read(self) -> Reading:
        return self.slurm.read(time.time())

    def job(self, number: str) -> ScheduledJob:
        return next(job for job in self.read().jobs if job.scheduler_job_id == number)


@pytest.fixture
def cluster(processes: Processes, tmp_path: Path) -> Iterator[Cluster]:
    missing = [name for name in ("munged", "slurmctld", "slurmd") if shutil.which(name, path=SEARCH) is None]
    if missing and os.environ.get("FLOPWATCH_TEST_EVERYTHING") == "1":
        pytest.fail("needs Debian's slurm-wlm and munge")
    if missing or os.geteuid() != 0:
        pytest.skip("needs root and Debian's slurm-wlm and munge")
    folder = tmp_path / "slurm"
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    values = {"DIR": str(folder), "HOST": HOST, "CONTROLLER": str(free_port()), "DAEMON": str(free_port())}
    text = re.sub("|".join(values), lambda match: values[match[0]], CONFIGURATION)
    (folder / "slurm.conf").write_text(text)
    devices = [folder / f"gpu{number}" for number in range(4)]
    for device in devices:
        device.touch()
    (folder / "gres.conf").write_text("".join(f"Name=gpu Type=h100 File={device}\n" for device in devices))
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    made = Cluster(folder)
    start(processes, made)
    yield made
    made.ask("scancel", "--full", "--signal=KILL", "--user=root")
    until(lambda: not made.ask("squeue", "--noheader", "--states=running"), 20, "no job runs")


def start(processes: Processes, made: Cluster) -> None:
    folder, env = made.folder, {"SLURM_CONF": made.environ["SLURM_CONF"]}
    files = [
        f"--{name}={folder / f'munge.{name}'}" for name in ("socket", "pid-file", "log-file", "seed-file")
    ]
    commands = {
        "munged": ("--foreground", "--force", f"--key-file={folder / 'munge.key'}", *files),
        "slurmctld": ("-D", "-f", env["SLURM_CONF"]),
        "slurmd": ("-D", "-f", env["SLURM_CONF"], "-N", HOST),
    }
    for name, arguments in commands.items():
        processes.start(name, str(shutil.which(name, path=SEARCH)), *arguments, env=env)
        if name == "munged":
            until((folder / "munge.socket").exists, 10, "munge's socket")
    until(lambda: is_idle(made), 30, "the node is idle")


def is_idle(made: Cluster) -> bool:
    command = ("sinfo", "--noheader", "--format=%T")
    done = subprocess.run(command, env=made.environ, capture_output=True, text=True, check=False)
    return done.stdout.strip() == "idle"


def test_a_real_slurm_is_read(cluster: Cluster) -> None:
    first = cluster.submit("--gres=gpu:h100:2", "--job-name=train")
    until(lambda: cluster.job(first).state == "running", 20, "the job runs")
    second = cluster.submit("--gres=gpu:4")
    held = cluster.submit("--gres=gpu:1", "--array=0-2", "--hold")
    reading = cluster.read()
    cluster.ask("scontrol", "update", f"nodename={HOST}", "state=drain", "reason=bad NIC")
    (drained,) = cluster.read().nodes or ()
    cluster.ask("scancel", first)
    # While Slurm still cleans up, this version says only that the job completes.
    until(lambda: cluster.job(first).exit_reason, 20, "the job has ended")
    ended = cluster.job(first)

    jobs = {job.scheduler_job_id: job for job in reading.jobs}
    (share,) = jobs[first].allocations
    (node,) = reading.nodes or ()
    told = {each.partition: each for each in snapshots(reading.jobs, (), 0.0)}
    assert (share.node, share.gpu_count, share.indices) == (HOST, 2, (0, 1))
    assert (jobs[first].name, jobs[first].user, jobs[first].end_seconds) == ("train", "root", None)
    assert (jobs[second].state, jobs[second].requested_gpus) == ("pending", 4)
    assert (jobs[held].waiting_jobs, jobs[held].reason) == (3, "JobHeldUser")
    assert (told["main"].pending_jobs, told["main"].pending_gpus, told["main"].largest_request_gpus) == (
        1,
        4,
        4,
    )
    assert (node.gpu_count, node.trouble) == (4, None)
    assert (drained.trouble, drained.trouble_text) == ("drain", "bad NIC")
    assert drained.trouble_since_seconds is not None
    assert (ended.exit_reason, ended.end_seconds is not None) == ("cancelled", True)
