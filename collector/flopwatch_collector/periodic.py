"""The collector's clock: what is done again and again, each on its own interval."""

import datetime
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_EXECUTED, JobExecutionEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from flopwatch_collector.alerting.engine import AlertEngine
from flopwatch_collector.config import Settings
from flopwatch_collector.facts import Facts
from flopwatch_collector.store.port import Store

ACCOUNTING_SECONDS = 10.0
RETENTION_SECONDS = 3_600.0
PAGES_SECONDS = 5.0
JOB_NAMES = ("accounting", "pages", "alerts", "retention")

log = logging.getLogger(__name__)


class Accountant(Protocol):
    """Turns what was measured into rollups and the ledger."""

    def tick(self, now: float) -> object:
        """Bring figures up to ``now``."""
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
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        self._counts = {name: _Count() for name in JOB_NAMES}
        # Its own messages at INFO say that each job ran, every few seconds.
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        self._scheduler = BackgroundScheduler(
            timezone=datetime.timezone.utc,
            executors={"default": ThreadPoolExecutor(len(JOB_NAMES))},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )
        self._scheduler.add_listener(self._ran, EVENT_JOB_EXECUTED | EVENT_JOB_ERROR)

    def start(self) -> None:
        """Begin: accounting and alerts at once, retention after its first interval."""
        self.engine.start()
        at_once = datetime.datetime.now(datetime.timezone.utc)
        self._add("accounting", self._account, self.accounting_seconds, at_once)
        self._add("pages", self._refresh, min(PAGES_SECONDS, self.accounting_seconds), None)
        self._add("alerts", self._evaluate, self.settings.alerts.evaluate_seconds, at_once)
        self._add("retention", self._retain, RETENTION_SECONDS, None)
        self._scheduler.start()

    def stop(self) -> None:
        """Let what runs finish, and end delivery of alerts."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)
        self.engine.stop()

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

    def _account(self) -> None:
        self.accounting.tick(self.clock())

    def _refresh(self) -> None:
        self.refresh()

    def _evaluate(self) -> None:
        self.engine.evaluate(self.facts(self.clock()))

    def _retain(self) -> None:
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
