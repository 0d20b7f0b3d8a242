"""The collector's clock: what is done again and again, each on its own interval."""

import datetime
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_EXECUTED, JobExecutionEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from flopwatch_collector.alerting.engine import AlertEngine
from flopwatch_collector.config import Settings
from flopwatch_collector.duty import Duty, SoleDuty
from flopwatch_collector.facts import Facts
from flopwatch_collector.store.port import Store, Unavailable

ACCOUNTING_SECONDS = 10.0
RETENTION_SECONDS = 3_600.0
PAGES_SECONDS = 5.0
FLEET_SECONDS = 2.0
AGAIN_SECONDS = 60.0
DUTY, FLEET = "duty", "fleet"
JOB_NAMES = ("accounting", "pages", "alerts", "retention")

log = logging.getLogger(__name__)


class Accountant(Protocol):
    """Turns what was measured into rollups and the ledger."""

    def tick(self, now: float) -> object:
        """Bring figures up to ``now``."""
        ...

    def take_over(self) -> None:
        """From now on this collector writes what becomes final."""
        ...

    def follow(self, now: float) -> None:
        """Bring figures up to ``now`` while another collector writes what becomes final."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class JobHealth:
    """How one periodic job fares."""

    runs: int
    failures: int
    age_seconds: float | None
    """Since it last succeeded; None before it has."""


@dataclass(slots=True)
class _Count:
    runs: int = 0
    failures: int = 0
    succeeded_seconds: float | None = None


class SaidOnce(logging.Filter):
    """Lets a failure to reach a database through once, without its traceback, until ``AGAIN_SECONDS`` are over."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written."""
        problem = record.exc_info[1] if record.exc_info else None
        if not isinstance(problem, Unavailable):
            return True
        text, now = str(problem), time.monotonic()
        if now - self._said.get(text, float("-inf")) < AGAIN_SECONDS:
            return False
        self._said = {known: said for known, said in self._said.items() if now - said < AGAIN_SECONDS}
        self._said[text] = now
        record.exc_info, record.msg, record.args = None, "periodic work waits: %s", (text,)
        return True


@dataclass(kw_only=True)
class Periodic:
    """Runs accounting, pages, alert evaluation and retention, each alone and never twice at once.

    A job that fails is logged with its traceback and counted, and runs again at its next time; the others go on.
    """

    accounting: Accountant
    engine: AlertEngine
    facts: Callable[[float], Facts]
    """What the alert rules look at, given the time."""
    store: Store
    settings: Settings
    clock: Callable[[], float] = time.time
    refresh: Callable[[], object] = lambda: None
    """Makes answers anew that were asked for lately, before a reader waits for them."""
    accounting_seconds: float = ACCOUNTING_SECONDS
    duty: Duty = field(default_factory=SoleDuty)
    """Of several collectors one accounts, alerts and drops old data; the others follow it."""
    more: Mapping[str, tuple[Callable[[float], object], float]] = field(default_factory=dict)
    """Further work of the collector on duty by name, given the time, and every how many seconds."""
    learn: Callable[[], None] | None = None
    """Takes over what other collectors know of the fleet."""
    _working: bool = field(default=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        shared = (DUTY, FLEET) if self.duty.renew_seconds is not None else ()
        self._counts = {name: _Count() for name in (*JOB_NAMES, *shared, *self.more)}
        # Its own messages at INFO say that each job ran, every few seconds.
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        self._scheduler = BackgroundScheduler(
            timezone=datetime.timezone.utc,
            executors={"default": ThreadPoolExecutor(len(self._counts))},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        self._said_once = SaidOnce()
        self._scheduler.add_listener(self._ran, EVENT_JOB_EXECUTED | EVENT_JOB_ERROR)

    def start(self) -> None:
        """Begin: accounting and alerts at once, retention after its first interval."""
        logging.getLogger("apscheduler.executors.default").addFilter(self._said_once)
        at_once = datetime.datetime.now(datetime.timezone.utc)
        if self.duty.renew_seconds is None:
            self.engine.start()
            self._working = True
        else:
            self._add(DUTY, self._renew, self.duty.renew_seconds, at_once)
        if self.learn is not None:
            self._add(FLEET, self.learn, FLEET_SECONDS, at_once)
        self._add("accounting", self._account, self.accounting_seconds, at_once)
        self._add("pages", self._refresh, min(PAGES_SECONDS, self.accounting_seconds), None)
        self._add("alerts", self._evaluate, self.settings.alerts.evaluate_seconds, at_once)
        self._add("retention", self._retain, RETENTION_SECONDS, None)
        for name, (work, seconds) in self.more.items():
            self._add(name, partial(self._do, work), seconds, None)
        self._scheduler.start()

    def stop(self) -> None:
        """Let what runs finish, and end delivery of alerts."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)
        self.engine.stop()
        self.duty.resign()
        logging.getLogger("apscheduler.executors.default").removeFilter(self._said_once)

    def ages(self) -> dict[str, float | None]:
        """Seconds since each job last succeeded, by name; None before it has."""
        return {name: health.age_seconds for name, health in self.health().items()}

    def health(self) -> dict[str, JobHealth]:
        """How each job fares, by name."""
        now = time.monotonic()
        with self._lock:
            return {
                name: JobHealth(
                    runs=count.runs,
                    failures=count.failures,
                    age_seconds=None if count.succeeded_seconds is None else now - count.succeeded_seconds,
                )
                for name, count in self._counts.items()
            }

    def _add(
        self, name: str, job: Callable[[], None], seconds: float, first: datetime.datetime | None
    ) -> None:
        more = {} if first is None else {"next_run_time": first}
        self._scheduler.add_job(job, "interval", seconds=seconds, id=name, name=name, **more)

    def _renew(self) -> None:
        try:
            self.duty.renew()
        finally:
            self._take_turns()

    def _take_turns(self) -> None:
        """Begin or end the work that only one collector does."""
        has = self.duty.has()
        if has and not self._working:
            self.engine.reload()
            self.accounting.take_over()
            self.engine.start()
            self._working = True
        elif self._working and not has:
            self._working = False
            self.engine.stop()

    def _on_duty(self) -> bool:
        return self._working and self.duty.has()

    def _account(self) -> None:
        if self._on_duty():
            self.accounting.tick(self.clock())
        else:
            self.accounting.follow(self.clock())

    def _refresh(self) -> None:
        self.refresh()

    def _evaluate(self) -> None:
        if self._on_duty():
            self.engine.evaluate(self.facts(self.clock()))
        else:
            self.engine.reload()

    def _do(self, work: Callable[[float], object]) -> None:
        if self._on_duty():
            work(self.clock())

    def _retain(self) -> None:
        if not self._on_duty():
            return
        now = self.clock()
        freed = self.store.retain(now)
        forgotten = self.engine.retain(now)
        log.info("retention: %d bytes freed, %d alerts forgotten", freed, forgotten)

    def _ran(self, event: JobExecutionEvent) -> None:
        """Counts a run; APScheduler itself has logged a failure with its traceback."""
        failed = event.exception is not None
        with self._lock:
            count = self._counts[event.job_id]
            count.runs += 1
            count.failures += int(failed)
            if not failed:
                count.succeeded_seconds = time.monotonic()
