"""The model's shape from a ``config.json`` that the job's command line names, or from what its owner declared."""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flopwatch.blocks import ShapeError
from flopwatch.flops import ModelShape
from flopwatch.wire import Finding, RunFacts
from flopwatch_agent.job_paths import job_path
from flopwatch_agent.procfs import Procfs
from flopwatch_agent.source import ObservedJob

MAX_CONFIG_BYTES = 1 << 20
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
        for path in job.config_paths:
            if path not in done and (shape := self._shape(job, path)) is not None:
                done.add(path)
                found.append(RunFacts(source="file", origin="config.json", shape=shape))
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
                shape = shape_of(self._read(job, text) or {})
        except ValueError as error:
            why = UNUSABLE.format(why=str(error)[:200])
            self._findings.append(Finding(job=job.sighting.ref, code="bad_declaration", text=why))
            return None
        return RunFacts(source="declared", origin=origin, shape=shape)

    def _shape(self, job: ObservedJob, path: str) -> dict[str, Any] | None:
        try:
            config = self._read(job, path)
            return None if config is None or "model_type" not in config else shape_of(config)
        except ValueError:
            return None

    def _read(self, job: ObservedJob, text: str) -> Mapping[str, Any] | None:
        """The JSON object in a file, or in ``config.json`` of a folder; None when there is none to be read.

        Raises:
            ValueError: the file is no JSON object, or is too large to be a model's configuration.
        """
        process = job.processes[0]
        path = job_path(self._procfs, process, text)
        if path is not None and path.way.is_dir():
            path = path.below("config.json")
        if path is None or not path.may_be_read_by(process):
            return None
        content = regular_bytes(path.way)
        config = None if content is None else json.loads(content)
        if config is not None and not isinstance(config, dict):
            raise ValueError("no JSON object")
        return config


def shape_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The shape in a Hugging Face configuration, or in a shape's own form.

    Raises:
        ValueError: it is not understood.
    """
    try:
        shape = ModelShape.from_hf_config(config) if "model_type" in config else ModelShape.from_dict(config)
    except ShapeError as error:
        raise ValueError(str(error)) from error
    return shape.to_dict()


def regular_bytes(path: Path) -> bytes | None:
    """A regular file's content; None for anything else.

    Raises:
        ValueError: it is larger than a model's configuration can be.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        content = os.read(descriptor, MAX_CONFIG_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if len(content) > MAX_CONFIG_BYTES:
        raise ValueError("larger than 1 MiB")
    return content
