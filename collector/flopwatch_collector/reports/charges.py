"""What the FOCUS export is made from: every job's leases day by day, and what nobody held."""

from collections.abc import Iterator

import numpy as np

from flopwatch.answers.report import ReportLine
from flopwatch_collector.compute import days as calendar
from flopwatch_collector.compute.chargeback import charged
from flopwatch_collector.compute.classes import is_leased
from flopwatch_collector.compute.layout import take
from flopwatch_collector.model import Columns, FleetState
from flopwatch_collector.reports.focus import Charge
from flopwatch_collector.reports.making import MOMENT_SECONDS, Question, ReportMaker


def charges(maker: ReportMaker, asked: Question) -> Iterator[Charge]:
    """The charges of the period, by local calendar day."""
    state = maker.sources.fleet.state()
    first = calendar.day_of(asked.start_seconds, maker.zone)
    last = calendar.day_of(asked.end_seconds - MOMENT_SECONDS, maker.zone)
    count = (last - first).days + 1
    for _, start, end in calendar.borders(asked.end_seconds - MOMENT_SECONDS, count, maker.zone):
        span = (max(start, asked.start_seconds), min(end, asked.end_seconds))
        rows = maker.sources.accounting.ledger_rows(*span, cluster=asked.cluster)
        yield from _of_day(maker, state, rows, span)


def _of_day(
    maker: ReportMaker, state: FleetState, rows: Columns, span: tuple[float, float]
) -> Iterator[Charge]:
    clusters = {node.number: node.cluster for node in state.nodes.values()}
    leased = is_leased(rows)
    by_id = {job.job_id: job for job in state.jobs.values()}
    for cluster in sorted(set(clusters.values())):
        numbers = np.array([node for node, name in clusters.items() if name == cluster], dtype=np.int64)
        own = np.isin(rows["node"], numbers)
        for chosen, is_held in ((own & leased, True), (own & ~leased, False)):
            lines = charged(take(rows, chosen), "job", state, maker.sources.rates(), maker.group_of)
            for line in lines:
                kind = by_id[line.key].kind if line.key in by_id else None
                yield _charge(line, (cluster, kind, is_held), span)


def _charge(line: ReportLine, where: tuple[str, str | None, bool], span: tuple[float, float]) -> Charge:
    cluster, kind, is_held = where
    return Charge(
        start_seconds=span[0],
        end_seconds=span[1],
        cluster=cluster,
        job_id=line.key,
        job_name=line.label,
        user=line.user,
        account=line.account,
        kind=kind,
        leased=is_held,
        gpu_milliseconds=line.gpu_milliseconds,
        cost=line.cost,
        credit_gpu_milliseconds=line.credit_gpu_milliseconds,
        credit=line.credit,
    )
