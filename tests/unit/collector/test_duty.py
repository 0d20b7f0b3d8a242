"""Duty and the periodic work that hangs on it, with a lease that tests can move."""

import logging

import pytest

from flopwatch_collector import duty
from flopwatch_collector.alerting.delivery.webhook import DeliveryFailed
from flopwatch_collector.config import Settings
from flopwatch_collector.duty import FencedChannel, LeasedDuty, SoleDuty
from flopwatch_collector.periodic import Periodic, SaidOnce
from flopwatch_collector.store.port import Unavailable


class Lease:
    """A control state whose lease is given or not."""

    def __init__(self) -> None:
        self.given = True

    def take_lease(self, name, holder, seconds):
        return self.given

    def drop_lease(self, name, holder):
        self.given = False


class Timer:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Worker:
    """Stands for alerts and accounting: keeps what it was told."""

    def __init__(self) -> None:
        self.told = []

    def __getattr__(self, name):
        return lambda *_: self.told.append(name)


def test_the_holder_takes_its_lease_to_end_before_it_does() -> None:
    timer = Timer()
    held = LeasedDuty(Lease(), "a", 10.0, timer)
    assert held.has() is False
    held.renew()
    timer.now = 7.9
    assert held.has() is True
    timer.now = 8.1
    assert held.has() is False


def test_a_renewal_that_is_refused_ends_the_duty_at_once() -> None:
    lease = Lease()
    held = LeasedDuty(lease, "a", 10.0, Timer())
    held.renew()
    lease.given = False
    held.renew()
    assert held.has() is False


def test_a_collector_that_shares_with_no_other_is_always_on_duty() -> None:
    control = object()
    assert duty.of(control, "a", 10.0)[1] is control
    sole = SoleDuty()
    sole.renew()
    sole.resign()
    assert sole.has() is True


def test_only_the_collector_on_duty_sends() -> None:
    sent = Worker()
    channel = FencedChannel(channel=sent, duty=LeasedDuty(Lease(), "a", 10.0, Timer()))
    with pytest.raises(DeliveryFailed, match="another collector sends") as refused:
        channel.send({}, "id")
    assert refused.value.permanent is False
    channel.duty.renew()
    channel.send({}, "id")
    assert sent.told == ["send"]


def test_the_work_begins_with_the_duty_and_ends_with_it() -> None:
    lease, timer, accounting, engine = Lease(), Timer(), Worker(), Worker()
    lease.given = False
    held = LeasedDuty(lease, "a", 10.0, timer)
    periodic = Periodic(
        accounting=accounting,
        engine=engine,
        facts=lambda now: now,
        store=Worker(),
        settings=Settings(),
        duty=held,
    )
    for work in (periodic._renew, periodic._account, periodic._evaluate, periodic._retain):
        work()
    assert (accounting.told, engine.told) == (["follow"], ["reload"])
    lease.given = True
    for work in (periodic._renew, periodic._account, periodic._evaluate):
        work()
    assert accounting.told == ["follow", "take_over", "tick"]
    assert engine.told == ["reload", "reload", "start", "evaluate"]
    timer.now = 9.0  # no renewal in time: the next evaluation is another's already
    periodic._evaluate()
    periodic._take_turns()
    assert engine.told == ["reload", "reload", "start", "evaluate", "reload", "stop"]


def test_a_database_that_is_away_is_said_once() -> None:
    once = SaidOnce()

    def record(problem: Exception) -> logging.LogRecord:
        return logging.LogRecord("a", logging.ERROR, "f", 1, "failed", (), (type(problem), problem, None))

    first = record(Unavailable("gone"))
    assert once.filter(first) is True
    assert first.getMessage() == "periodic work waits: gone"
    assert first.exc_info is None
    assert once.filter(record(Unavailable("gone"))) is False
    assert once.filter(record(Unavailable("other"))) is True
    assert once.filter(record(ValueError("a fault of ours"))) is True
