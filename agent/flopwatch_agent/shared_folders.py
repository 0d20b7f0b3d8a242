"""Which files of a folder that several runs may write are one job's own.

Such folders are named by the environment (``WANDB_DIR``, ``MLFLOW_TRACKING_URI``) or are the custom of a library
(``./runs``, ``./lightning_logs``). A TensorBoard file names the host and process that wrote it; of other files only
those of a run are taken whose folder is the only one that changes.
"""

import os
import re
from collections.abc import Callable, Iterable

from flopwatch_agent.log_file import FileIdentity, identity_of
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.source import JobProcess

EVENT_FILE = re.compile(
    r"events\.out\.tfevents\.\d+\.(?P<host>.+?)\.(?P<pid>\d+)\.\d+(?:\.v2)?(?:\.profile-empty)?$"
)
RUN_FOLDER = re.compile(r"(?P<run>.*?)/(?:files|logs|metrics|artifacts|attempt_\d+)/")
CUSTOM = ("wandb", "mlruns", "runs", "lightning_logs", "tb_logs", "nemo_experiments")
"""Folders that libraries make in the working folder when they are told no other."""
HOST_NAME = "root/etc/hostname"
"""Below a process in procfs: the name of the machine or container that it runs in."""
Found = tuple[str, os.stat_result]
"""A path below the folder, and its status."""


def shared_paths(variable: Callable[[str], str | None]) -> tuple[str, ...]:
    """The folders that a job's environment names, then those of custom; addresses of servers are left out."""
    wandb, mlflow = variable("WANDB_DIR"), variable("MLFLOW_TRACKING_URI")
    named = [f"{wandb}/wandb" if wandb else None, as_path(mlflow) if mlflow else None]
    named.append(variable("TENSORBOARD_LOGGING_DIR"))
    return tuple(dict.fromkeys(path for path in (*named, *CUSTOM) if path))


def as_path(text: str) -> str | None:
    """The path in an address of a file, or the text itself; None for an address of anything else."""
    path = text.removeprefix("file://").removeprefix("file:")
    return None if "://" in path or not path else path


def own_files(
    found: Iterable[Found], procfs: Procfs, processes: tuple[JobProcess, ...]
) -> frozenset[FileIdentity]:
    """Those of the files found in a shared folder that are the job's."""
    writers: set[tuple[str, str]] | None = None
    own: set[FileIdentity] = set()
    runs: dict[str, set[FileIdentity]] = {}
    for path, status in found:
        event = EVENT_FILE.search(path)
        if event is not None:
            writers = named_writers(procfs, processes) if writers is None else writers
            own |= {identity_of(status)} if (event["host"], event["pid"]) in writers else set()
        elif status.st_uid == processes[0].uid:
            runs.setdefault(run_folder(path), set()).add(identity_of(status))
    only = next(iter(runs.values())) if len(runs) == 1 else set()
    return frozenset(own | only)


def run_folder(path: str) -> str:
    """The folder of the run that a file belongs to."""
    match = RUN_FOLDER.match(path)
    return match["run"] if match is not None else path.rpartition("/")[0]


def named_writers(procfs: Procfs, processes: tuple[JobProcess, ...]) -> set[tuple[str, str]]:
    """Host names and process numbers under which a job's processes write, as they know themselves."""
    found = set()
    for process in processes:
        status = procfs.tree.text(f"{process.pid}/status") or ""
        line = next((row for row in status.splitlines() if row.startswith("NSpid:")), "")
        numbers = line.split()[1:] or [str(process.pid)]
        inside = (procfs.tree.text(f"{process.pid}/{HOST_NAME}") or "").strip()
        found |= {(host, number) for host in (os.uname().nodename, inside) if host for number in numbers}
    return found
