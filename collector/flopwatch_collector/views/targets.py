"""A job's MFU target and whose it is. Pure."""

import re
from collections.abc import Mapping

from flopwatch.query import Target
from flopwatch_collector.config import TargetSettings
from flopwatch_collector.model import JobRecord

NO_TARGET = Target(ratio=None, source="none")


def target_of(job: JobRecord, kind: str, settings: TargetSettings) -> Target:
    """The job's own target, else its team's, else its class's, else the default, else none.

    A job's own is what it declared itself, else the setting of its name. ``kind`` is the class of the job as
    its scheduler or its trainer says.
    """
    if job.target_ratio is not None and 0.0 < job.target_ratio <= 1.0:
        return Target(ratio=job.target_ratio, source="job")
    named = _by_name(job.name, settings.job)
    if named is not None:
        return Target(ratio=named, source="job")
    if job.account is not None and job.account in settings.team:
        return Target(ratio=settings.team[job.account], source="team")
    if kind in settings.job_class:
        return Target(ratio=settings.job_class[kind], source="class")
    if settings.default is not None:
        return Target(ratio=settings.default, source="default")
    return NO_TARGET


def _by_name(name: str, patterns: Mapping[str, float]) -> float | None:
    """The target of the name itself, else of the longest pattern that fits; ``*`` stands for any text."""
    if name in patterns:
        return patterns[name]
    fitting = [pattern for pattern in patterns if "*" in pattern and _fits(name, pattern)]
    if not fitting:
        return None
    return patterns[max(fitting, key=lambda pattern: (len(pattern.replace("*", "")), pattern))]


def _fits(name: str, pattern: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name, re.DOTALL) is not None
