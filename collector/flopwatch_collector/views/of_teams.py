"""The answers of another ``Query``, without the jobs that the asking viewer may not see.

Figures of the whole fleet stay as they are: they name no job.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from flopwatch import viewer
from flopwatch.answers.nodes import GpuPage, GpuRow, JobRef, NodePage, Nodes, RanHere
from flopwatch.query import AlertRow, Alerts, Economy, Fleet, Job, JobRow, Jobs, Query, Range, Status


class OfTeams:
    """Implements ``flopwatch.query.Query`` over another one; who asks is ``viewer.current()``."""

    def __init__(self, query: Query) -> None:
        self._query = query

    def status(self) -> Status:
        """The frame of every page."""
        status, who = self._query.status(), viewer.current()
        return replace(status, teams=tuple(t for t in status.teams if who.sees(t))) if who.teams else status

    def fleet(self, asked: Range) -> Fleet:
        """The Fleet page; its lists of jobs and alerts, and the ledger by team, hold only what may be seen."""
        if asked.team is not None and not viewer.current().sees(asked.team):
            asked = replace(asked, team=None)
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

    def nodes(self, asked: Range) -> Nodes:
        """Every GPU; jobs that may not be seen have no name."""
        found = self._query.nodes(asked)
        if not viewer.current().teams:
            return found
        return replace(found, jobs=tuple(_hidden(job) for job in found.jobs))

    def node(self, name: str, asked: Range) -> NodePage | None:
        """One node, without what is said of jobs that may not be seen."""
        found = self._query.node(name, asked)
        if found is None or not viewer.current().teams:
            return found
        return replace(
            found,
            gpus=tuple(_bare(row) for row in found.gpus),
            jobs=_ran(found.jobs),
            alerts=_alerts(found.alerts),
        )

    def gpu(self, uuid: str, asked: Range) -> GpuPage | None:
        """One GPU, without what is said of jobs that may not be seen."""
        found = self._query.gpu(uuid, asked)
        if found is None or not viewer.current().teams:
            return found
        return replace(found, row=_bare(found.row), jobs=_ran(found.jobs), alerts=_alerts(found.alerts))

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


def _hidden(job: JobRef) -> JobRef:
    return job if viewer.current().sees(job.account) else JobRef(job_id="", name="")


def _bare(row: GpuRow) -> GpuRow:
    return row if row.job is None else replace(row, job=_hidden(row.job))


def _ran(rows: Iterable[RanHere]) -> tuple[RanHere, ...]:
    who = viewer.current()
    return tuple(row for row in rows if who.sees(row.job.account))


def _alerts(rows: Iterable[AlertRow]) -> tuple[AlertRow, ...]:
    who = viewer.current()
    return tuple(row for row in rows if "job_id" not in row.labels or who.sees(row.context.get("team")))
