import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from flopwatch_collector.alerting.delivery.notifier import Notifier
from flopwatch_collector.alerting.engine import AlertEngine
from flopwatch_collector.config import Settings
from flopwatch_collector.facts import Facts
from flopwatch_collector.periodic import Periodic
from flopwatch_collector.store.control_sqlite import SqliteControl


@dataclass
class Counter:
    """Something that is called again and again, and fails at first when told to."""

    failures: int = 0
    calls: list[float] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def tick(self, now: float) -> None:
        with self.changed:
            self.calls.append(now)
            self.changed.notify_all()
            if len(self.calls) <= self.failures:
                raise ArithmeticError("no figures")

    def facts(self, now: float) -> Facts:
        self.tick(now)
        return Facts(now=now, jobs=(), nodes=(), verdict=None, cluster="a")

    def wait_for(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.calls) >= count, 10.0)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[AlertEngine]:
    control = SqliteControl(tmp_path / "control.db")
    yield AlertEngine(control, Notifier([], control), Settings().alerts)
    control.close()


def periodic(engine: AlertEngine, accounting: Counter, facts: Counter, **changes: Any) -> Periodic:
    return Periodic(
        accounting=accounting,
        engine=engine,
        facts=facts.facts,
        store=None,  # type: ignore[arg-type]  # retention runs after an hour only
        settings=Settings(),
        clock=lambda: 1_000.0,
        accounting_seconds=0.05,
        **changes,
    )


def test_accounting_and_alerts_begin_at_once(engine: AlertEngine) -> None:
    accounting, facts = Counter(), Counter()
    clock = periodic(engine, accounting, facts)

    assert clock.ages() == {"accounting": None, "pages": None, "alerts": None, "retention": None}
    clock.start()
    accounting.wait_for(3)
    facts.wait_for(1)
    clock.stop()

    assert set(accounting.calls) == {1_000.0}
    ages = clock.ages()
    assert ages["accounting"] is not None
    assert ages["accounting"] < 10.0
    assert ages["alerts"] is not None
    assert ages["retention"] is None


def test_a_failing_job_is_logged_counted_and_run_again_and_stops_no_other(
    engine: AlertEngine, caplog: pytest.LogCaptureFixture
) -> None:
    accounting, facts = Counter(failures=2), Counter()
    clock = periodic(engine, accounting, facts)

    with caplog.at_level(logging.ERROR):
        clock.start()
        accounting.wait_for(4)
        facts.wait_for(1)
        clock.stop()

    health = clock.health()
    assert health["accounting"].failures == 2
    assert health["accounting"].runs >= 3
    assert health["accounting"].age_seconds is not None
    assert health["alerts"].failures == 0
    assert "ArithmeticError: no figures" in caplog.text
    assert "Traceback" in caplog.text


def test_stopping_waits_for_what_runs(engine: AlertEngine) -> None:
    accounting, facts = Counter(), Counter()
    clock = periodic(engine, accounting, facts)
    clock.start()
    accounting.wait_for(1)
    clock.stop()
    calls = len(accounting.calls)

    threading.Event().wait(0.2)

    assert len(accounting.calls) == calls
