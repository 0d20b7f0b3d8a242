"""From a process to the job it belongs to: pure rules over cgroup path, environment and command line.

The kernel's word (cgroup) comes first, the user's (environment) after it, for a job cannot forge the first.
"""

import re
from dataclasses import dataclass
from typing import Literal

from flopwatch.wire import JobKind
from flopwatch_agent.procfs import Process

SLURM_PATH = re.compile(r"(?:^|/)job_(\d+)(?:/step_([^/\s]+))?", re.MULTILINE)
SLURM_SLUID = re.compile(r"slurmstepd\.scope/(s[0-9A-Z]{10,})", re.IGNORECASE)
POD = re.compile(
    r"pod([0-9a-f]{8}[-_]?[0-9a-f]{4}[-_]?[0-9a-f]{4}[-_]?[0-9a-f]{4}[-_]?[0-9a-f]{12})(?:[./\s]|$)"
)
SAFE_NAME = re.compile(r"[\w.+-]{1,64}")
LAUNCHERS = (
    "torchrun", "torch.distributed.run", "torch.distributed.launch", "torch/distributed/run.py", "accelerate",
    "deepspeed", "mpirun", "mpiexec", "orterun", "prterun", "horovodrun", "colossalai", "composer", "llamafactory-cli",
    "axolotl", "litgpt", "torchpippy", "swift", "xtuner", "tune",
)  # fmt: skip
SPAWNED = ("multiprocessing.spawn", "multiprocessing.forkserver", "--multiprocessing-fork")
KINDS: tuple[tuple[str, JobKind], ...] = (
    ("ipykernel_launcher", "interactive"), ("ipykernel", "interactive"), ("jupyter-lab", "interactive"),
    ("jupyter-notebook", "interactive"), ("jupyter", "interactive"), ("vllm", "inference"), ("sglang", "inference"),
    ("text-generation-launcher", "inference"), ("tritonserver", "inference"), ("trtllm-serve", "inference"),
    ("lm_eval", "eval"), ("lm-eval", "eval"),
)  # fmt: skip
CONFIG_OPTIONS = (
    "--model_name_or_path",
    "--model-name-or-path",
    "--model",
    "--config_name",
    "--config",
    "--hf-config-path",
)
OUTPUT_OPTIONS = frozenset(
    (
        "--output_dir", "--output-dir", "--output", "--out_dir", "--out-dir", "--save_dir", "--log_dir", "--log-dir",
        "--logging_dir", "--logging-dir", "--tensorboard_dir", "--tensorboard-dir", "--tensorboard-log-dir",
        "--default_root_dir", "--results_dir", "--results-dir", "--exp_dir", "--run_dir", "--metrics_dir",
        "--metrics-dir", "--wandb_dir", "--wandb-dir", "--wandb-save-dir", "--tracking_uri", "--mlflow_tracking_uri",
        "--mlflow-tracking-uri", "trainer.default_root_dir", "exp_manager.exp_dir", "exp_manager.explicit_log_dir",
        "hydra.run.dir",
    )
)  # fmt: skip
"""Arguments that name a folder of the run's own files."""
METRICS_OPTIONS = frozenset(f"--{head}metrics{mark}server.port" for head in ("", "trainer.") for mark in "_-")
MAX_PORT = 65_536
INTERPRETER = re.compile(r"(?:pt_main_thread|python[\d.]*|pypy[\d.]*)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class JobIdentity:
    """What the collector needs to make a job's key; ``key`` groups processes on this node."""

    key: str
    scheduler: Literal["slurm", "kubernetes", "ray", "none"]
    scheduler_job_id: str | None = None
    master: str | None = None


def slurm_job(cgroup: str) -> str | None:
    """Slurm's job id in a cgroup path of version 1 or 2, else the SLUID that newer releases name the path by."""
    if "slurm" not in cgroup:
        return None
    match = SLURM_PATH.search(cgroup)
    if match is not None:
        return match.group(1)
    match = SLURM_SLUID.search(cgroup)
    return None if match is None else match.group(1)


def pod_uid(cgroup: str) -> str | None:
    """The UID of the Kubernetes pod in a cgroup path; static pods have one without dashes."""
    if "kubepods" not in cgroup:
        return None
    match = POD.search(cgroup)
    return None if match is None else match.group(1).replace("_", "-")


def rendezvous(process: Process) -> str | None:
    """``MASTER_ADDR:MASTER_PORT`` of a process that has both."""
    address, port = process.variable("MASTER_ADDR"), process.variable("MASTER_PORT")
    return f"{address}:{port}" if address and port else None


def identity(process: Process, top: Process) -> JobIdentity:
    """The job of a process; ``top`` is the process that started it."""
    job = slurm_job(process.cgroup)
    claimed = process.variable("SLURM_JOB_ID", "SLURM_JOBID")
    if job is not None and not job.isdigit() and claimed is not None:
        job = claimed
    if job is None and pod_uid(process.cgroup) is None:
        job = claimed
    master = rendezvous(process)
    if job is not None:
        return JobIdentity(key=f"slurm:{job}", scheduler="slurm", scheduler_job_id=job, master=master)
    pod = pod_uid(process.cgroup)
    if pod is not None:
        return JobIdentity(
            key=f"kubernetes:{pod}", scheduler="kubernetes", scheduler_job_id=pod, master=master
        )
    if master is not None:
        world = process.variable("WORLD_SIZE") or "?"
        return JobIdentity(key=f"rendezvous:{process.uid}:{master}:{world}", scheduler="none", master=master)
    return JobIdentity(key=f"process:{top.pid}:{top.start_ticks}", scheduler="none")


def started_by_parent(process: Process, parent: Process) -> bool:
    """Whether the parent is the launcher, or the training script itself, that this worker came from."""
    if parent.uid != process.uid or parent.pid <= 1:
        return False
    if is_launcher(parent.argv) or (process.argv == parent.argv and process.argv != ()):
        return True
    return any(mark in part for part in process.argv for mark in SPAWNED)


def is_launcher(argv: tuple[str, ...]) -> bool:
    """Whether a command line is that of a launcher of training workers."""
    for part in argv[:4]:
        name = part.rsplit("/", 1)[-1].removesuffix(".py")
        if name in LAUNCHERS or any(mark in part for mark in LAUNCHERS if "." in mark or "/" in mark):
            return True
    return False


def program_name(argv: tuple[str, ...]) -> str | None:
    """The script or module that a command line runs, without its folder; None when it cannot be told safely."""
    words = list(argv)
    for position, word in enumerate(words):
        if word.endswith(".py") and not is_launcher((word,)):
            return safe_name(word.rsplit("/", 1)[-1])
        if word == "-m" and position + 1 < len(words) and not is_launcher((words[position + 1],)):
            return safe_name(words[position + 1])
        if word in ("-c", "--"):
            break
    head = words[0].rsplit("/", 1)[-1] if words else ""
    return None if INTERPRETER.match(head) else safe_name(head)


def safe_name(text: str) -> str | None:
    """The text when it is a plain name, else None: options and secrets never leave the node."""
    return text if SAFE_NAME.fullmatch(text) else None


def job_kind(process: Process) -> JobKind:
    """The kind of a job as far as the first words of its command line say it."""
    heads = {
        part for word in process.argv[:4] for part in (word, word.rsplit("/", 1)[-1], word.split(".", 1)[0])
    }
    return next((kind for mark, kind in KINDS if mark in heads), "unknown")


def config_paths(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Folders or files that the command line names as a model's configuration."""
    return values_of(argv, frozenset(CONFIG_OPTIONS))


def output_paths(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Folders that the command line names for the run's own files; addresses of servers are left out."""
    return tuple(
        path for path in values_of(argv, OUTPUT_OPTIONS) if "://" not in path.removeprefix("file://")
    )


def metrics_ports(argv: tuple[str, ...]) -> tuple[int, ...]:
    """Ports that a command line names for the trainer's Prometheus endpoint, as prime-rl does."""
    found = values_of(argv, METRICS_OPTIONS)
    return tuple(int(text) for text in found if text.isdigit() and 0 < int(text) < MAX_PORT)


def values_of(argv: tuple[str, ...], options: frozenset[str]) -> tuple[str, ...]:
    """The values of some options, as ``--option value`` or ``--option=value``."""
    found = []
    for position, word in enumerate(argv):
        option, separator, value = word.partition("=")
        if option in options:
            target = value if separator else argv[position + 1] if position + 1 < len(argv) else ""
            if target and not target.startswith("-"):
                found.append(target)
    return tuple(found)
