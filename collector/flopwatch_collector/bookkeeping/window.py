"""From the store and the fleet's state to ledger rows and rollups of a stretch of time."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from flopwatch.answers.goodput import Liability
from flopwatch_collector.bookkeeping.declarations import Declarations
from flopwatch_collector.bookkeeping.idle import IdlePowers
from flopwatch_collector.bookkeeping.memo import Memos
from flopwatch_collector.compute import demand, hang, progress
from flopwatch_collector.compute.buckets import empty_rows
from flopwatch_collector.compute.devices import devices_of
from flopwatch_collector.compute.gpu_state import STALE_INTERVALS, STATE_SAMPLES
from flopwatch_collector.compute.holds import lease_end
from flopwatch_collector.compute.inputs import JobWork, LedgerInputs, LedgerPolicy
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.ledger import account, liable_of, run_until, silences_within, silent_gpus
from flopwatch_collector.compute.mfu import JobBasis, basis_of, useful_seconds
from flopwatch_collector.compute.rollup import SAMPLED, empty_rollup, job_rollup
from flopwatch_collector.compute.runs import join
from flopwatch_collector.compute.straggler import confirmed_windows, straggling
from flopwatch_collector.compute.throttle import THROTTLE_SAMPLES, throttling
from flopwatch_collector.compute.timeline import JobTimeline, timeline_after
from flopwatch_collector.model import Columns, FleetState, JobRecord, Launch, LeaseRecord, empty
from flopwatch_collector.store.port import Control, Store

STEP_LOOK_SECONDS = 7200.0
"""How far around a stretch steps are read: records that cover its borders, and sessions that went back."""
FAR_SECONDS = 14 * 86_400.0
SAMPLE_COLUMNS = tuple(
    name
    for name in dict.fromkeys((*STATE_SAMPLES, *hang.EVIDENCE_SAMPLES, *SAMPLED, *THROTTLE_SAMPLES))
    if name not in {"ts", "gpu"}
)
LONGEST_INTERVAL_SECONDS = 900.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Computed:
    """What a stretch of time came to."""

    ledger: Columns
    rollup: Columns
    timelines: Mapping[int, JobTimeline]
    bases: Mapping[int, JobBasis]
    samples: int
    """Samples read for it."""

    @classmethod
    def nothing(cls) -> "Computed":
        """No time at all."""
        return cls(ledger=empty_rows(), rollup=empty_rollup(), timelines={}, bases={}, samples=0)


class Windows:
    """Computes stretches of time from what the store has. One thread computes; timelines may be read from any."""

    def __init__(self, store: Store, control: Control, policy: LedgerPolicy | None = None) -> None:
        self._store = store
        self._memos = Memos(control)
        self._declarations = Declarations(store)
        self._idle = IdlePowers(control)
        self._policy = policy or LedgerPolicy()
        self._late: list[tuple[float, float]] = []

    def compute(self, state: FleetState, start: float, end: float, now: float) -> Computed:
        """Ledger rows and rollups of ``start`` to ``end``, which are final: more is learned from them."""
        until = min(end, now)
        if until <= start:
            return Computed.nothing()
        inputs, bases = self._inputs(state, (start, until), now)
        if until < now:
            self._idle.learn(inputs.samples)
        return self._computed(state, inputs, bases, (start, until))

    def provisional(self, state: FleetState, start: float, end: float, now: float) -> Computed:
        """The same of time that is not final yet."""
        until = min(end, now)
        if until <= start:
            return Computed.nothing()
        return self._computed(state, *self._inputs(state, (start, until), now), (start, until))

    def _computed(
        self,
        state: FleetState,
        inputs: LedgerInputs,
        bases: Mapping[int, JobBasis],
        span: tuple[float, float],
    ) -> Computed:
        rows = account(inputs, *span)
        self._learn(state, inputs, inputs.now)
        return Computed(
            ledger=rows,
            rollup=job_rollup(rows, inputs.samples, inputs.timelines, bases, inputs.now),
            timelines=inputs.timelines,
            bases=bases,
            samples=inputs.samples["ts"].size,
        )

    def _inputs(
        self, state: FleetState, span: tuple[float, float], now: float
    ) -> tuple[LedgerInputs, dict[int, JobBasis]]:
        start, end = span
        jobs = {lease.job for lease in state.leases.values() if _overlaps(lease, state, (start, end))}
        leases = tuple(lease for lease in state.leases.values() if lease.job in jobs)
        lines = {
            job: line for job, line in self.timelines(state, jobs, span, now).items() if line.instrumented
        }
        margin = self._policy.idle_grace_seconds + STALE_INTERVALS * 10.0
        longest = max((node.interval_seconds for node in state.nodes.values()), default=10.0)
        ahead = STALE_INTERVALS * max(longest, LONGEST_INTERVAL_SECONDS if now - end > 3600.0 else longest)
        read = (start - margin, min(now, end + ahead) + 0.002)
        samples = self._store.gpu_samples(*read, SAMPLE_COLUMNS)
        bases = self._bases(state, lines)
        inputs = LedgerInputs(
            now=now,
            nodes=state.nodes,
            gpus=state.gpus,
            jobs=state.jobs,
            leases=leases,
            timelines=lines,
            samples=samples,
            events=self._declarations.before(end, now),
            queues=self._queues(start, end),
            idle_watts=self._idle.watts(),
            newest_seconds=_newest(state),
            work=_work(lines, bases, samples, now),
            policy=self._policy,
            elastic=self._elastic(state),
        )
        return self._with_evidence(inputs, span, read), bases

    def _elastic(self, state: FleetState) -> frozenset[int]:
        """Nodes whose name fits a pattern of elastic ones."""
        return frozenset(
            number
            for number, node in state.nodes.items()
            if any(fnmatchcase(node.name, pattern) for pattern in self._policy.elastic_nodes)
        )

    def _queues(self, start: float, end: float) -> Columns:
        """Queue snapshots of a stretch, and of so long before it that they may still hold; nothing without any."""
        rows = self._store.events(start - demand.STALE_SECONDS, end, (demand.QUEUE_EVENT,))
        return rows if rows["ts"].size else {}

    def _with_evidence(
        self, inputs: LedgerInputs, span: tuple[float, float], read: tuple[float, float]
    ) -> LedgerInputs:
        """The inputs with samples outside of what was ``read`` that decide about silences of the span."""
        columns = tuple(name for name in hang.EVIDENCE_SAMPLES if name not in {"ts", "gpu"})
        parts = []
        for job in inputs.timelines:
            for silence in silences_within(inputs, job, span):
                gpus = sorted(silent_gpus(inputs, silence))
                begin, finish = hang.evidence_span(silence)
                for first, last in (
                    (begin, min(finish, read[0])),
                    (max(begin, read[1]), min(finish, inputs.now)),
                ):
                    if last > first:
                        parts.append(self._store.gpu_samples(first, last + 0.001, columns, gpus=gpus))
        if not parts:
            return inputs
        evidence = {name: np.concatenate([part[name] for part in parts]) for name in hang.EVIDENCE_SAMPLES}
        return replace(inputs, evidence=evidence)

    def timelines(
        self, state: FleetState, jobs: Iterable[int], span: tuple[float, float], now: float
    ) -> dict[int, JobTimeline]:
        """Timelines of jobs around a stretch of time."""
        wanted = sorted(job for job in jobs if job in state.jobs)
        if not wanted:
            return {}
        reach = STEP_LOOK_SECONDS + progress.GAP_LOOK_SECONDS
        start, end = span[0] - reach, min(now, span[1] + STEP_LOOK_SECONDS) + 0.001
        steps = self._store.steps(start, end, jobs=wanted)
        phases = self._store.phases(start, end, jobs=wanted)
        by_job: dict[int, list[Launch]] = {}
        for launch in state.launches.values():
            by_job.setdefault(launch.job, []).append(launch)
        own = {job: take(steps, steps["job"] == job) for job in wanted}
        before = {job: self._memos.before(job) for job in wanted}
        silent = []
        for job in wanted:
            begins = [before[job].first_step_seconds, *(each.begin_seconds for each in by_job.get(job, ()))]
            began = min((time for time in begins if time is not None), default=np.inf)
            near = (own[job]["ts"] > span[0] - STEP_LOOK_SECONDS) & (own[job]["ts"] <= span[0])
            if began < start and not near.any():
                silent.append(job)
        for job, rows in self._last_before(silent, start).items():
            own[job] = _joined(rows, own[job])
        return {
            job: timeline_after(state.jobs[job], by_job.get(job, ()), (own[job], phases), now, before[job])
            for job in wanted
        }

    def _last_before(self, jobs: list[int], start: float) -> dict[int, Columns]:
        """The newest steps of jobs before a time, from as far back as it takes."""
        result: dict[int, Columns] = {}
        for back in (86_400.0, FAR_SECONDS):
            asked = [job for job in jobs if job not in result]
            if not asked:
                break
            found = self._store.steps(start - back, start, jobs=asked)
            for job in np.unique(found["job"]).astype(np.int64).tolist():
                rows = take(found, found["job"] == job)
                result[job] = take(rows, rows["ts"] >= rows["ts"].max() - progress.GAP_LOOK_SECONDS)
        return result

    def basis(self, state: FleetState, job: int) -> JobBasis:
        """What a job's MFU is made from, as far as known now."""
        return self._bases(state, (job,))[job]

    def _bases(self, state: FleetState, jobs: Collection[int]) -> dict[int, JobBasis]:
        """The bases of several jobs."""
        leases: dict[int, list[LeaseRecord]] = {job: [] for job in jobs}
        for lease in state.leases.values():
            if lease.job in leases:
                leases[lease.job].append(lease)
        return {job: _basis(state, state.jobs[job], own) for job, own in leases.items()}

    def run_until(self, state: FleetState, job: int, now: float) -> float:
        """Up to when a job's run is seen: its end, else now."""
        return run_until(self._bare(state, {}, now, job), job)

    def liable(self, state: FleetState, timeline: JobTimeline, now: float) -> dict[int, Liability]:
        """Whose loss the end of each of a run's sessions is, where that is known."""
        return liable_of(self._bare(state, {timeline.job: timeline}, now, timeline.job), timeline.job)

    def _bare(
        self, state: FleetState, lines: Mapping[int, JobTimeline], now: float, job: int
    ) -> LedgerInputs:
        """What is known of one job, without samples."""
        return LedgerInputs(
            now=now,
            nodes=state.nodes,
            gpus=state.gpus,
            jobs=state.jobs,
            leases=tuple(lease for lease in state.leases.values() if lease.job == job),
            timelines=lines,
            samples=empty(STATE_SAMPLES),
            events=self._declarations.before(now, now),
        )

    def _learn(self, state: FleetState, inputs: LedgerInputs, now: float) -> None:
        """Remember what the timelines show, and the time that it makes wrong."""
        rewound, found = self._memos.learn(inputs.timelines)
        for job in rewound:
            self._note_rewind(state, inputs.timelines[job], now)
        for job in found:
            steps = inputs.timelines[job].steps["ts"]
            if steps.size:
                self._late.append((float(steps[-1]), run_until(inputs, job)))
        self._memos.save()

    def _note_rewind(self, state: FleetState, timeline: JobTimeline, now: float) -> None:
        """Remember the time that a rewind made wrong: from the first step done again to the newest session."""
        record = state.jobs[timeline.job]
        launches = [launch for launch in state.launches.values() if launch.job == timeline.job]
        rows = self._store.steps(now - FAR_SECONDS, now, jobs=[timeline.job])
        before = self._memos.before(timeline.job)
        whole = timeline_after(record, launches, (rows, timeline.phases), now, before)
        lost = whole.steps["begin"][whole.steps["lost"]]
        if lost.size:
            self._late.append((float(lost.min()), float(whole.steps["ts"].max())))

    def learned(self) -> int:
        """Rises when something was learned that figures of any time are made from."""
        return self._idle.changes

    def forget(self) -> None:
        """Read again what was remembered of the store: something arrived late."""
        self._declarations.again()

    def newly_late(self, edge: float) -> list[tuple[float, float]]:
        """Stretches before ``edge`` that turned out wrong since the last call."""
        late, self._late = self._late, []
        if (since := self._declarations.new_since()) is not None:
            late.append((since, edge))
        return [(start, min(end, edge)) for start, end in late if start < min(end, edge)]


def _basis(state: FleetState, record: JobRecord, leases: Sequence[LeaseRecord]) -> JobBasis:
    run = join(record.runs)
    shared = any(lease.share_ratio < 1.0 for lease in leases)
    devices = devices_of(record, run, leases, state.gpus, state.site_accelerators)
    return basis_of(run, devices, shared=shared)


def _work(
    lines: Mapping[int, JobTimeline], bases: Mapping[int, JobBasis], samples: Columns, now: float
) -> dict[int, JobWork]:
    """What the steps of every run were worth, and what stragglers and throttling took of them."""
    slowed, slow = throttling(samples, now), confirmed_windows(samples)
    return {
        job: JobWork(
            useful_seconds=useful_seconds(line.steps, bases[job]),
            straggling=straggling(line, slow[job]) if job in slow else None,
            throttling=slowed.get(job),
        )
        for job, line in lines.items()
    }


def _newest(state: FleetState) -> dict[int, float]:
    """Time of every GPU's newest sample."""
    latest = state.latest
    return dict(zip(latest["gpu"].astype(np.int64).tolist(), latest["ts"].tolist(), strict=True))


def _overlaps(lease: LeaseRecord, state: FleetState, span: tuple[float, float]) -> bool:
    """Whether a lease is of the span."""
    end = lease_end(lease, state.jobs.get(lease.job))
    return lease.start_seconds < span[1] and (end is None or end > span[0])


def _joined(one: Columns, other: Columns) -> Columns:
    return {name: np.concatenate((one[name], other[name])) for name in other}
