"""The model's shape from a file: one that the command line names, by path or by name, or one beside the output.

``config.json``, ``params.json`` or ``config.yaml``, what a tracker keeps of the settings, or what its owner declared.
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
from flopwatch_agent.params_json import is_params, params_shape
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.settings_shape import settings_shape
from flopwatch_agent.small_files import regular_bytes
from flopwatch_agent.source import ObservedJob
from flopwatch_agent.tracker_runs import tracker_settings
from flopwatch_agent.trainers.settings_text import block_mapping

CHECKPOINT = re.compile(r"checkpoint-(\d+)$")
FIELD = re.compile(r"[\w.]{1,40}")
START_SLACK_SECONDS = 2.0
TRACKER_SECONDS = 20.0
TRACKERS = "\0trackers"
"""Stands for them among the paths that are done with; no path holds a zero."""
FILES = ("config.json", "params.json", "model_config.yaml", "config.yaml")
"""What trainers write into the output folder, the more telling first."""
NO_SHAPE = "{origin} does not give the model's shape: {why}"
UNUSABLE = "FLOPWATCH_MODEL is neither a readable config.json nor a shape that is understood: {why}"


class ConfigReader:
    """Reads each job's configuration once it is there, for the job's own user."""

    def __init__(self, procfs: Procfs) -> None:
        self._procfs = procfs
        self._done: dict[str, set[str]] = {}
        self._findings: list[Finding] = []
        self._looked_at: dict[str, float] = {}
        self._doubts: dict[tuple[str, str], str] = {}

    def facts(self, job: ObservedJob, now: float) -> tuple[RunFacts, ...]:
        """What became known of a job's model since the last call."""
        done = self._done.setdefault(job.sighting.ref, set())
        found: list[RunFacts | None] = []
        if job.declared_model is not None and job.declared_model not in done:
            done.add(job.declared_model)
            found.append(self._declared(job, job.declared_model))
        found.extend(self._of_files(job, done))
        found.extend(self._of_trackers(job, now))
        if job.declared_parameters is not None and "parameters" not in done:
            done.add("parameters")
            count = job.declared_parameters
            found.append(RunFacts(source="declared", origin="FLOPWATCH_PARAMETERS", parameter_count=count))
        return tuple(item for item in found if item is not None)

    def _of_files(self, job: ObservedJob, done: set[str]) -> Iterator[RunFacts]:
        """The shape in the first usable file of each path that the command line names and that gave none yet."""
        for text in dict.fromkeys((*job.config_paths, *job.output_paths)):
            if text in done:
                continue
            places = self._named(job, text) if text in job.config_paths else self._beside(job, text)
            shapes = ((origin, self._shape(job, origin, path)) for origin, path in places)
            origin, shape = next((item for item in shapes if item[1] is not None), ("", None))
            if shape is not None:
                done.add(text)
                yield RunFacts(source="file", origin=origin, shape=shape)

    def _of_trackers(self, job: ObservedJob, now: float) -> Iterator[RunFacts]:
        """The shape in the settings that trackers keep: looked for now and then, until one has it."""
        ref = job.sighting.ref
        done, looked = self._done[ref], self._looked_at.get(ref)
        if TRACKERS in done or not job.processes:
            return
        if looked is not None and 0 <= now - looked < TRACKER_SECONDS:
            return
        self._looked_at[ref] = now
        for origin, settings in tracker_settings(self._procfs, job):
            try:
                shape = settings_shape(settings)
            except ValueError as error:
                self._doubt(ref, origin, str(error))
                continue
            if shape is not None:
                done.add(TRACKERS)
                yield RunFacts(source="file", origin=origin, shape=shape)

    def _doubt(self, ref: str, origin: str, why: str) -> None:
        """Tell why a file gives no shape, when a second look at it says the same: it may have been half written."""
        key = (ref, origin)
        if self._doubts.get(key) == why:
            text = NO_SHAPE.format(origin=origin, why=why[:200])
            finding = Finding(job=ref, code="no_shape", text=text)
            if finding not in self._findings:
                self._findings.append(finding)
        self._doubts[key] = why

    def findings(self, job: ObservedJob) -> tuple[Finding, ...]:
        """What was declared for a job and cannot be used."""
        return tuple(item for item in self._findings if item.job == job.sighting.ref)

    def forget(self, ref: str) -> None:
        """Drop what is kept of a job that ended."""
        self._done.pop(ref, None)
        self._looked_at.pop(ref, None)
        self._doubts = {key: why for key, why in self._doubts.items() if key[0] != ref}
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
            for name in FILES if path.way.is_dir() else ():
                yield name, path.below(name)
            if not path.way.is_dir():
                yield file_kind(path), path
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
            for name in FILES:
                config = path.below(name)
                try:
                    changed = config.way.lstat().st_mtime
                except OSError:
                    continue
                if changed >= start - START_SLACK_SECONDS:
                    yield f"{name} of the output folder", config

    def _shape(self, job: ObservedJob, origin: str, path: JobPath) -> dict[str, Any] | None:
        try:
            config = self._read(job, path)
        except ValueError:
            return None
        try:
            return None if config is None else file_shape(config, is_yaml=is_yaml(path))
        except ValueError as error:
            self._doubt(job.sighting.ref, origin, str(error))
            return None

    def _read(self, job: ObservedJob, path: JobPath) -> Mapping[str, Any] | None:
        """The settings in a file; None when there is none that the job's own user may read.

        Raises:
            ValueError: the file is no JSON object, or is too large to be a model's configuration.
        """
        if not path.may_be_read_by(job.processes[0]):
            return None
        content = regular_bytes(path.way)
        if content is None:
            return None
        if is_yaml(path):
            return block_mapping(content.decode("utf-8", "replace"))
        try:
            config = json.loads(content)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
        if not isinstance(config, dict):
            raise ValueError("no JSON object")  # noqa: TRY004 - as of any other unusable file
        return config


def is_yaml(path: JobPath) -> bool:
    """Whether a file's name says that it is YAML."""
    return path.way.suffix in (".yaml", ".yml")


def file_kind(path: JobPath) -> str:
    """What to call a file that the command line names, without its own name."""
    if is_yaml(path):
        return "config.yaml"
    return "params.json" if path.way.name == "params.json" else "config.json"


def file_shape(config: Mapping[str, Any], *, is_yaml: bool) -> dict[str, Any] | None:
    """The shape in a file; None where it is not about a model.

    Raises:
        ValueError: it is about one and does not tell all of its shape, or it is not understood.
    """
    if is_yaml:
        return settings_shape(config)
    return shape_of(config) if "model_type" in config or is_params(config) else None


def in_folder(path: JobPath) -> JobPath:
    """The file itself, or the ``config.json`` of a folder, or its ``params.json`` where it has only that."""
    if not path.way.is_dir():
        return path
    config, params = path.below("config.json"), path.below("params.json")
    return params if params.way.is_file() and not config.way.exists() else config


def newest_checkpoint(folder: JobPath) -> tuple[JobPath, ...]:
    """The checkpoint of the highest step in an output folder, if there is one."""
    try:
        names = [match for item in folder.way.iterdir() if (match := CHECKPOINT.fullmatch(item.name))]
    except OSError:
        return ()
    newest = max(names, key=lambda match: int(match[1]), default=None)
    return () if newest is None else (folder.below(newest[0]),)


def shape_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The shape in a Hugging Face configuration, by Meta's names, or in a shape's own form.

    Raises:
        ValueError: it is not understood.
    """
    if is_params(config) and "model_type" not in config:
        return params_shape(config)
    try:
        shape = ModelShape.from_hf_config(config) if "model_type" in config else ModelShape.from_dict(config)
    except ShapeError as error:
        field = error.field if FIELD.fullmatch(error.field) else "a field"
        raise ValueError(
            f"{field} cannot be used; allowed: {error.allowed}"
        ) from error  # its value stays here
    return shape.to_dict()
