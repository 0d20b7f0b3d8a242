"""Alerts of a cluster, a job or a range, from the alerts as they stand."""

from collections.abc import Iterable
from typing import Protocol

from flopwatch.answers.alert import ACTIVE_STATES, RuleInfo, SilenceInfo
from flopwatch.query import AlertRow, Alerts, Severity, Status

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")


class AlertSource(Protocol):
    """Alerts as they stand."""

    @property
    def generation(self) -> int:
        """Rises whenever an answer may have changed."""
        ...

    def active(self) -> tuple[AlertRow, ...]:
        """Alerts that have not ended, worst first."""
        ...

    def history(self, start: float) -> tuple[AlertRow, ...]:
        """Alerts that ended at or after ``start``, newest first."""
        ...

    def silences(self) -> tuple[SilenceInfo, ...]:
        """Silences that have not ended."""
        ...

    def rules(self, start: float) -> tuple[RuleInfo, ...]:
        """Every rule, and how often it fired since ``start``."""
        ...


def alerts_of(source: AlertSource, status: Status, start: float, cluster: str | None) -> Alerts:
    """The Alerts page."""
    return Alerts(
        status=status,
        active=in_cluster(source.active(), cluster),
        history=in_cluster(source.history(start), cluster),
        silences=source.silences(),
        rules=source.rules(start),
    )


def in_cluster(rows: Iterable[AlertRow], cluster: str | None) -> tuple[AlertRow, ...]:
    """Rows of one cluster, or all; an alert about several clusters belongs to each."""
    return tuple(
        row for row in rows if cluster is None or cluster in row.labels.get("cluster", "").split(",")
    )


def of_job(rows: Iterable[AlertRow], job_id: str) -> tuple[AlertRow, ...]:
    """Rows about one job."""
    return tuple(row for row in rows if row.labels.get("job_id") == job_id)


def by_severity(rows: Iterable[AlertRow]) -> dict[str, int]:
    """How many alerts fire, by severity; all three are there."""
    firing = [row.severity for row in rows if row.state in ACTIVE_STATES]
    return {severity: firing.count(severity) for severity in SEVERITIES}
