"""The model's shape from a ``config.json``: that the command line names, by path or by name, or beside the output.

Or from what its owner declared.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from flopwatch.blocks import ShapeError
from flopwatch.flops import ModelShape
from flopwatch.wire import Finding, RunFacts
from flopwatch_agent.hub_cache import cached_config, is_model_name
from flopwatch_agent.job_paths import JobPath, job_path
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.small_files import regular_bytes
from flopwatch_agent.source import ObservedJob

CHECKPOINT = re.compile(r"checkpoint-(\d+)$")
FIELD = re.compile(r"[\w.]{1,40}")
START_SLACK_SECONDS = 2.0
UNUSABLE = "FLOPWATCH_MODEL is neither a readable config.json nor a shape that is understood: {why}"


class ConfigReader:
    """Reads each job's configuration once it is there, for the job's own user."""

    def __init__(self, procfs: Procfs) -> None:
        self._procfs = procfs
        self._done: dict[str, set[str]] = {}
        self._findings: list[Finding] = []

    def facts(self, job: ObservedJob) -> tuple[RunFacts, ...]:
        """What became known of a job's model since the last call."""
        done = self._done.setdefault(job.sighting.ref, set())
        found = []
        if job.declared_model is not None and job.declared_model not in done:
            done.add(job.declared_model)
            found.append(self._declared(job, job.declared_model))
        for text in (*job.config_paths, *job.output_paths):
            if text in done:
                continue
            places = self._named(job, text) if text in job.config_paths else self._beside(job, text)
            for origin, path in places:
                shape = self._shape(job, path)
                if shape is not None and text not in done:
                    done.add(text)
                    found.append(RunFacts(source="file", origin=origin, shape=shape))
        if job.declared_parameters is not None and "parameters" not in done:
            done.add("parameters")
            count = job.declared_parameters
            found.append(RunFacts(source="declared", origin="FLOPWATCH_PARAMETERS", parameter_count=count))
        return tuple(item for item in found if item is not None)

    def findings(self, job: ObservedJob) -> tuple[Finding, ...]:
        """What was declared for a job and cannot be used."""
        return tuple(item for item in self._findings if item.job == job.sighting.ref)

    def forget(self, ref: str) -> None:
        """Drop what is kept of a job that ended."""
        self._done.pop(ref, None)
        self._findings = [item for item in self._findings if item.job != ref]

    def _declared(self, job: ObservedJob, text: str) -> RunFacts | None:
        origin = "FLOPWATCH_MODEL"
        try:
            if text.lstrip().startswith("{"):
                shape = shape_of(json.loads(text))
            else:
                path = job_path(self._procfs, job.processes[0], text)
                shape = shape_of((None if path is None else self._read(job, in_folder(path))) or {})
        except ValueError as error:
            why = UNUSABLE.format(why=str(error)[:200])
            self._findings.append(Finding(job=job.sighting.ref, code="bad_declaration", text=why))
            return None
        return RunFacts(source="declared", origin=origin, shape=shape)

    def _named(self, job: ObservedJob, text: str) -> Iterator[tuple[str, JobPath]]:
        """Where the configuration of a model that the command line names may be, with the words for it."""
        path = job_path(self._procfs, job.processes[0], text)
        if path is not None:
            yield "config.json", in_folder(path)
        for cache in job.model_caches if is_model_name(text) else ():
            folder = job_path(self._procfs, job.processes[0], cache)
            cached = None if folder is None else cached_config(folder, text)
            if cached is not None:
                yield "config.json of the downloaded model", cached

    def _beside(self, job: ObservedJob, text: str) -> Iterator[tuple[str, JobPath]]:
        """The configuration that a trainer writes into its output folder or newest checkpoint, of this run only."""
        folder = job_path(self._procfs, job.processes[0], text)
        if folder is None:
            return
        start = job.sighting.start_time_seconds or job.processes[0].start_time_seconds
        for path in (folder, *newest_checkpoint(folder)):
            config = path.below("config.json")
            try:
                changed = config.way.lstat().st_mtime
            except OSError:
                continue
            if changed >= start - START_SLACK_SECONDS:
                yield "config.json of the output folder", config

    def _shape(self, job: ObservedJob, path: JobPath) -> dict[str, Any] | None:
        try:
            config = self._read(job, path)
            return None if config is None or "model_type" not in config else shape_of(config)
        except ValueError:
            return None

    def _read(self, job: ObservedJob, path: JobPath) -> Mapping[str, Any] | None:
        """The JSON object in a file; None when there is none that the job's own user may read.

        Raises:
            ValueError: the file is no JSON object, or is too large to be a model's configuration.
        """
        if not path.may_be_read_by(job.processes[0]):
            return None
        content = regular_bytes(path.way)
        config = None if content is None else json.loads(content)
        if config is not None and not isinstance(config, dict):
            raise ValueError("no JSON object")
        return config


def in_folder(path: JobPath) -> JobPath:
    """The file itself, or the ``config.json`` of a folder."""
    return path.below("config.json") if path.way.is_dir() else path


def newest_checkpoint(folder: JobPath) -> tuple[JobPath, ...]:
    """The checkpoint of the highest step in an output folder, if there is one."""
    try:
        names = [match for item in folder.way.iterdir() if (match := CHECKPOINT.fullmatch(item.name))]
    except OSError:
        return ()
    newest = max(names, key=lambda match: int(match[1]), default=None)
    return () if newest is None else (folder.below(newest[0]),)


def shape_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The shape in a Hugging Face configuration, or in a shape's own form.

    Raises:
        ValueError: it is not understood.
    """
    try:
        shape = ModelShape.from_hf_config(config) if "model_type" in config else ModelShape.from_dict(config)
    except ShapeError as error:
        field = error.field if FIELD.fullmatch(error.field) else "a field"
        raise ValueError(
            f"{field} cannot be used; allowed: {error.allowed}"
        ) from error  # its value stays here
    return shape.to_dict()
