"""Logs that the settings name: each goes to the job that has it open, else to its owner's only job, else it is one.

A log without any process here is how steps are seen where processes cannot be: in another container, or on a
machine that only mounts the log's file system.
"""

import dataclasses
import glob
import os
import stat
from collections.abc import Callable, Set
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
LATE_SECONDS = 2.0
"""A job's last words may reach its file so long after its end was seen."""


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
    """Expands the patterns now and then.

    ``holds`` tells whether a process of a job has a file open, ``has_steps`` whether a job had a step: a log that
    became a job of its own and has steps stays one, whatever else its owner starts beside it.
    """

    def __init__(
        self,
        patterns: tuple[str, ...],
        holds: Callable[[ObservedJob, FileIdentity], bool],
        has_steps: Callable[[str], bool],
    ) -> None:
        self._patterns = patterns
        self._holds = holds
        self._has_steps = has_steps
        self._matches: tuple[Match, ...] = ()
        self._expanded_at: float | None = None
        self._alone: dict[str, ObservedJob] = {}
        self._owners: dict[FileIdentity, str] = {}
        """Jobs with processes, by the file that is theirs."""
        self._over: dict[FileIdentity, float] = {}
        """When the job of a file was seen to have ended."""

    def assign(self, jobs: tuple[ObservedJob, ...], now: float) -> Assigned:
        """The configured logs that changed within the last half hour, by job."""
        if not self._patterns:
            return Assigned(by_job={})
        if self._expanded_at is None or not 0 <= now - self._expanded_at < EXPAND_SECONDS:
            self._matches, self._expanded_at = matches(self._patterns, now), now
        self._note_ended({job.sighting.ref for job in jobs}, now)
        by_job: dict[str, tuple[Output, ...]] = {}
        alone: dict[str, ObservedJob] = {}
        for match in self._matches:
            identity = match.output.identity
            owner = self._owner(match, jobs)
            if owner is not None:
                self._owners[identity] = owner
            elif self._is_over(match):
                continue
            else:
                job = single(match)
                owner = job.sighting.ref
                alone[owner] = job
            by_job[owner] = (*by_job.get(owner, ()), match.output)
        ended = tuple(gone(job, now) for ref, job in self._alone.items() if ref not in alone)
        self._alone = alone
        return Assigned(by_job=by_job, alone=tuple(alone.values()), ended=ended)

    def _note_ended(self, refs: Set[str], now: float) -> None:
        """A job that ended leaves its file: unless it is written again, the file is nobody's."""
        named = {match.output.identity for match in self._matches}
        self._over = {key: at for key, at in self._over.items() if key in named}
        for identity, ref in list(self._owners.items()):
            if ref not in refs:
                del self._owners[identity]
                self._over[identity] = now

    def _is_over(self, match: Match) -> bool:
        """Whether nothing was written since the job whose file it was has ended."""
        ended = self._over.get(match.output.identity)
        return ended is not None and match.modified_seconds <= ended + LATE_SECONDS

    def _owner(self, match: Match, jobs: tuple[ObservedJob, ...]) -> str | None:
        """The job that has the file open, else whose it was, else its owner's only job, when the file is no job yet."""
        identity = match.output.identity
        holders = [job.sighting.ref for job in jobs if self._holds(job, identity)]
        if holders:
            return holders[0]
        if identity in self._owners:
            return self._owners[identity]
        ref = ref_of(identity)
        if self._is_over(match) or (ref in self._alone and self._has_steps(ref)):
            return None
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


def ref_of(identity: FileIdentity) -> str:
    """The reference of the job that a log is by itself."""
    return f"log:{identity}"


def single(match: Match) -> ObservedJob:
    """The job that a log stands for when no process here writes it."""
    path = Path(match.output.path)
    sighting = JobSighting(
        ref=ref_of(match.output.identity),
        uid=match.uid,
        name=safe_name(path.stem) or "log",
        log_path=str(path),
    )
    return ObservedJob(sighting=sighting)


def gone(job: ObservedJob, now: float) -> ObservedJob:
    """The job when its log did not change for half an hour, or was removed."""
    return ObservedJob(sighting=dataclasses.replace(job.sighting, end_time_seconds=now), ended=True)
