"""The Jobs table: one row a job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from flopwatch.query import WASTE_CLASSES, Cause, JobRow, Jobs, JobState, Status
from flopwatch_collector.compute import money
from flopwatch_collector.compute.buckets import BUCKETS, REASONS, empty_rows
from flopwatch_collector.compute.cause import NodeSignal, Signals, likely_cause
from flopwatch_collector.compute.classes import by_class, is_waste
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.mfu import wall_ratio
from flopwatch_collector.model import Columns
from flopwatch_collector.views import evidence, rollups
from flopwatch_collector.views.nodes import signals_by_job
from flopwatch_collector.views.present import JobNow, Present
from flopwatch_collector.views.sources import Moment, Sources
from flopwatch_collector.views.targets import target_of


@dataclass(frozen=True, kw_only=True, slots=True)
class WasteMoney:
    """What waste costs, by job."""

    wasted: Mapping[int, float | None] = field(default_factory=dict)
    """Of jobs that have any; ``None`` where a node of it has no price."""
    nothing: float | None = None
    """Of jobs that have none: 0, or ``None`` where nothing has a price."""

    def of(self, number: int) -> float | None:
        """What the job's waste cost."""
        return self.wasted.get(number, self.nothing)


@dataclass(frozen=True, kw_only=True, slots=True)
class JobTables:
    """What rows are filled from: rollups by job of the range, and ledger rows by job."""

    rollups: Mapping[int, Columns]
    ledger: Mapping[int, Columns]
    nodes: Mapping[int, tuple[NodeSignal, ...]]
    waste_money: WasteMoney
    causes: Mapping[int, Cause | None] = field(default_factory=dict)
    """Likely causes of running jobs, where they are known; other rows take the one of their ledger."""


Diagnosed = Callable[[Moment, Mapping[int, JobNow]], Mapping[int, Cause | None]]
"""The likely causes of jobs, as they are known now."""


def jobs_of(sources: Sources, present: Present, moment: Moment, status: Status, diagnosed: Diagnosed) -> Jobs:
    """All running jobs, and those that ended within the range, the biggest waste first."""
    then = moment.at_end()
    found = present.jobs(moment, within(then))
    ledger = sources.accounting.ledger_rows(then.start, then.now, cluster=then.asked.cluster)
    made = replace(tables(sources, then, found, ledger), causes=diagnosed(moment, found))
    rows = job_rows(sources, then, found, made)
    ordered = sorted(rows, key=lambda row: (row.state == "ended", -row.waste_gpu_milliseconds, row.job_id))
    return Jobs(status=status, range_seconds=moment.asked.seconds, rows=tuple(ordered))


def within(moment: Moment) -> list[int]:
    """Numbers of the jobs of the cluster that ran within the range."""
    start = moment.now - moment.asked.seconds
    return [
        number
        for number, job in sorted(moment.state.jobs.items())
        if (moment.asked.cluster is None or job.cluster == moment.asked.cluster)
        and (job.end_seconds is None or job.end_seconds >= start)
        and (job.start_seconds is None or job.start_seconds <= moment.now)
    ]


def tables(sources: Sources, moment: Moment, found: Mapping[int, JobNow], ledger: Columns) -> JobTables:
    """Rollups of the range and the given ledger rows, by job."""
    rows = sources.accounting.job_rollups(moment.start, moment.now, hourly=moment.hourly)
    rows = rollups.told_only(rows, found)
    return JobTables(
        rollups=rollups.by_job(rows),
        ledger=ledger_by_job(ledger),
        nodes=signals_by_job(moment.state),
        waste_money=waste_money_by_job(sources, ledger),
    )


def waste_money_by_job(sources: Sources, ledger: Columns) -> WasteMoney:
    """What the waste of every job cost."""
    rates = sources.rates()
    rows = take(ledger, is_waste(ledger))
    numbers, keys = np.unique(rows["job"], return_inverse=True)
    costs = money.by_key(rows, rates, keys, numbers.size)
    wasted = dict(zip(numbers.tolist(), costs, strict=True))
    return WasteMoney(wasted=wasted, nothing=0.0 if rates.known else None)


def ledger_by_job(ledger: Columns) -> dict[int, Columns]:
    """GPU milliseconds by bucket and reason of every job, whatever the node and time."""
    width = len(BUCKETS) * len(REASONS)
    present = np.flatnonzero(np.bincount(ledger["job"], minlength=1))
    place = np.zeros(int(present.max(initial=0)) + 1, dtype=np.int64)
    place[present] = np.arange(present.size)
    keys = place[ledger["job"]] * width + ledger["bucket"] * len(REASONS) + ledger["reason"]
    totals = np.zeros(present.size * width, dtype=np.int64)
    np.add.at(totals, keys, ledger["gpu_milliseconds"])
    result = {}
    for number, amounts in zip(present.tolist(), totals.reshape(-1, width), strict=True):
        kinds = np.flatnonzero(amounts)
        if number > 0:
            result[number] = {
                "bucket": kinds // len(REASONS),
                "reason": kinds % len(REASONS),
                "gpu_milliseconds": amounts[kinds],
            }
    return result


def job_rows(sources: Sources, moment: Moment, found: Mapping[int, JobNow], made: JobTables) -> list[JobRow]:
    """Rows of these jobs."""
    return [job_row(sources, moment, job, made) for job in found.values()]


def job_row(sources: Sources, moment: Moment, job: JobNow, made: JobTables) -> JobRow:
    """One row."""
    record = job.record
    rolled, ledger = made.rollups.get(record.number), made.ledger.get(record.number)
    wanted = target_of(record, job.kind, sources.settings.targets)
    newest = evidence.newest(job, rolled, moment.now)
    figure = evidence.figure_of(job, moment.state, newest)
    last_step, last_step_seconds = job.last_step or (None, None)
    waste, classes = _waste(ledger)
    return JobRow(
        job_id=record.job_id, name=record.name, cluster=record.cluster, user=record.user, account=record.account,
        kind=job.kind, state=state_of(job), scheduler=record.scheduler, scheduler_job_id=record.scheduler_job_id,
        waiting_for=waiting_for(job),
        gpus=figure.gpus, gpus_basis=figure.gpus_basis, gpus_observed=figure.gpus_observed,
        nodes=len({part.node for part in record.parts}),
        gpu_model=figure.gpu_model,
        mfu=figure,
        wall_mfu_ratio=_wall(job, rolled),
        target=wanted,
        kernel_active_ratio=evidence.mean_of(newest, "kernel_active_ratio"),
        tensor_active_ratio=evidence.mean_of(newest, "tensor_active_ratio"),
        trend=rollups.trend(rolled, moment.start, moment.now) if rolled else (),
        start_seconds=record.start_seconds,
        end_seconds=record.end_seconds,
        last_step=last_step,
        last_step_seconds=last_step_seconds,
        waste_gpu_milliseconds=waste,
        waste_money=made.waste_money.of(record.number),
        waste_by_class=classes,
        cause=made.causes[record.number]
        if record.number in made.causes and not job.ended
        else _cause(job, wanted.ratio, ledger, made.nodes.get(record.number, ())),
        findings=len(record.findings) + len(evidence.doubts_of(job, newest)),
        trainer=job.basis.run.trainer,
        tracker_url=record.tracker_url,
    )  # fmt: skip


def _wall(job: JobNow, rolled: Columns | None) -> float | None:
    """Wall MFU over the range; unknown where the job has no step MFU either."""
    return None if rolled is None or job.figure.reason is not None else wall_ratio(rolled)


def _cause(
    job: JobNow, target_ratio: float | None, ledger: Columns | None, nodes: tuple[NodeSignal, ...]
) -> Cause | None:
    signals = Signals(
        gpus=job.figure.gpus, figure=job.figure, target_ratio=target_ratio, nodes=() if job.ended else nodes
    )
    return likely_cause(empty_rows() if ledger is None else ledger, signals)


def _waste(ledger: Columns | None) -> tuple[int, dict[str, int]]:
    """Wasted GPU milliseconds, and by class."""
    if ledger is None:
        return 0, {}
    amounts = by_class(ledger)
    return int(ledger["gpu_milliseconds"][is_waste(ledger)].sum()), {
        name: amounts[name] for name in WASTE_CLASSES if name in amounts
    }


def state_of(job: JobNow) -> JobState:
    """Where the job stands: ended, without progress, waiting for its first step, else running.

    A job of which no steps are expected runs without any.
    """
    if job.ended:
        return "ended"
    if job.bucket == "HANG":
        return "stalled"
    stepped = job.timeline is not None and job.timeline.first_step_seconds is not None
    expected = any(part.waiting_for is not None for part in job.record.parts)
    return "waiting" if expected and not stepped else "running"


def waiting_for(job: JobNow) -> str | None:
    """Why there are no steps: ``steps`` while a log is followed anywhere, else the first reason given."""
    if state_of(job) != "waiting":
        return None
    told = [part.waiting_for for part in job.record.parts if part.waiting_for is not None]
    return "steps" if "steps" in told else next(iter(told), None)
