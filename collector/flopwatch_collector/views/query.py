"""``CollectorQuery``: the answers of the Query port, made from the collector's parts."""

import copy
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar
from zoneinfo import ZoneInfo

from flopwatch.query import (
    Alerts,
    Cause,
    Day,
    Economy,
    Fleet,
    GpuPage,
    Job,
    Jobs,
    NodePage,
    Nodes,
    Range,
    Status,
    TeamLedger,
)
from flopwatch_collector.accounting import Accounting
from flopwatch_collector.bookkeeping.cost_book import CostBook
from flopwatch_collector.config import Settings
from flopwatch_collector.facts import Facts
from flopwatch_collector.model import Fleet as FleetSource
from flopwatch_collector.past import Past
from flopwatch_collector.schedulers.declared import Standing
from flopwatch_collector.store.port import Store
from flopwatch_collector.views import economy as economy_view
from flopwatch_collector.views import fleet as fleet_view
from flopwatch_collector.views import job as job_view
from flopwatch_collector.views import jobs as jobs_view
from flopwatch_collector.views import node_page, nodes_page, team_ledger
from flopwatch_collector.views.alerts import AlertSource, alerts_of
from flopwatch_collector.views.causes import MOST_A_TURN, Causes
from flopwatch_collector.views.facts import ENDED_LOOKBACK_SECONDS, Shown, facts_of
from flopwatch_collector.views.measured import MeasuredFleet
from flopwatch_collector.views.memo import Memo
from flopwatch_collector.views.past import Budgets, past_of
from flopwatch_collector.views.present import JobNow, Present
from flopwatch_collector.views.sources import Moment, Sources, nothing_declared
from flopwatch_collector.views.status import status_of
from flopwatch_collector.views.watch import Watch

ASKED_LATELY_SECONDS = 30.0
NEWEST_DAYS = 2
DAYS_SECONDS = 60.0
"""The newest days are read again after this long; today's own bar is always the ledger's."""
OLDER_DAYS_SECONDS = 600.0
TRAFFIC_SECONDS = 30.0
"""Network throughput of all nodes is read this often."""
T = TypeVar("T")


class CollectorQuery:
    """Implements ``flopwatch.query.Query``; safe from any thread. Answers are kept while nothing changes."""

    def __init__(  # noqa: PLR0913 - named parts, wired once
        self,
        *,
        fleet: FleetSource,
        store: Store,
        accounting: Accounting,
        alerts: AlertSource,
        settings: Settings,
        clock: Callable[[], float] = time.time,
        memo: Memo | None = None,
        declared: Callable[[float], Iterable[Standing]] = nothing_declared,
        costs: CostBook | None = None,
    ) -> None:
        self._sources = Sources(
            fleet=fleet,
            store=store,
            accounting=accounting,
            alerts=alerts,
            base=settings,
            costs=costs.current if costs is not None else lambda: settings.costs,
            measured=MeasuredFleet(accounting, store, fleet, ZoneInfo(settings.collector.time_zone), clock),
            declared=declared,
        )
        self._clock = clock
        self._costs = costs
        self._memo = memo or Memo()
        self._frames = Memo()
        self._days = Memo(fresh_seconds=DAYS_SECONDS, oldest_seconds=DAYS_SECONDS)
        self._older_days = Memo(fresh_seconds=DAYS_SECONDS, oldest_seconds=OLDER_DAYS_SECONDS)
        self._team_days = Memo(fresh_seconds=DAYS_SECONDS, oldest_seconds=DAYS_SECONDS)
        self._group_days = Memo(fresh_seconds=OLDER_DAYS_SECONDS, oldest_seconds=OLDER_DAYS_SECONDS)
        self._traffic = Memo(fresh_seconds=TRAFFIC_SECONDS, oldest_seconds=TRAFFIC_SECONDS)
        self._present = Present(self._sources)
        self._watch = Watch()
        self._causes = Causes()

    def aside(self) -> "CollectorQuery":
        """The same answers, kept apart: what is asked here is not made anew as pages that are looked at are."""
        other = copy.copy(self)
        other._memo = Memo()  # noqa: SLF001 - its own
        return other

    @property
    def sources(self) -> Sources:
        """What the answers are made from."""
        return self._sources

    @property
    def present(self) -> Present:
        """Jobs as they stand."""
        return self._present

    def status(self) -> Status:
        """The frame of every page."""
        moment = self._moment(Range())
        return self._frames.get("status", moment.state.generation, moment.now, lambda: self._status(moment))

    def fleet(self, asked: Range) -> Fleet:
        """The Fleet page."""

        def make() -> Fleet:
            moment = self._moment(asked)
            days = self._past(moment)
            given = fleet_view.Given(status=self.status(), past=days, diagnosed=self._diagnosed)
            return fleet_view.fleet_of(self._sources, self._present, moment, given)

        page = self._kept(("fleet", replace(asked, team=None)), make)
        return replace(page, status=self.status(), team=self._team(asked))

    def _team(self, asked: Range) -> TeamLedger | None:
        """The ledger of the team that is asked for."""
        team = asked.team
        if team is None:
            return None

        def make() -> TeamLedger:
            moment = self._moment(asked)
            days = self._team_days.get(
                (team, asked.cluster, self._sources.accounting.today_start(moment.now)),
                self._sources.accounting.filled(),
                moment.now,
                lambda: team_ledger.days_of(
                    self._sources, moment, team, self._past(moment)[-fleet_view.SHOWN_DAYS :]
                ),
            )
            return team_ledger.team_ledger(self._sources, moment, team, days)

        return self._kept(("team", asked), make)

    def jobs(self, asked: Range) -> Jobs:
        """All running jobs and those that ended within the range."""

        def make() -> Jobs:
            moment = self._moment(asked)
            return jobs_view.jobs_of(self._sources, self._present, moment, self.status(), self._diagnosed)

        page = self._kept(("jobs", asked), make)
        return replace(page, status=self.status())

    def job(self, job_id: str, asked: Range) -> Job | None:
        """One job, or None when there is no such job."""
        number = self._moment(asked).job_numbers().get(job_id)
        if number is None:
            return None

        def make() -> Job:
            moment = self._moment(asked)
            return job_view.job_of(
                self._sources, self._present, moment, self.status(), (number, self._causes)
            )

        page = self._kept(("job", number, asked), make)
        return replace(page, status=self.status())

    def alerts(self, asked: Range) -> Alerts:
        """Active alerts, and those that were within the range."""
        start = self._moment(asked).at_end().now - asked.seconds
        return alerts_of(self._sources.alerts, self.status(), start, asked.cluster)

    def nodes(self, asked: Range) -> Nodes:
        """The Nodes page: every GPU as it is now."""

        def make() -> Nodes:
            moment = self._moment(asked)
            traffic = self._traffic.get(
                "nodes", 0, moment.now, lambda: nodes_page.traffic_of(self._sources, moment.state, moment.now)
            )
            return nodes_page.nodes_of(self._sources, moment, self.status(), traffic)

        page = self._kept(("nodes", asked.cluster), make)
        return replace(page, status=self.status())

    def node(self, name: str, asked: Range) -> NodePage | None:
        """One node, or None when there is no such node."""
        found = node_page.find_node(self._sources.fleet.state(), name, asked.cluster)
        if found is None:
            return None

        def make() -> NodePage:
            return node_page.node_page(self._sources, self._moment(asked), self.status(), found)

        page = self._kept(("node", found.number, asked), make)
        return replace(page, status=self.status())

    def gpu(self, uuid: str, asked: Range) -> GpuPage | None:
        """One GPU by its UUID, or None when there is no such GPU."""
        found = node_page.find_gpu(self._sources.fleet.state(), uuid)
        if found is None:
            return None

        def make() -> GpuPage | None:
            return node_page.gpu_page(self._sources, self._moment(asked), self.status(), found)

        page = self._kept(("gpu", found.number, asked), make)
        return None if page is None else replace(page, status=self.status())

    def economy(self, asked: Range, overrides: Mapping[str, float]) -> Economy:
        """The Breakeven page, with some inputs changed.

        Raises:
            SettingError: an override is not known, or its value not allowed.
        """

        def make() -> Economy:
            moment = self._moment(asked)
            days = self._past(moment)
            by_group = self._group_days.get(
                asked.cluster,
                self._sources.accounting.filled(),
                moment.now,
                lambda: economy_view.days_by_group(self._sources, moment, days),
            )
            history = economy_view.History(days=days, by_group=by_group)
            return economy_view.economy_of(self._sources, moment, self.status(), history, overrides)

        saved = None if self._costs is None else self._costs.told()
        version = 0 if self._costs is None else self._costs.version()
        page = self._kept(("economy", version, asked, tuple(sorted(overrides.items()))), make)
        return replace(page, status=self.status(), saved=saved)

    def refresh(self) -> int:
        """Make the pages anew that were asked for lately, so that no reader waits; returns how many.

        To be called when figures have changed.
        """
        now = self._clock()
        return self._memo.again(self._figures_generation(), now, ASKED_LATELY_SECONDS)

    def facts(self, now: float) -> Facts:
        """What the alert rules look at, from the same figures as the pages."""
        moment = Moment(
            state=self._sources.fleet.state(), now=now, asked=Range(seconds=ENDED_LOOKBACK_SECONDS)
        )
        found = self._present.jobs(moment, jobs_view.within(moment))
        start = self._sources.accounting.today_start(now)
        ledger = self._sources.accounting.ledger_rows(start, now)
        made = jobs_view.tables(self._sources, moment, found, ledger)
        rows = jobs_view.job_rows(self._sources, moment, found, made)
        verdict = fleet_view.verdict_of(self._sources, self._past(moment))
        causes = self._causes.advance(self._sources, moment, found, MOST_A_TURN)
        shown = Shown(jobs=found, rows=rows, rollups=made.rollups, causes=causes)
        return facts_of(self._sources, moment, shown, verdict, self._watch)

    def _diagnosed(self, moment: Moment, found: Mapping[int, JobNow]) -> Mapping[int, Cause | None]:
        return self._causes.on_page(self._sources, moment, found)

    def past(self, seconds: float, budgets: Budgets) -> Past:
        """What rehearsals of rules need of nodes, fleet and budgets."""
        moment = self._moment(Range(seconds=seconds))
        return past_of(self._sources, self._past(moment), budgets, (moment.now - seconds, moment.now))

    def generation(self) -> int:
        """Rises whenever an answer may have changed: with every batch, accounting and change of an alert."""
        return self._sources.fleet.state().generation + self._figures_generation()

    def _figures_generation(self) -> int:
        """Rises with every accounting and change of an alert: what figures of pages are made from."""
        ticked, _ = self._sources.accounting.newest()
        costs = 0 if self._costs is None else self._costs.version()
        return round(ticked) + self._sources.alerts.generation + costs

    def _kept(self, question: Hashable, make: Callable[[], T]) -> T:
        """The page as of the newest figures; before the first accounting every batch may change it."""
        ticked, _ = self._sources.accounting.newest()
        generation = self._figures_generation() if ticked else self.generation()
        return self._memo.get(question, generation, self._clock(), make)

    def _moment(self, asked: Range) -> Moment:
        return Moment(state=self._sources.fleet.state(), now=self._clock(), asked=asked)

    def _status(self, moment: Moment) -> Status:
        return status_of(
            moment.state,
            self._sources.settings,
            moment.now,
            self.generation(),
            self._sources.accounting.progress(),
        )

    def _past(self, moment: Moment) -> tuple[Day, ...]:
        """The last 90 days, today last. Older ones are read seldom, unless history was filled in."""
        accounting, cluster = self._sources.accounting, moment.asked.cluster
        question = (cluster, accounting.today_start(moment.now))
        older = self._older_days.get(
            question,
            accounting.filled(),
            moment.now,
            lambda: accounting.days(moment.now, fleet_view.VERDICT_DAYS, cluster),
        )
        newest = self._days.get(
            ("newest", *question), 0, moment.now, lambda: accounting.days(moment.now, NEWEST_DAYS, cluster)
        )
        return (*older[:-NEWEST_DAYS], *newest)
