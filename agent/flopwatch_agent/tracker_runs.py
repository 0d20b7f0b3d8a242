"""What trackers keep of a job's settings on its disk: W&B's ``files/config.yaml``, MLflow's ``params`` folder."""

import itertools
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from flopwatch_agent.job_paths import JobPath, job_path
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.shared_folders import as_path
from flopwatch_agent.small_files import regular_bytes
from flopwatch_agent.source import ObservedJob
from flopwatch_agent.trainers.settings_text import block_mapping, list_or_scalar

START_SLACK_SECONDS = 2.0
MAX_ENTRIES = 1000
MAX_VALUE_BYTES = 8192
WANDB_RUN = re.compile(r"(?:offline-)?run-[\w-]{1,200}")
MLFLOW_EXPERIMENT = re.compile(r"\d{1,20}")
MLFLOW_RUN = re.compile(r"[0-9a-f]{32}")
PATH = "_name_or_path"


def tracker_settings(procfs: Procfs, job: ObservedJob) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The settings of the one run in each folder of trackers that began with the job, with the words for them."""
    outputs = (name for path in job.output_paths for name in (f"{path}/wandb", f"{path}/mlruns"))
    texts = dict.fromkeys(path for text in (*job.shared_paths, *outputs) if (path := as_path(text)))
    for text in texts:
        folder = job_path(procfs, job.processes[0], text)
        if folder is None:
            continue
        runs = [path for path in wandb_configs(folder) if is_of_job(path, job)]
        if len(runs) == 1 and (settings := wandb_settings(runs[0], job)) is not None:
            yield "files/config.yaml of the W&B run", settings
        runs = [path for path in mlflow_params(folder) if is_of_job(path, job)]
        if len(runs) == 1:
            yield "params of the MLflow run", ParamsFolder(runs[0], job)


def wandb_configs(folder: JobPath) -> Iterator[JobPath]:
    """Where each W&B run of a folder keeps its configuration."""
    for name in names_in(folder.way, WANDB_RUN):
        yield folder.below(name).below("files").below("config.yaml")


def mlflow_params(folder: JobPath) -> Iterator[JobPath]:
    """The parameters of each run in MLflow's file store."""
    left = MAX_ENTRIES
    for experiment in names_in(folder.way, MLFLOW_EXPERIMENT):
        runs = names_in((place := folder.below(experiment)).way, MLFLOW_RUN)[:left]
        left -= len(runs)
        for run in runs:
            yield place.below(run).below("params")


def names_in(folder: Path, form: re.Pattern[str]) -> list[str]:
    """The names of a folder's entries that have a form; none where it cannot be listed."""
    try:
        names = [item.name for item in itertools.islice(folder.iterdir(), MAX_ENTRIES)]
    except OSError:
        return []
    return sorted(name for name in names if form.fullmatch(name))


def is_of_job(path: JobPath, job: ObservedJob) -> bool:
    """Whether a file or folder is the job's user's, changed since the job began, and is no link."""
    start = job.sighting.start_time_seconds or job.processes[0].start_time_seconds
    try:
        status = path.way.lstat()
    except OSError:
        return False
    kind = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return kind and status.st_uid == job.processes[0].uid and status.st_mtime >= start - START_SLACK_SECONDS


def wandb_settings(path: JobPath, job: ObservedJob) -> dict[str, Any] | None:
    """The values in W&B's configuration, which has one mapping with ``desc`` and ``value`` a name; None without one.

    One that is larger than settings can be is none.
    """
    try:
        content = regular_bytes(path.way) if path.may_be_read_by(job.processes[0]) else None
    except ValueError:
        return None
    if content is None:
        return None
    entries = block_mapping(content.decode("utf-8", "replace"))
    return {
        name: entry.get("value")
        for name, entry in entries.items()
        if isinstance(entry, dict) and name != "_wandb"
    }


class ParamsFolder(Mapping[str, Any]):
    """Parameters by name: a file is opened when its name is asked for, and no other ever is."""

    def __init__(self, folder: JobPath, job: ObservedJob) -> None:
        self._folder, self._process = folder, job.processes[0]
        self._names = names_in(folder.way, re.compile(r"[\w.-]{1,200}"))

    def __getitem__(self, name: str) -> Any:
        if name not in self._names or name == PATH:
            raise KeyError(name)
        path = self._folder.below(name)
        content = regular_bytes(path.way) if path.may_be_read_by(self._process) else None
        if content is None or len(content) > MAX_VALUE_BYTES:
            raise KeyError(name)
        return list_or_scalar(content.decode("utf-8", "replace"))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
