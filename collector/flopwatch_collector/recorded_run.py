"""One run of a recording, as the Job page would show it: for comparing runs that no collector knows."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from flopwatch.answers.alert import RuleInfo, SilenceInfo
from flopwatch.query import AlertRow, Range
from flopwatch_collector.compute.runs import join
from flopwatch_collector.config import Settings
from flopwatch_collector.model import JobRecord
from flopwatch_collector.replay.recording import read
from flopwatch_collector.replay.scratch import NotSettled, Scratch
from flopwatch_collector.views.query import CollectorQuery

COPY = "batches.jsonl"
POINTS = 2000
FACTS = ("global_batch_size", "sequence_length", "tokens_per_step", "dtype", "parameter_count")


class NoSuchRun(Exception):
    """The recording has no such run, or several; the message says which it has."""


class NoAlerts:
    """Alerts of a recording: there are none."""

    generation = 0

    def active(self) -> tuple[AlertRow, ...]:
        """None."""
        return ()

    def history(self, start: float) -> tuple[AlertRow, ...]:  # noqa: ARG002 - the port's
        """None."""
        return ()

    def silences(self) -> tuple[SilenceInfo, ...]:
        """None."""
        return ()

    def rules(self, start: float) -> tuple[RuleInfo, ...]:  # noqa: ARG002 - the port's
        """None."""
        return ()


def recorded_run(path: Path, asked: str | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the Job page's answer, the facts that count) of a run in a recording; the only one where none is named.

    Raises:
        NoSuchRun: it is not there, there are several, or nothing can be read.
        OSError: the recording cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="flopwatch-compare-") as name:
        folder = Path(name)
        recording = read([str(path)], sys.stdin.buffer, folder / COPY, _quietly)
        end = recording.end_seconds
        if end is None or not recording.entries:
            raise NoSuchRun(f"{path} holds no batch that can be read")
        settings = Settings()
        with Scratch(folder, settings, now=end, simulated=recording.simulated) as scratch:
            scratch.feed(recording, _quietly)
            try:
                accounting = scratch.account(_quietly)
            except NotSettled as error:
                raise NoSuchRun(f"{path}: {error}") from error
            query = CollectorQuery(
                fleet=scratch.directory,
                store=scratch.store,
                accounting=accounting,
                alerts=NoAlerts(),
                settings=settings,
                clock=lambda: end,
            )
            state = scratch.directory.state()
            record = _chosen(path, list(state.jobs.values()), asked)
            begin = min((gpu.from_seconds for gpu in state.gpus.values()), default=end)
            job = query.job(record.job_id, Range(seconds=max(1.0, end - begin), points=POINTS))
            run = join(record.runs)
            facts = {fact: getattr(run, fact) for fact in FACTS}
            return msgspec.to_builtins(job), facts


def _quietly(_: str) -> None:
    """Progress that nobody reads."""


def _chosen(path: Path, jobs: list[JobRecord], asked: str | None) -> JobRecord:
    """The run that is named by its id, its id at the scheduler or its name, else the only one."""
    fitting = [job for job in jobs if asked in (None, job.job_id, job.scheduler_job_id, job.name)]
    if len(fitting) == 1:
        return fitting[0]
    known = ", ".join(sorted(job.name for job in jobs)[:10]) or "none"
    if not fitting:
        raise NoSuchRun(f"{path} has no run {asked!r}; it has {known}" if asked else f"{path} has no run")
    raise NoSuchRun(f"{path} has {len(fitting)} runs: name one as FILE#RUN; it has {known}")
