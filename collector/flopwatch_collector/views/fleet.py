"""The Fleet page: the verdict, today's ledger, the days, the course of the range, and who wastes most."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from flopwatch.query import Day, Fleet, Ledger, Series, Status, Tile, Verdict
from flopwatch_collector.compute import days as calendar
from flopwatch_collector.compute import money, rollup
from flopwatch_collector.compute.breakeven import verdict
from flopwatch_collector.compute.classes import is_waste, to_answer
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.money import HOUR_MILLISECONDS
from flopwatch_collector.model import Columns
from flopwatch_collector.views import alerts, jobs, rollups, series
from flopwatch_collector.views.present import JobNow, Present
from flopwatch_collector.views.sources import Moment, Sources
from flopwatch_collector.views.targets import target_of

SHOWN_DAYS = 30
VERDICT_DAYS = 90
SPARK_DAYS = 14
SPARK_POINTS = 48
TOP_JOBS = 10
TILE_SECONDS = 3_600.0
"""The MFU tile is of the newest hour."""
DAY_SECONDS = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Today:
    """Ledger rows since midnight, and of yesterday until the same time and after it."""

    start_seconds: float
    rows: Columns
    before: Columns
    """Of yesterday, up to the same time of day."""
    after: Columns
    """Of yesterday, from then on."""
    waste: Columns
    """Those of ``rows`` that are waste."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """What the page takes from elsewhere."""

    status: Status
    past: tuple[Day, ...]
    """The last 90 days, today last; today's own figure is replaced by the ledger's."""
    diagnosed: jobs.Diagnosed


def fleet_of(sources: Sources, present: Present, moment: Moment, given: Given) -> Fleet:
    """The page."""
    status, past = given.status, given.past
    today = today_of(sources, moment)
    ledger = ledger_of(sources, today, moment)
    found = present.jobs(moment, jobs.within(moment))
    made = replace(jobs.tables(sources, moment, found, today.rows), causes=given.diagnosed(moment, found))
    shown_days = (*past[:-1], _today(past[-1], ledger))
    state = verdict_of(sources, shown_days)
    rows = [jobs.job_row(sources, moment, found[number], made) for number in most_wasteful(made, found)]
    course = _course(sources, present, moment, (found, made))
    active = alerts.in_cluster(sources.alerts.active(), moment.asked.cluster)
    recent = _recent(sources, moment, found)
    told = rollups.comparable(rollups.told_only(recent, found))
    target = target_ratio(sources, found)
    hourly = _hourly_waste(today)
    return Fleet(
        status=status,
        range_seconds=moment.asked.seconds,
        verdict=state,
        utilisation=Tile(
            value=ledger.billable_ratio,
            reference=state.line_ratio,
            spark=tuple(day.billable_ratio for day in shown_days[-SPARK_DAYS:]),
        ),
        mfu=Tile(value=rollup.fleet_ratio(told), reference=target, spark=_spark(course.columns["mfu"])),
        mfu_coverage_ratio=rollup.coverage(recent),
        waste=_waste_tile(today, ledger, hourly),
        waste_money=_money_tile(sources, today, ledger),
        waste_money_per_day=_per_day(sources, today, moment.now),
        alerts_by_severity=alerts.by_severity(active),
        ledger_today=ledger,
        days=shown_days[-SHOWN_DAYS:],
        series=course,
        mfu_target_ratio=target,
        top_jobs=tuple(rows),
        alerts=active,
        mfu_by_money_ratio=rollup.money_ratio(told, job_prices(sources, found)),
    )


def _course(
    sources: Sources,
    present: Present,
    moment: Moment,
    known: tuple[Mapping[int, JobNow], jobs.JobTables],
) -> Series:
    """The curves of the range, also of one that ended before now; all else on the page is of today."""
    then = moment.at_end()
    if then is moment:
        found, made = known
        return series.fleet_series(sources, moment, found, rollups.joined(made.rollups))
    found = present.jobs(moment, jobs.within(then))
    rows = sources.accounting.job_rollups(then.start, then.now, hourly=then.hourly)
    return series.fleet_series(sources, then, found, rollups.told_only(rows, found))


def today_of(sources: Sources, moment: Moment) -> Today:
    """The ledger rows that all of the page's ledger figures are made from."""
    read = sources.accounting.ledger_rows
    start = sources.accounting.today_start(moment.now)
    yesterday = sources.accounting.today_start(start - 3_600.0)
    same = (yesterday + moment.now - start) // 300.0 * 300.0
    cluster = moment.asked.cluster
    rows = read(start, moment.now, cluster=cluster)
    return Today(
        start_seconds=start,
        rows=rows,
        waste=wasting(rows),
        before=read(yesterday, min(same, start), cluster=cluster),
        after=read(min(same, start), start, cluster=cluster),
    )


def ledger_of(sources: Sources, today: Today, moment: Moment) -> Ledger:
    """Today's ledger, from which every figure of today follows."""
    since = sources.accounting.provisional_from_seconds
    provisional = max(since, today.start_seconds) if since is not None else None
    return to_answer(today.rows, sources.rates(), today.start_seconds, moment.now, provisional)


def _today(day: Day, ledger: Ledger) -> Day:
    """Today's bar from the same rows as the tile."""
    return Day(
        day=day.day,
        billable_ratio=ledger.billable_ratio,
        unknown_ratio=ledger.unknown_ratio,
        capacity_gpu_milliseconds=ledger.capacity_gpu_milliseconds,
        complete=False,
        valid=bool(ledger.capacity_gpu_milliseconds)
        and (ledger.unknown_ratio or 0.0) <= 1.0 - calendar.VALID_RATIO,
    )


def verdict_of(sources: Sources, past: tuple[Day, ...]) -> Verdict:
    """The fleet against its line over these days."""
    state = sources.fleet.state()
    price = sources.prices.mean(state.nodes, state.gpus.values())
    return verdict(past, line=sources.line(), price=price)


def job_prices(sources: Sources, found: Mapping[int, JobNow]) -> dict[int, float]:
    """What an idle GPU-hour of each job costs, the mean over its nodes; jobs of nodes without a price have none."""
    rates = sources.rates()
    result = {}
    for number, job in found.items():
        prices = [
            rates.by_node[part.node][0] if part.node in rates.by_node else rates.fixed_per_gpu_hour
            for part in job.record.parts
        ] or [rates.fixed_per_gpu_hour]
        known = [price for price in prices if price is not None]
        if len(known) == len(prices):
            result[number] = sum(known) / len(known)
    return result


def most_wasteful(made: jobs.JobTables, found: Mapping[int, JobNow]) -> list[int]:
    """Numbers of the jobs with most waste in the ledger, most first; those without any are left out."""
    amounts = {number: wasted(rows) for number, rows in made.ledger.items() if number in found}
    ordered = sorted(amounts, key=lambda number: (-amounts[number], found[number].record.job_id))
    return [number for number in ordered if amounts[number] > 0][:TOP_JOBS]


def target_ratio(sources: Sources, found: Mapping[int, JobNow]) -> float | None:
    """Targets of running jobs that have an MFU, weighted by their GPUs; None when none has a target."""
    pairs = []
    for job in found.values():
        target = target_of(job.record, job.kind, sources.settings.targets).ratio
        if not job.ended and target is not None and job.figure.value_ratio is not None and job.figure.gpus:
            pairs.append((target, job.figure.gpus))
    total = sum(gpus for _, gpus in pairs)
    return sum(ratio * gpus for ratio, gpus in pairs) / total if total else None


def _recent(sources: Sources, moment: Moment, found: Mapping[int, JobNow]) -> Columns:
    """Rollups of the newest hour of jobs that run."""
    running = [number for number, job in found.items() if not job.ended]
    start = (moment.now - TILE_SECONDS) // 300.0 * 300.0
    rows = sources.accounting.job_rollups(start, moment.now)
    return take(rows, np.isin(rows["job"], np.array(running, dtype=np.int64)))


def _spark(values: tuple[float | None, ...]) -> tuple[float | None, ...]:
    return values[:: max(1, -(-len(values) // SPARK_POINTS))]


def _waste_tile(today: Today, ledger: Ledger, hourly: list[int]) -> Tile:
    return Tile(
        value=ledger.waste_gpu_milliseconds / HOUR_MILLISECONDS,
        reference=wasted(today.before) / HOUR_MILLISECONDS if today.before["ts"].size else None,
        spark=tuple(amount / HOUR_MILLISECONDS for amount in hourly),
    )


def _money_tile(sources: Sources, today: Today, ledger: Ledger) -> Tile:
    rates = sources.rates()
    before = money.total(wasting(today.before), rates) if today.before["ts"].size else None
    hours = _hour_of(today.waste, today)
    return Tile(
        value=ledger.waste_money,
        reference=before,
        spark=tuple(money.by_key(today.waste, rates, hours, _hours(today))),
    )


def wasting(rows: Columns) -> Columns:
    """The rows that are waste."""
    return take(rows, is_waste(rows))


def wasted(rows: Columns) -> int:
    """Wasted GPU milliseconds of ledger rows."""
    return int(rows["gpu_milliseconds"][is_waste(rows)].sum())


def _hourly_waste(today: Today) -> list[int]:
    """Wasted GPU milliseconds of every hour of today."""
    rows = today.waste
    totals = np.zeros(_hours(today), dtype=np.int64)
    np.add.at(totals, _hour_of(rows, today), rows["gpu_milliseconds"])
    return [int(total) for total in totals]


def _hours(today: Today) -> int:
    """Hours of today that have begun, by its rows."""
    times = today.rows["ts"]
    return int((times.max() - today.start_seconds) // 3_600.0) + 1 if times.size else 0


def _hour_of(rows: Columns, today: Today) -> npt.NDArray[np.int64]:
    hours: npt.NDArray[np.int64] = ((rows["ts"] - today.start_seconds) // 3_600.0).astype(np.int64)
    return hours


def _per_day(sources: Sources, today: Today, now: float) -> float | None:
    """What the waste of the last 24 hours cost; where less is known, at that rate for a day."""
    rates = sources.rates()
    if not rates.known:
        return None
    first = min(
        (float(rows["ts"].min()) for rows in (today.rows, today.after) if rows["ts"].size), default=now
    )
    known_seconds = min(DAY_SECONDS, now - first)
    parts = [money.total(rows, rates) for rows in (today.waste, wasting(today.after))]
    amounts = [part for part in parts if part is not None]
    complete = len(amounts) == len(parts) and known_seconds > 0
    return sum(amounts) * DAY_SECONDS / known_seconds if complete else None
