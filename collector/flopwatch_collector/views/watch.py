"""What is remembered between evaluations: who was suspected, and what counters were."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from flopwatch.query import JobRow
from flopwatch_collector.bookkeeping.declarations import Declarations
from flopwatch_collector.compute.detection import baseline
from flopwatch_collector.compute.detection.lemons import LOOKBACK_SECONDS, Lemon, lemons
from flopwatch_collector.compute.detection.overdue import Silence, may_decide
from flopwatch_collector.compute.detection.peers import Suspect, suspect_of
from flopwatch_collector.model import Columns, FleetState, empty
from flopwatch_collector.views import watching
from flopwatch_collector.views.link_health import LinkBook
from flopwatch_collector.views.node_health import XID_SECONDS, Reported, Seen, healths, incidents_of
from flopwatch_collector.views.pace import Movements
from flopwatch_collector.views.present import JobNow
from flopwatch_collector.views.sources import Sources
from flopwatch_collector.views.spending import SpendingBook
from flopwatch_collector.views.told_standing import told
from flopwatch_collector.watched import NodeHealth, WatchedRun

REPORT_SECONDS = 300.0
REPORTS = 4
TRAFFIC_SECONDS = 300.0
TRAFFIC_COLUMNS = ("ts", "node", "transmit_bytes_per_second", "receive_bytes_per_second")


@dataclass(slots=True)
class Watch:
    """The memory of one collector's evaluations; used by one thread."""

    seen: Seen = field(default_factory=Seen)
    suspects: dict[int, tuple[Suspect | None, ...]] = field(default_factory=dict)
    links: LinkBook = field(default_factory=LinkBook)
    movements: Movements = field(default_factory=Movements)
    lemons: tuple[Lemon, ...] = ()
    reported_seconds: float = 0.0
    spending: SpendingBook = field(default_factory=SpendingBook)
    declarations: Declarations | None = None

    def nodes(self, sources: Sources, state: FleetState, now: float) -> dict[int, NodeHealth]:
        """The health of every node."""
        alerts = sources.alerts.active()
        reported = Reported(
            events=sources.store.events(now - XID_SECONDS, now, ("xid",)),
            alerts=alerts,
            lemons=self.lemons,
            ports=self.links.notable(sources.store, state, alerts, now),
        )
        return healths(state, reported, self.seen, now)

    def told(self, sources: Sources, state: FleetState, now: float) -> dict[int, str]:
        """What pushed events say of whole nodes now, by node number."""
        if self.declarations is None:
            self.declarations = Declarations(sources.store)
        return told(self.declarations.before(now + 0.001, now), state)

    def runs(
        self,
        sources: Sources,
        state: FleetState,
        found: Mapping[int, tuple[JobNow, JobRow, Columns | None]],
        now: float,
    ) -> dict[int, WatchedRun]:
        """What is watched of every running job."""
        samples = watching.by_job(state.latest)
        running = {number: one for number, one in found.items() if not one[0].ended}
        self._report(sources, state, running, samples, now)
        drops = {
            row.labels.get("job_id"): row.values for row in sources.alerts.active() if row.rule == "MfuDrop"
        }
        norms = baseline.norms({number: row.mfu for number, (_, row, _) in running.items()})
        nothing = {name: values[:0] for name, values in state.latest.items()}
        spendings = self.spending.of(sources, state, running, now)
        made = {}
        for number, (job, row, rolled) in running.items():
            own = samples.get(number, nothing)
            silence = watching.silence_of(state, job, own, rolled, now)
            saves = watching.saves_of(job.timeline)
            made[number] = WatchedRun(
                steps=watching.history_of(job),
                frozen=watching.frozen_of(drops.get(row.job_id)),
                trend=row.trend,
                norm_ratio=norms.get(number),
                silence=self._with_movement(sources, job, silence, now),
                suspects=self.suspects.get(number, ()),
                launches=_launches(job),
                launches_without_progress=watching.launches_without_progress(job.timeline),
                saves_seconds=saves,
                checkpoint_share=_share(job, saves, now),
                spending=spendings.get(number),
            )
        return made

    def _with_movement(
        self, sources: Sources, job: JobNow, silence: Silence | None, now: float
    ) -> Silence | None:
        """The silence with what moves in it, which is read of those only that it can decide."""
        if not may_decide(silence):
            return silence
        return self.movements.of(sources.store, job, now).seen_in(silence)

    def _report(
        self,
        sources: Sources,
        state: FleetState,
        running: Mapping[int, tuple[JobNow, JobRow, Columns | None]],
        samples: Mapping[int, Columns],
        now: float,
    ) -> None:
        """Every five minutes: who is slower than its peers in each job."""
        if 0.0 <= now - self.reported_seconds < REPORT_SECONDS:
            return
        self.reported_seconds = now
        history = (*sources.alerts.active(), *sources.alerts.history(now - LOOKBACK_SECONDS))
        self.lemons = lemons(incidents_of(history), len(state.nodes), now)
        nodes = {part.node for job, _, _ in running.values() for part in job.record.parts}
        traffic = empty(TRAFFIC_COLUMNS)
        if nodes:
            traffic = sources.store.node_series(now - TRAFFIC_SECONDS, now, TRAFFIC_SECONDS, sorted(nodes))
        suspects = {}
        for number, (job, _, _) in running.items():
            suspect = None
            if job.bucket == "STEP" and number in samples:
                own = {part.node for part in job.record.parts}
                gpus = watching.gpu_signals(state, samples[number], now)
                suspect = suspect_of(gpus, watching.link_signals(state, traffic, own))
            suspects[number] = (*self.suspects.get(number, ()), suspect)[-REPORTS:]
        self.suspects = suspects


def _launches(job: JobNow) -> tuple[float, ...]:
    sessions = job.timeline.sessions if job.timeline is not None else ()
    return tuple(one.begin_seconds for one in sessions if one.begin_seconds is not None)


def _share(job: JobNow, saves: tuple[float, ...], now: float) -> float | None:
    if job.timeline is None or not saves or not job.timeline.steps["ts"].size:
        return None
    return sum(saves) / max(now - float(job.timeline.steps["begin"].min()), 1.0)
