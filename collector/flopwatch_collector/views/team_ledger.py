"""One team's ledger over a range: its line of the chargeback, where its time went, its MFU and its days."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from flopwatch.query import Day, TeamLedger
from flopwatch_collector.compute import days as calendar
from flopwatch_collector.compute import rollup
from flopwatch_collector.compute.chargeback import charged, no_group, parts_of_team
from flopwatch_collector.compute.classes import is_billable, to_answer
from flopwatch_collector.compute.layout import take
from flopwatch_collector.model import Columns
from flopwatch_collector.views.sources import Moment, Sources


@dataclass(frozen=True, kw_only=True, slots=True)
class TeamDays:
    """A team's daily utilisation of what it held, and the mean of all these days."""

    days: tuple[Day, ...]
    mean_ratio: float | None


def team_ledger(sources: Sources, moment: Moment, team: str, days: TeamDays) -> TeamLedger:
    """The team's part of the ledger of the range, which begins on the border of a window."""
    then = moment.at_end()
    start, end = then.start, then.now
    rows = sources.accounting.ledger_rows(start, end, cluster=moment.asked.cluster)
    own, nobody = parts_of_team(rows, moment.state, team)
    lines = charged(own, "team", moment.state, sources.rates(), no_group)
    line = lines[0] if lines else None
    since = sources.accounting.provisional_from_seconds
    provisional = max(since, start) if since is not None and since < end else None
    ledger = to_answer(own, sources.rates(), start, end, provisional)
    rolled = _rolled(sources, then, team)
    return TeamLedger(
        team=team,
        ledger=ledger if line is None else replace(ledger, waste_money=line.waste_money),
        billed=None if line is None else line.billed,
        credit=None if line is None else line.credit,
        mfu_ratio=rollup.fleet_ratio(rolled),
        mfu_coverage_ratio=rollup.coverage(rolled),
        days=days.days,
        mean_30d_ratio=days.mean_ratio,
        nobody_gpu_milliseconds=nobody,
    )


def days_of(sources: Sources, moment: Moment, team: str, past: tuple[Day, ...]) -> TeamDays:
    """The team's days; whether a day is complete is the fleet's to say."""
    zone = ZoneInfo(sources.settings.collector.time_zone)
    borders = calendar.borders(moment.now, len(past), zone)
    first = borders[0][1]
    rows = sources.accounting.ledger_rows(first, moment.now, cluster=moment.asked.cluster)
    own, _ = parts_of_team(rows, moment.state, team)
    split = calendar.split_by_day(own, [first, *(end for _, _, end in borders)])
    complete: Mapping[str, bool] = {day.day: day.complete for day in past}
    made = tuple(
        calendar.day_answer(day, part, complete=complete.get(day.isoformat(), False))
        for (day, _, _), part in zip(borders, split, strict=True)
    )
    return TeamDays(days=made, mean_ratio=_billable_ratio(own))


def _billable_ratio(rows: Columns) -> float | None:
    time: npt.NDArray[np.int64] = rows["gpu_milliseconds"]
    capacity = int(time.sum())
    return int(time[is_billable(rows)].sum()) / capacity if capacity else None


def _rolled(sources: Sources, then: Moment, team: str) -> Columns:
    """Rollups of the team's jobs over the range."""
    asked = then.asked.cluster
    jobs = [
        number
        for number, job in then.state.jobs.items()
        if job.account == team and asked in (None, job.cluster)
    ]
    rows = sources.accounting.job_rollups(then.start, then.now, hourly=then.hourly)
    return take(rows, np.isin(rows["job"], np.array(jobs, dtype=np.int64)))
