"""Which sightings are one job: keys, and whether a sighting fits a job that is known already. Pure."""

import hashlib
import re
from dataclasses import dataclass

from flopwatch.wire import JobSighting

JOIN_START_SECONDS = 300.0
"""Processes of one launch start within this on all nodes."""
SAME_START_SECONDS = 30.0
REUSED_ID_SECONDS = 7 * 86_400.0
"""A scheduler's job id seen again after so long without its submit time is another job."""
_NO_KEY = ("", "none", "null", "unknown")
_LOOPBACK = re.compile(r"(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|0\.0\.0\.0)(:|$)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """What a job is recognised by, kept beside its record."""

    number: int
    group: str
    """Sightings of other groups never are this job."""
    shared: bool
    """Sightings of other nodes may be this job."""
    submit_seconds: float | None = None
    start_seconds: float | None = None
    owned: bool = False
    """It is the topmost owner's in Kubernetes, not a pod's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """What one sighting says of its identity."""

    group: str
    shared: bool
    by_start: bool
    """Launches with the same group are told apart by when they started."""
    submit_seconds: float | None = None
    start_seconds: float | None = None
    owned: bool = False

    @property
    def key(self) -> str:
        """The job key, should this claim found a job."""
        if self.by_start:
            return f"{self.group}/{_whole(self.start_seconds)}"
        return f"{self.group}/{_whole(self.submit_seconds)}"


def claim(cluster: str, node: str, job: JobSighting, start_seconds: float | None) -> Claim:
    """The identity a sighting claims; ``start_seconds`` is its start on the collector's clock.

    Scheduler's id (or the owner's UID in Kubernetes) first, then user, master address and world size,
    else the node's own handle. An elastic run id such as ``none`` is no key.
    """
    if job.scheduler == "kubernetes" and _is_key(job.owner_uid):
        return Claim(group=f"kubernetes/{cluster}/{job.owner_uid}", shared=True, by_start=False, owned=True)
    launch = _launch(cluster, node, job, start_seconds)
    # A pod is a node's part of a job: only its owner, or how it was launched, says of which.
    if job.scheduler == "kubernetes" and launch is not None:
        return launch
    if job.scheduler != "none" and _is_key(job.scheduler_job_id):
        return Claim(
            group=f"{job.scheduler}/{cluster}/{job.scheduler_job_id}",
            shared=True,
            by_start=False,
            submit_seconds=job.submit_time_seconds,
            start_seconds=start_seconds,
        )
    group = f"node/{cluster}/{node}/{job.ref}"
    return launch or Claim(group=group, shared=False, by_start=True, start_seconds=start_seconds)


def _launch(cluster: str, node: str, job: JobSighting, start_seconds: float | None) -> Claim | None:
    """User, master address and world size; a master on loopback joins no other node."""
    if not _is_key(job.master) or job.world_size is None or job.uid is None or start_seconds is None:
        return None
    local = f"/{node}" if _LOOPBACK.match(job.master or "") else ""
    group = f"launch/{cluster}{local}/{job.uid}/{job.master}/{job.world_size}"
    return Claim(group=group, shared=not local, by_start=True, start_seconds=start_seconds)


def _is_key(text: str | None) -> bool:
    return text is not None and text.strip().lower() not in _NO_KEY


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What is known of a job when a sighting might be of it."""

    identity: Identity
    last_seen_seconds: float
    end_seconds: float | None
    last_seen_here_seconds: float | None
    """Last sign of it from the sighting's own node; ``None`` when that node has no part in it."""


def fits(sighting: Claim, known: Known, now: float) -> bool:
    """Whether the sighting, of the same group, is of that job."""
    if sighting.by_start:
        return _starts_fit(sighting.start_seconds, known)
    submit, other = sighting.submit_seconds, known.identity.submit_seconds
    if submit is not None and other is not None:
        return abs(submit - other) < 1.0
    return now - known.last_seen_seconds < REUSED_ID_SECONDS


def _starts_fit(start: float | None, known: Known) -> bool:
    """Launches that overlap are one; one that starts after the last sign of the other is a new one."""
    if start is None:
        return True
    if known.end_seconds is not None and start > known.end_seconds:
        return False
    begun = known.identity.start_seconds
    if begun is not None and start < begun - JOIN_START_SECONDS:
        return False
    if known.last_seen_here_seconds is not None:
        same = begun is not None and abs(start - begun) < SAME_START_SECONDS
        return same or start <= known.last_seen_here_seconds
    if begun is None:
        return start <= known.last_seen_seconds
    return start - begun <= JOIN_START_SECONDS


def job_id(name: str, scheduler_job_id: str | None, key: str) -> str:
    """A short, URL-safe id: the scheduler's id or the name for people, eight hex digits of the key."""
    slug = re.sub(r"[^a-z0-9]+", "-", (scheduler_job_id or name).lower()).strip("-")[:40].strip("-")
    digest = hashlib.sha256(key.encode()).hexdigest()[:8]
    return f"{slug}-{digest}" if slug else digest


def _whole(seconds: float | None) -> str:
    return "" if seconds is None else str(int(seconds))
