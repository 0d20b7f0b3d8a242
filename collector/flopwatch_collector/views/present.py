"""What every job is doing now: its figure, the bucket it is in, and since when."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from flopwatch.query import MfuFigure
from flopwatch_collector.compute.buckets import BUCKETS, CODE
from flopwatch_collector.compute.devices import devices_of
from flopwatch_collector.compute.figure import step_figure
from flopwatch_collector.compute.mfu import JobBasis, basis_of
from flopwatch_collector.compute.runs import join
from flopwatch_collector.compute.timeline import JobTimeline, no_timeline
from flopwatch_collector.model import PHASE_KINDS, Columns, FleetState, JobRecord, LeaseRecord
from flopwatch_collector.views.held_since import HeldSince
from flopwatch_collector.views.sources import Moment, Sources

LATE_SECONDS = 3_600.0
"""The figure of an ended job is made from this much of its last time, and what accounting reads around it."""
PHASE_BUCKETS = {"startup": "STARTUP", "data": "DATA_WAIT", "eval": "EVAL", "checkpoint": "CKPT"}


@dataclass(frozen=True, kw_only=True, slots=True)
class JobNow:
    """A job as it stands."""

    record: JobRecord
    timeline: JobTimeline | None
    """Of a running job that has reported of its run, around now."""
    basis: JobBasis
    figure: MfuFigure
    last_step: tuple[int, float] | None
    """Number and end of the newest step; None before any."""
    bucket: str | None
    """The ledger's bucket it is in; None when unknown or when it has ended."""
    since_seconds: float | None
    """Since when it has been in the bucket, where that matters: held without work, and hangs."""

    @property
    def ended(self) -> bool:
        """Whether the job is over."""
        return self.record.end_seconds is not None

    @property
    def kind(self) -> str:
        """The kind of job, as its scheduler or its trainer says."""
        return self.record.kind if self.record.kind != "unknown" else self.basis.run.kind

    @property
    def steps_since_start(self) -> int | None:
        """Steps of the newest session; None without one, or when it began before what is read of it."""
        if self.timeline is None or not self.timeline.sessions:
            return None
        session = self.timeline.sessions[-1]
        rows = self.timeline.steps["session"] == session.number
        begin = self.timeline.steps["begin"][rows].min(initial=np.inf)
        if session.begin_seconds is not None and begin - session.begin_seconds > LATE_SECONDS:
            return None
        return int(self.timeline.steps["steps_covered"][rows].sum())


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """What a job's steps came to."""

    figure: MfuFigure
    last_step: tuple[int, float] | None


class Present:
    """Jobs as they stand. Figures of ended jobs are made once and remembered."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._ended: dict[tuple[int, float, float | None], Figures] = {}
        self._held = HeldSince()

    def jobs(self, moment: Moment, numbers: Iterable[int]) -> dict[int, JobNow]:
        """The asked jobs, by number."""
        _, newest = self._sources.accounting.newest()
        figures = self._sources.accounting.figures()
        leases = leases_by_job(moment.state)
        held = self._held.of(self._sources.accounting, newest.ledger, moment.now)
        result = {}
        for number in numbers:
            record = moment.state.jobs[number]
            basis = newest.bases.get(number) or job_basis(moment.state, record, leases.get(number, ()))
            timeline = newest.timelines.get(number)
            made = self._figures(record, basis, (figures.get(number), timeline), moment.now)
            bucket, since = bucket_now(record, timeline, newest.ledger, held.get(number), moment.now)
            result[number] = JobNow(
                record=record,
                timeline=timeline,
                basis=basis,
                figure=made.figure,
                last_step=made.last_step,
                bucket=bucket,
                since_seconds=since,
            )
        return result

    def _figures(
        self,
        record: JobRecord,
        basis: JobBasis,
        known: tuple[MfuFigure | None, JobTimeline | None],
        now: float,
    ) -> Figures:
        figure, timeline = known
        if record.end_seconds is None:
            made = figure or step_figure(timeline or no_timeline(record, now), basis)
            return Figures(figure=made, last_step=newest_step(timeline))
        key = (record.number, record.end_seconds, record.declared_seconds)
        if key not in self._ended:
            end = min(now, record.end_seconds + 1.0)
            late = self._sources.accounting.timeline(record.number, end - LATE_SECONDS, end, now)
            made = step_figure(late or no_timeline(record, now), basis)
            self._ended[key] = Figures(figure=made, last_step=newest_step(late))
        return self._ended[key]


def newest_step(timeline: JobTimeline | None) -> tuple[int, float] | None:
    """Number and end of a timeline's newest step."""
    if timeline is None or not timeline.steps["ts"].size:
        return None
    newest = int(np.argmax(timeline.steps["ts"]))
    return int(timeline.steps["step"][newest]), float(timeline.steps["ts"][newest])


def leases_by_job(state: FleetState) -> dict[int, list[LeaseRecord]]:
    """The leases of every job."""
    result: dict[int, list[LeaseRecord]] = {}
    for lease in state.leases.values():
        result.setdefault(lease.job, []).append(lease)
    return result


def job_basis(state: FleetState, record: JobRecord, leases: Iterable[LeaseRecord]) -> JobBasis:
    """What a job's MFU would be made from."""
    own = list(leases)
    run = join(record.runs)
    shared = any(lease.share_ratio < 1.0 for lease in own)
    devices = devices_of(record, run, own, state.gpus, state.site_accelerators)
    return basis_of(run, devices, shared=shared)


def bucket_now(
    record: JobRecord, timeline: JobTimeline | None, newest: Columns, held: float | None, now: float
) -> tuple[str | None, float | None]:
    """(bucket, since): of a run from its own records, else from the newest window of the ledger."""
    if record.end_seconds is not None:
        return None, None
    if held is not None:
        own = newest["job"] == record.number
        code = int(newest["bucket"][own][-1])
        return BUCKETS[code], held
    if timeline is None:
        return _largest(record.number, newest), None
    last = timeline.last_progress_seconds
    if _hangs(record.number, timeline, newest, now):
        return "HANG", last
    return _run_bucket(timeline, record.number, newest), None


def _hangs(number: int, timeline: JobTimeline, newest: Columns, now: float) -> bool:
    """Whether the run is silent beyond its threshold now, and the ledger's newest window of it is a hang."""
    last = timeline.last_progress_seconds
    own = newest["job"] == number
    if last is None or not own.any() or now - last <= timeline.hang_threshold_seconds:
        return False
    window = own & (newest["ts"] == newest["ts"][own].max())
    return bool((newest["bucket"][window] == CODE["HANG"]).any())


def _run_bucket(timeline: JobTimeline, number: int, newest: Columns) -> str | None:
    """An open phase, start-up or recovery while the newest session has no step; else what is largest."""
    phases = timeline.phases
    running = np.isnan(phases["end"]) & ~(phases["blocking"] == 0)
    if running.any():
        kind = PHASE_KINDS[int(phases["kind"][running][-1])]
        if kind in PHASE_BUCKETS and not _step_after(timeline, float(phases["ts"][running][-1])):
            return PHASE_BUCKETS[kind]
    session = timeline.sessions[-1] if timeline.sessions else None
    if session is not None and not (timeline.steps["session"] == session.number).any():
        return "STARTUP" if session.number == 1 else "RECOVERY"
    return _largest(number, newest)


def _step_after(timeline: JobTimeline, begin: float) -> bool:
    return bool((timeline.steps["ts"] > begin).any())


def _largest(number: int, newest: Columns) -> str | None:
    """The bucket with most of the job's time in its newest window; None when the ledger has none of it."""
    own = newest["job"] == number
    if not own.any():
        return None
    window = own & (newest["ts"] == newest["ts"][own].max())
    totals = np.zeros(len(BUCKETS), dtype=np.int64)
    np.add.at(totals, newest["bucket"][window], newest["gpu_milliseconds"][window])
    return BUCKETS[int(totals.argmax())]
