"""What no report needs any more goes: leases and launches before job records, and numbers are never used again."""

from collections.abc import Mapping
from dataclasses import dataclass

from flopwatch_collector.ingest import declared
from flopwatch_collector.model import JobRecord, Launch, LeaseRecord
from flopwatch_collector.store.port import Control

DAY_SECONDS = 86_400.0
MEMO_KIND = "accounting_job"


@dataclass(frozen=True, kw_only=True, slots=True)
class Horizons:
    """How long after a job's end what is kept."""

    detail_days: float
    """Leases and launches: as long as ledger windows can be computed again."""
    record_days: float
    """The job itself: as long as there are hourly or daily figures with its number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Forgotten:
    """How many documents went."""

    jobs: int
    launches: int
    leases: int


def forget(control: Control, now: float, horizons: Horizons) -> Forgotten:
    """Remove documents of jobs that ended long ago; called before anything is read of them.

    The highest numbers stay, so that none is given to something else.

    Raises:
        Unavailable: the control state cannot be written.
    """
    jobs = {job.number: job for job in control.load("job", JobRecord).values()}
    highest = max(jobs, default=0)
    plain = {
        number
        for number, job in jobs.items()
        if _ended(job) < now - horizons.record_days * DAY_SECONDS and number != highest
    }
    bare = {
        number for number, job in jobs.items() if _ended(job) < now - horizons.detail_days * DAY_SECONDS
    } | plain
    known = control.load("launch", Launch)
    newest = max((launch.number for launch in known.values()), default=0)
    launches = [key for key, launch in known.items() if launch.job in bare and launch.number != newest]
    leases = [key for key, lease in control.load("lease", LeaseRecord).items() if lease.job in bare]
    for kind, keys in {"launch": launches, "lease": leases, **_documents(plain)}.items():
        control.delete(kind, keys)
    return Forgotten(jobs=len(plain), launches=len(launches), leases=len(leases))


def _documents(numbers: set[int]) -> Mapping[str, list[str]]:
    """Everything kept under these jobs' numbers, the record itself last."""
    keys = [str(number) for number in sorted(numbers)]
    return {MEMO_KIND: keys, declared.KIND: keys, "identity": keys, "job": keys}


def _ended(job: JobRecord) -> float:
    """When it ended; the last sign of one whose end nobody told."""
    return job.last_seen_seconds if job.end_seconds is None else max(job.end_seconds, job.last_seen_seconds)
