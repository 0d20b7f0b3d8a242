"""Slurm asked through slurmrestd, in the newest version of its API that both know."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flopwatch_collector.schedulers.asking import Answered, Server
from flopwatch_collector.schedulers.reading import SchedulerUnreachable

VERSIONS = ("v0.0.43", "v0.0.42", "v0.0.41", "v0.0.40", "v0.0.39", "v0.0.38")
ABSENT = frozenset({404, 405, 501})
"""Statuses of questions that this slurmrestd has no answer to."""


@dataclass(kw_only=True)
class SlurmRest:
    """Asks one slurmrestd."""

    server: Server
    version: str | None = None
    """None: found at the first question."""
    _absent: set[str] = field(default_factory=set, repr=False)

    def jobs(self) -> Mapping[str, Any]:
        """``/slurm/VERSION/jobs``."""
        if self.version is not None:
            return self.server.document(f"/slurm/{self.version}/jobs")
        refused: Answered | None = None
        for version in VERSIONS:
            try:
                found = self.server.document(f"/slurm/{version}/jobs")
            except Answered as error:
                if error.status not in (404, 405):
                    raise
                refused = error
            else:
                self.version = version
                return found
        raise SchedulerUnreachable(
            f"{self.server.url} speaks none of {', '.join(VERSIONS)}: {refused}"
        ) from refused

    def nodes(self) -> Mapping[str, Any] | None:
        """``/slurm/VERSION/nodes``."""
        return self._optional("nodes", "/slurm/{version}/nodes")

    def more(self, what: str, since_seconds: float) -> Mapping[str, Any] | None:
        """Reservations, QOS, or the jobs of accounting since a time."""
        path = {
            "reservations": "/slurm/{version}/reservations",
            "qos": "/slurmdb/{version}/qos",
            "ended": f"/slurmdb/{{version}}/jobs?start_time={int(since_seconds)}",
        }[what]
        return self._optional(what, path)

    def _optional(self, what: str, path: str) -> Mapping[str, Any] | None:
        if what in self._absent or self.version is None:
            return None
        try:
            return self.server.document(path.format(version=self.version))
        except Answered as error:
            if error.status not in ABSENT:
                raise
            self._absent.add(what)
            return None
