"""The answers of another ``Query``, without the jobs that the asking viewer may not see.

Figures of the whole fleet stay as they are: they name no job.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from flopwatch import viewer
from flopwatch.query import AlertRow, Alerts, Economy, Fleet, Job, JobRow, Jobs, Query, Range, Status


class OfTeams:
    """Implements ``flopwatch.query.Query`` over another one; who asks is ``viewer.current()``."""

    def __init__(self, query: Query) -> None:
        self._query = query

    def status(self) -> Status:
        """The frame of every page."""
        return self._query.status()

    def fleet(self, asked: Range) -> Fleet:
        """The Fleet page; its lists of jobs and alerts hold only those that may be seen."""
        found = self._query.fleet(asked)
        if not viewer.current().teams:
            return found
        return replace(found, top_jobs=_rows(found.top_jobs), alerts=_alerts(found.alerts))

    def jobs(self, asked: Range) -> Jobs:
        """Jobs that may be seen."""
        found = self._query.jobs(asked)
        return replace(found, rows=_rows(found.rows)) if viewer.current().teams else found

    def job(self, job_id: str, asked: Range) -> Job | None:
        """One job; None where there is none that may be seen."""
        found = self._query.job(job_id, asked)
        if found is None or not viewer.current().sees(found.row.account):
            return None
        return found

    def economy(self, asked: Range, overrides: Mapping[str, float]) -> Economy:
        """The Breakeven page."""
        return self._query.economy(asked, overrides)

    def alerts(self, asked: Range) -> Alerts:
        """Alerts of no job, and of jobs that may be seen."""
        found = self._query.alerts(asked)
        if not viewer.current().teams:
            return found
        return replace(found, active=_alerts(found.active), history=_alerts(found.history))


def _rows(rows: Iterable[JobRow]) -> tuple[JobRow, ...]:
    who = viewer.current()
    return tuple(row for row in rows if who.sees(row.account))


def _alerts(rows: Iterable[AlertRow]) -> tuple[AlertRow, ...]:
    who = viewer.current()
    return tuple(row for row in rows if "job_id" not in row.labels or who.sees(row.context.get("team")))
