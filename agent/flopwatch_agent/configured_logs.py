"""Logs that the settings name: each goes to the job that has it open, else to its owner's only job, else it is one.

A log without any process here is how steps are seen where processes cannot be: in another container, or on a
machine that only mounts the log's file system.
"""

import dataclasses
import glob
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flopwatch.wire import JobSighting
from flopwatch_agent.attribution import safe_name
from flopwatch_agent.log_file import FileIdentity, identity_of
from flopwatch_agent.log_finder import Output
from flopwatch_agent.source import ObservedJob

EXPAND_SECONDS = 10.0
LIVE_SECONDS = 1800.0
MAX_FILES = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """One file that a pattern names."""

    output: Output
    uid: int
    modified_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Assigned:
    """Whose each configured log is."""

    by_job: dict[str, tuple[Output, ...]]
    alone: tuple[ObservedJob, ...] = ()
    """A job for each log that no process here writes."""
    ended: tuple[ObservedJob, ...] = ()


class ConfiguredLogs:
    """Expands the patterns now and then. ``holds`` tells whether a process of a job has a file open."""

    def __init__(self, patterns: tuple[str, ...], holds: Callable[[ObservedJob, FileIdentity], bool]) -> None:
        self._patterns = patterns
        self._holds = holds
        self._matches: tuple[Match, ...] = ()
        self._expanded_at: float | None = None
        self._alone: dict[str, ObservedJob] = {}

    def assign(self, jobs: tuple[ObservedJob, ...], now: float) -> Assigned:
        """The configured logs that changed within the last half hour, by job."""
        if not self._patterns:
            return Assigned(by_job={})
        if self._expanded_at is None or not 0 <= now - self._expanded_at < EXPAND_SECONDS:
            self._matches, self._expanded_at = matches(self._patterns, now), now
        by_job: dict[str, tuple[Output, ...]] = {}
        alone: dict[str, ObservedJob] = {}
        for match in self._matches:
            owner = self._owner(match, jobs)
            if owner is None:
                job = single(match)
                owner = job.sighting.ref
                alone[owner] = job
            by_job[owner] = (*by_job.get(owner, ()), match.output)
        ended = tuple(gone(job, now) for ref, job in self._alone.items() if ref not in alone)
        self._alone = alone
        return Assigned(by_job=by_job, alone=tuple(alone.values()), ended=ended)

    def _owner(self, match: Match, jobs: tuple[ObservedJob, ...]) -> str | None:
        holders = [job.sighting.ref for job in jobs if self._holds(job, match.output.identity)]
        if holders:
            return holders[0]
        same_user = [job.sighting.ref for job in jobs if job.sighting.uid == match.uid]
        return same_user[0] if len(same_user) == 1 else None


def matches(patterns: tuple[str, ...], now: float) -> tuple[Match, ...]:
    """Regular files that the patterns name and that changed lately, newest first, bounded in number."""
    found: dict[FileIdentity, Match] = {}
    for pattern in patterns:
        for path in glob.iglob(pattern):  # noqa: PTH207 - absolute patterns
            try:
                status = os.stat(path)  # noqa: PTH116 - follows links
            except OSError:
                continue
            if not stat.S_ISREG(status.st_mode) or now - status.st_mtime > LIVE_SECONDS:
                continue
            identity = identity_of(status)
            output = Output(identity=identity, way=Path(path), path=path, appended=True)
            found[identity] = Match(output=output, uid=status.st_uid, modified_seconds=status.st_mtime)
    newest = sorted(found.values(), key=lambda item: (-item.modified_seconds, item.output.path))
    return tuple(newest[:MAX_FILES])


def single(match: Match) -> ObservedJob:
    """The job that a log stands for when no process here writes it."""
    path = Path(match.output.path)
    sighting = JobSighting(
        ref=f"log:{match.output.identity}",
        uid=match.uid,
        name=safe_name(path.stem) or "log",
        log_path=str(path),
    )
    return ObservedJob(sighting=sighting)


def gone(job: ObservedJob, now: float) -> ObservedJob:
    """The job when its log did not change for half an hour, or was removed."""
    return ObservedJob(sighting=dataclasses.replace(job.sighting, end_time_seconds=now), ended=True)
