"""``Accounting``: final windows are written once, the newest time is recomputed, the past is filled in.

Everything that a page shows of GPU time, money or utilisation is read from here.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from zoneinfo import ZoneInfo

import numpy as np

from flopwatch import query
from flopwatch.answers.goodput import Goodput
from flopwatch_collector.bookkeeping.daybook import DayBook, DayRecord
from flopwatch_collector.bookkeeping.history import History
from flopwatch_collector.bookkeeping.peaks import Peaks
from flopwatch_collector.bookkeeping.prices import Prices
from flopwatch_collector.bookkeeping.provisional import Provisional
from flopwatch_collector.bookkeeping.window import Computed, Windows
from flopwatch_collector.compute import classes, days
from flopwatch_collector.compute.breakeven import verdict
from flopwatch_collector.compute.buckets import WINDOW_SECONDS
from flopwatch_collector.compute.figure import step_figure
from flopwatch_collector.compute.goodput import goodput_of
from flopwatch_collector.compute.inputs import LedgerPolicy
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.ledger import joined
from flopwatch_collector.compute.mfu import JobBasis
from flopwatch_collector.compute.rollup import ROLLUP_COLUMNS, empty_rollup
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import Columns, Fleet, FleetState
from flopwatch_collector.store.port import Control, Store
from flopwatch_collector.store.sharing import Reserved

HORIZON_SECONDS = 660.0
"""Younger time is provisional: the longest usual hang threshold, which exceeds the idle grace, and a minute."""
FILL_SECONDS = 6.0
"""After so long a tick begins no further piece of history, which takes about a second."""
LEAST_FILL_SECONDS = 1.0
"""So long it fills in history, though all else took longer."""
FIGURE_LOOKBACK_SECONDS = 21_600.0
DAYS_KEPT = 91
DAY_SECONDS = 86_400.0
FOLLOW_SECONDS = 30.0
"""A collector that only follows reads this often what the one on duty has written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """What the accounting is told beside the data."""

    time_zone: str = "UTC"
    prices: Prices = field(default_factory=Prices)
    priced: Callable[[], Prices] | None = None
    """The prices that count now, where they may change while the process runs."""
    timer: Callable[[], float] = time.monotonic
    """Seconds that measure how long work takes and how long data have been arriving."""
    since_seconds: float | None = None
    """Earlier than the first sample, where capacity is known to have been there."""
    raw_days: float = math.inf
    """How long raw data are kept: older windows are not computed again."""
    elastic_nodes: tuple[str, ...] = ()
    """Names of nodes that come and go, ``*`` for any text."""


class Accounting:
    """The ledger, rollups, days and figures of a fleet. Reads are safe from any thread while ``tick`` runs."""

    def __init__(self, store: Store, control: Control, fleet: Fleet, terms: Terms | None = None) -> None:
        terms = terms or Terms()
        self._fleet = fleet
        self._timer = terms.timer
        self._stopping = threading.Event()
        self._zone = ZoneInfo(terms.time_zone)
        self._priced = terms.priced or (lambda: terms.prices)
        self._store = store
        self._memory = Reserved(control)
        self._policy = LedgerPolicy(elastic_nodes=terms.elastic_nodes)
        self._load()
        self._history = History(store, control, self._zone, terms.timer)
        self._history.begin_with(terms.since_seconds, terms.raw_days * DAY_SECONDS)
        self._lock = threading.Lock()
        self._ticking = threading.Lock()
        self._now = 0.0
        self._edge = 0.0
        self._followed = -FOLLOW_SECONDS
        self._young = Provisional()
        self._provisional = Computed.nothing()
        self._figures: dict[int, query.MfuFigure] = {}

    def _load(self) -> None:
        """What is kept beside the windows, as it was written last."""
        self._windows = Windows(self._store, self._memory, self._policy)
        self._peaks = Peaks(self._memory)
        self._daybook = DayBook(self._memory)

    def tick(self, now: float) -> None:
        """Bring everything up to ``now``: write what became final, recompute the rest, fill in some history."""
        with self._ticking:
            self._tick(self._fleet.state(), now)

    def take_over(self) -> None:
        """From now on this collector writes what becomes final: start from what the others have written."""
        with self._ticking:
            self._memory.on_duty = True
            self._load()
            self._history.take_over()

    def follow(self, now: float) -> None:
        """Bring everything up to ``now`` while another collector writes what becomes final."""
        with self._ticking:
            edge = _edge(now) - WINDOW_SECONDS  # the window that became final last may not be written yet
            if self._memory.on_duty or self._timer() - self._followed >= FOLLOW_SECONDS:
                self._memory.on_duty = False
                self._load()
                self._history.follow(now, edge)
                self._followed = self._timer()
            self._provide(self._fleet.state(), now, edge)
            self._windows.newly_late(edge)

    def _tick(self, state: FleetState, now: float) -> None:
        edge = _edge(now)

        def compute(start: float, end: float) -> Computed:
            return self._windows.compute(state, start, end, now)

        started = self._timer()
        if self._peaks.changed(state.site_accelerators):
            self._history.mark(now - self._history.raw_seconds, edge)
        self._history.note_capacity(min((gpu.from_seconds for gpu in state.gpus.values()), default=None))
        self._history.advance(now, edge, compute)
        self._provide(state, now, edge)
        for start, end in self._windows.newly_late(edge):
            self._history.mark(start, end)
        until = max(started + FILL_SECONDS, self._timer() + LEAST_FILL_SECONDS)
        self._history.fill(now, edge, compute, lambda: self._timer() < until and not self._stopping.is_set())
        self._keep_days(now, edge)

    def _keep_days(self, now: float, edge: float) -> None:
        """Note complete days, freeze those whose time has come, and revise what changed after that."""
        for start, end in self._history.changed():
            self._daybook.changed(start, end)
        complete = [
            (day, start, end)
            for day, start, end in days.borders(now, DAYS_KEPT, self._zone)
            if end <= edge and self._history.complete(start, end)
        ]
        self._daybook.keep(
            now,
            complete,
            self._history.ledger,
            lambda start, end: self._history.rollups(start, end, None, hourly=True),
        )

    def _provide(self, state: FleetState, now: float, edge: float) -> None:
        """Compute what is still provisional, for readers."""
        begin = self._history.begin_seconds(now)
        provisional: Computed | None = Computed.nothing()
        if begin is not None:
            provisional = self._young.compute(
                max(edge, begin),
                now,
                lambda start, end: self._windows.provisional(state, start, end, now),
            )
        if provisional is None:
            return
        figures = self._make_figures(provisional)
        with self._lock:
            self._now, self._edge = now, edge
            self._provisional = provisional
            self._figures = figures

    def stop(self) -> None:
        """Have a tick that runs end soon: what it has not computed, a later one will."""
        self._stopping.set()

    def late(self, start: float, end: float) -> None:
        """Data of this time arrived late: final windows of it and around it are to be computed again."""
        self._windows.forget()
        self._history.arrived(start, end)

    def again(self, start: float, end: float) -> None:
        """What figures of this time are made from is known better: its final windows are to be computed again."""
        self._history.mark(start, end)

    def learned(self) -> int:
        """Rises when something was learned that figures of any time are made from, such as a GPU's idle power."""
        return self._windows.learned()

    def progress(self) -> float | None:
        """Share of the history that is computed; None when none is outstanding."""
        return self._history.progress()

    def filled(self) -> int:
        """Rises whenever windows of the past, not only the newest, were computed: what was read of them is old."""
        return self._history.filled()

    def settled(self) -> bool:
        """Whether all final windows are computed and none is known to be wrong."""
        return self._history.settled()

    @property
    def provisional_from_seconds(self) -> float | None:
        """From when on ledger rows may still change; None before the first tick."""
        with self._lock:
            return self._edge or None

    def ledger_rows(
        self, start: float, end: float, *, cluster: str | None = None, job: int | None = None
    ) -> Columns:
        """Ledger rows of the windows that begin in the interval, the running one included.

        Columns ``buckets.LEDGER_COLUMNS``; of closed days that lie inside, one row a day may stand for many
        windows (``ts`` is then the day's start).
        """
        with self._lock:
            edge, provisional = self._edge, self._provisional.ledger
        kept = self._history.ledger_parts(start, min(end, edge)) if edge else []
        inside = (provisional["ts"] >= start) & (provisional["ts"] < end)
        rows = joined([*kept, take(provisional, inside)])
        if cluster is None and job is None:
            return rows
        chosen = np.ones(rows["ts"].size, dtype=np.bool_)
        if cluster is not None:
            nodes = [node.number for node in self._fleet.state().nodes.values() if node.cluster == cluster]
            chosen &= np.isin(rows["node"], np.array(nodes, dtype=np.int64))
        if job is not None:
            chosen &= rows["job"] == job
        return take(rows, chosen)

    def answer(
        self, start: float, end: float, *, cluster: str | None = None, job: int | None = None
    ) -> query.Ledger:
        """The ledger of the interval with its classes, money and ratios."""
        rows = self.ledger_rows(start, end, cluster=cluster, job=job)
        since = self.provisional_from_seconds
        provisional = since if since is not None and since < end else None
        rates = self._priced().rates(self._fleet.state().nodes)
        return classes.to_answer(rows, rates, start, end, provisional)

    def days(self, now: float, n: int = 30, cluster: str | None = None) -> tuple[query.Day, ...]:
        """The last ``n`` local calendar days, oldest first, today last."""
        result = []
        for day, start, end in days.borders(now, n, self._zone):
            rows = self.ledger_rows(start, end, cluster=cluster)
            complete = end <= self._edge and self._history.complete(start, end)
            made = days.day_answer(day, rows, complete=complete)
            result.append(_noted(made, self._daybook.record(made.day) if cluster is None else None))
        return tuple(result)

    def verdict(self, now: float, cluster: str | None = None) -> query.Verdict:
        """The fleet against its line over the last 90 days; the mean is of the last 30."""
        state, prices = self._fleet.state(), self._priced()
        return verdict(
            self.days(now, 90, cluster),
            line=prices.line,
            price=prices.mean(state.nodes, state.gpus.values()),
        )

    def today_start(self, now: float) -> float:
        """Epoch seconds of the local day's start."""
        return days.day_start(days.day_of(now, self._zone), self._zone)

    def job_rollups(
        self, start: float, end: float, jobs: Iterable[int] | None = None, *, hourly: bool = False
    ) -> Columns:
        """Rollup rows of jobs (``rollup.ROLLUP_COLUMNS``) of windows that begin in the interval.

        ``hourly``: closed hours as one row each, the rest by five minutes.
        """
        wanted = None if jobs is None else sorted(jobs)
        with self._lock:
            edge, provisional = self._edge, self._provisional.rollup
        parts = (
            [self._history.rollups(start, min(end, edge), wanted, hourly=hourly)]
            if edge
            else [empty_rollup()]
        )
        inside = (provisional["ts"] >= start) & (provisional["ts"] < end)
        if wanted is not None:
            inside &= np.isin(provisional["job"], np.array(wanted, dtype=np.int64))
        parts.append(take(provisional, inside))
        return {name: np.concatenate([part[name] for part in parts]) for name in ROLLUP_COLUMNS}

    def timeline(self, job: int, start: float, end: float, now: float) -> JobTimeline | None:
        """The timeline of a job over an interval; None when there is no such job."""
        state = self._fleet.state()
        if job not in state.jobs:
            return None
        return self._windows.timelines(state, [job], (start, end), now).get(job)

    def goodput(self, job: int, start: float, end: float, now: float) -> Goodput | None:
        """The goodput of a job over an interval; None when there is no such job, or it never reported of its run."""
        timeline = self.timeline(job, start, end, now)
        if timeline is None or not timeline.instrumented:
            return None
        return self.goodput_of(timeline, self.ledger_rows(start, end, job=job), (start, end), now)

    def goodput_of(
        self, timeline: JobTimeline, rows: Columns, span: tuple[float, float], now: float
    ) -> Goodput:
        """The same from the job's timeline and ledger rows of the interval."""
        state = self._fleet.state()
        until = min(span[1], self._windows.run_until(state, timeline.job, now))
        liable = self._windows.liable(state, timeline, now)
        return goodput_of(timeline, rows, (span[0], until), liable)

    def basis(self, job: int) -> JobBasis | None:
        """What the job's MFU is made from; None when there is no such job."""
        state = self._fleet.state()
        return self._windows.basis(state, job) if job in state.jobs else None

    def newest(self) -> tuple[float, Computed]:
        """When the newest tick was, and what it computed of the time that is still provisional."""
        with self._lock:
            return self._now, self._provisional

    def figures(self) -> Mapping[int, query.MfuFigure]:
        """Step MFU of every running job, as of the newest tick; none before the first one."""
        with self._lock:
            return self._figures

    def figure(self, job: int, now: float) -> query.MfuFigure | None:
        """Step MFU of any job, also an ended one; None when there is no such job."""
        with self._lock:
            known = self._figures.get(job)
        return known if known is not None else self._late_figure(self._fleet.state(), job, now)

    def _late_figure(self, state: FleetState, job: int, now: float) -> query.MfuFigure | None:
        record = state.jobs.get(job)
        if record is None:
            return None
        until = min(now, (record.end_seconds or record.last_seen_seconds or now) + 1.0)
        lines = self._windows.timelines(state, [job], (until - FIGURE_LOOKBACK_SECONDS, until), now)
        return step_figure(lines[job], self._windows.basis(state, job))

    def _make_figures(self, computed: Computed) -> dict[int, query.MfuFigure]:
        return {
            number: step_figure(computed.timelines[number], basis)
            for number, basis in computed.bases.items()
            if number in computed.timelines
        }


def _edge(now: float) -> float:
    """From when on time is provisional."""
    return float((now - HORIZON_SECONDS) // WINDOW_SECONDS * WINDOW_SECONDS)


def _noted(day: query.Day, record: DayRecord | None) -> query.Day:
    """The day with what was noted of it."""
    if record is None:
        return day
    barely = record.barely_used_gpu_milliseconds
    return replace(
        day,
        revision=record.revision,
        frozen=record.frozen_seconds is not None,
        revised_seconds=record.revised_seconds,
        barely_used_gpu_milliseconds=barely,
        billable_without_barely_used_ratio=days.without(day, barely),
    )
