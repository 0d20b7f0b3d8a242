"""What a reader narrowed the dashboard to: another time zone, one team."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from flopwatch.answers.alert import ACTIVE_STATES
from flopwatch.query import AlertRow, Alerts, Fleet, Jobs, Query, Range, Status

MOST_JOBS = 24


def scoped(query: Query, zone: str | None, team: str | None) -> Query:
    """The query as the reader narrowed it; the same one where nothing is narrowed."""
    if zone is None and team is None:
        return query
    return cast(Query, Scoped(query, zone, team))


class Scoped:
    """Answers of another ``Query``: every status in the reader's time zone, lists of one team only.

    The Fleet page has the team's ledger beside the fleet's, which stays what it is.
    """

    def __init__(self, query: Query, zone: str | None, team: str | None) -> None:
        self._query = query
        self._zone = zone
        self._team = team

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """A question that no team narrows; its status is in the reader's zone."""
        question = getattr(self._query, name)
        return lambda *asked: self._in_zone(question(*asked))

    def status(self) -> Status:
        """The frame of every page."""
        status = self._query.status()
        return status if self._zone is None else replace(status, time_zone=self._zone)

    def fleet(self, asked: Range) -> Fleet:
        """The Fleet page; of a team, with its ledger and its jobs that wasted most over the range."""
        found: Fleet = self._in_zone(self._query.fleet(replace(asked, team=self._team)))
        if self._team is None:
            return found
        rows = sorted(self.jobs(asked).rows, key=lambda row: -row.waste_gpu_milliseconds)
        alerts = self._alerts(found.alerts)
        firing: list[str] = [row.severity for row in alerts if row.state in ACTIVE_STATES]
        return replace(
            found,
            top_jobs=tuple(rows[:MOST_JOBS]),
            alerts=alerts,
            alerts_by_severity={level: firing.count(level) for level in found.alerts_by_severity},
        )

    def jobs(self, asked: Range) -> Jobs:
        """Jobs, of the team."""
        found: Jobs = self._in_zone(self._query.jobs(asked))
        if self._team is None:
            return found
        return replace(found, rows=tuple(row for row in found.rows if row.account == self._team))

    def alerts(self, asked: Range) -> Alerts:
        """Alerts, of the team's jobs."""
        found: Alerts = self._in_zone(self._query.alerts(asked))
        if self._team is None:
            return found
        return replace(found, active=self._alerts(found.active), history=self._alerts(found.history))

    def _alerts(self, rows: tuple[AlertRow, ...]) -> tuple[AlertRow, ...]:
        return tuple(
            row for row in rows if self._team in (row.context.get("team"), row.labels.get("account"))
        )

    def _in_zone(self, answer: Any) -> Any:
        if self._zone is None or answer is None:
            return answer
        return replace(answer, status=replace(answer.status, time_zone=self._zone))
