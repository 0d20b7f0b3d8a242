"""Pods as jobs where their processes cannot be seen, as in a DaemonSet without ``hostPID``.

The kubelet's folder names every pod of the node by its UID, and holds its output. A pod becomes a job once its output
has steps; which GPUs it uses only the kubelet or the process table could tell. Where it is the only one that trains,
the GPUs that have processes nobody sees are taken to be its own.
"""

import dataclasses
import os
import re
from collections.abc import Callable
from pathlib import Path

from flopwatch.wire import Finding, JobSighting
from flopwatch_agent.attribution import safe_name
from flopwatch_agent.pod_logs import pod_logs
from flopwatch_agent.source import ObservedJob

POD_FOLDER = re.compile(
    r"[^_]+_(?P<name>[^_]+)_(?P<uid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
)
SETTLED_SECONDS = 5.0
"""A process that just ended is still listed by the driver for a moment: no reason to look at pods."""
LOOK_SECONDS = 20.0
LIVE_SECONDS = 1800.0
MAX_PODS = 64
NO_GPUS = (
    "the agent does not see this pod's processes (hostPID is off), so which GPUs it uses, its ranks and its world size "
    "are not known: set hostPID: true for the agent"
)
ONLY_ONE = (
    "the agent does not see this pod's processes (hostPID is off): as the only pod of this node that prints steps it "
    "is taken to use the {count} GPUs that are in use; set hostPID: true for the agent to know"
)


class PodJobs:
    """The pods of a node whose processes are hidden. ``trains`` tells whether a job's output had steps."""

    def __init__(self, root: Path, trains: Callable[[str], bool]) -> None:
        self._root = root
        self._trains = trains
        self._blind_since: float | None = None
        self._looked: float | None = None
        self._found: dict[str, ObservedJob] = {}

    def look(
        self, now: float, unseen_gpus: tuple[str, ...], known: frozenset[str]
    ) -> tuple[tuple[ObservedJob, ...], tuple[ObservedJob, ...]]:
        """(pods to follow, those that ended since the last look).

        Args:
            now: epoch seconds.
            unseen_gpus: GPUs on which the driver lists processes that are not in the process table.
            known: jobs that are seen by their processes.
        """
        if not unseen_gpus:
            self._blind_since = None
        elif self._blind_since is None:
            self._blind_since = now
        blind = self._blind_since is not None and now - self._blind_since >= SETTLED_SECONDS
        if blind and self._looked is not None and 0 <= now - self._looked < LOOK_SECONDS:
            return self._with_gpus(unseen_gpus), ()
        self._looked = now if blind else None
        before, self._found = self._found, self._pods(now, known) if blind else {}
        lost = (job for ref, job in before.items() if ref not in self._found and ref not in known)
        ended = tuple(over(job, now) for job in lost)
        return self._with_gpus(unseen_gpus), ended

    def is_silent(self, ref: str) -> bool:
        """Whether a job is a pod without steps, which is not told of."""
        return ref in self._found and not self._trains(ref)

    def _with_gpus(self, unseen: tuple[str, ...]) -> tuple[ObservedJob, ...]:
        training = [ref for ref in self._found if self._trains(ref)]
        return tuple(
            with_gpus(job, unseen if training == [ref] else ()) if ref in training else job
            for ref, job in self._found.items()
        )

    def _pods(self, now: float, known: frozenset[str]) -> dict[str, ObservedJob]:
        """The pods whose output changed within the last half hour, newest first, bounded in number."""
        found: list[tuple[float, ObservedJob]] = []
        for match in filter(None, map(POD_FOLDER.fullmatch, names(self._root))):
            ref = f"kubernetes:{match['uid']}"
            changed = last_change(self._root, match["uid"])
            if ref not in known and changed is not None and now - changed < LIVE_SECONDS:
                found.append((changed, as_job(ref, match["uid"], match["name"])))
        newest = sorted(found, key=lambda item: (-item[0], item[1].sighting.ref))[:MAX_PODS]
        return {job.sighting.ref: job for _, job in newest}


def names(root: Path) -> list[str]:
    """The names in a folder; none where it cannot be read."""
    try:
        return sorted(os.listdir(root))  # noqa: PTH208 - names, not paths
    except OSError:
        return []


def last_change(root: Path, uid: str) -> float | None:
    """When a pod last wrote anything; None where it has no output."""
    changes = []
    for path in pod_logs(root, uid).values():
        try:
            changes.append(os.stat(path).st_mtime)  # noqa: PTH116 - follows links
        except OSError:
            continue
    return max(changes, default=None)


def as_job(ref: str, uid: str, name: str) -> ObservedJob:
    """A pod of which only the output is seen."""
    sighting = JobSighting(ref=ref, scheduler="kubernetes", scheduler_job_id=uid, name=safe_name(name))
    return ObservedJob(sighting=sighting)


def with_gpus(job: ObservedJob, gpus: tuple[str, ...]) -> ObservedJob:
    """A pod that trains, with the GPUs it is taken to use and what is not known of it."""
    text = ONLY_ONE.format(count=len(gpus)) if gpus else NO_GPUS
    doubt = Finding(job=job.sighting.ref, code="processes_hidden", text=text)
    return dataclasses.replace(job, sighting=dataclasses.replace(job.sighting, gpus=gpus), findings=(doubt,))


def over(job: ObservedJob, now: float) -> ObservedJob:
    """The pod when it is gone or silent for long."""
    return dataclasses.replace(
        job, sighting=dataclasses.replace(job.sighting, end_time_seconds=now), ended=True
    )
