"""The control state of several collectors: what one saves all see, in one order, and one has the duty."""

import threading
import time
from dataclasses import dataclass

import pytest
from tests.integration.store.test_control import GPU, JOB

from flopwatch_collector.duty import FencedControl, LeasedDuty, NotOnDuty
from flopwatch_collector.model import Gpu, JobRecord
from flopwatch_collector.store.control_postgres import PostgresControl
from flopwatch_collector.store.port import Unavailable

LEASE_SECONDS = 2.0
"""Long enough for a busy machine to ask three questions in it."""


@dataclass(frozen=True)
class Note:
    text: str


@pytest.fixture
def address(postgres) -> str:
    return postgres.new_database()


@pytest.fixture
def control(address):
    control = PostgresControl(address)
    yield control
    control.close()


@pytest.fixture
def other(control, address):
    other = PostgresControl(address)
    yield other
    other.close()


def test_documents_come_back_as_they_were_saved_to_every_collector(control, other) -> None:
    control.save_all({"gpu": {"3": GPU}, "job": {"1": JOB}})
    assert other.load("gpu", Gpu) == {"3": GPU}
    assert other.load("job", JobRecord) == {"1": JOB}
    assert other.load("nothing", Gpu) == {}


def test_saving_replaces_and_deleting_forgets(control, other) -> None:
    control.save("note", {"a": Note("one"), "b": Note("two")})
    control.save("note", {"a": Note("three")})
    control.delete("note", ["b", "never there"])
    control.delete("note", [])
    control.save("note", {})
    assert other.load("note", Note) == {"a": Note("three")}


def test_a_save_of_several_kinds_is_all_or_nothing(control) -> None:
    with pytest.raises(TypeError):
        control.save_all({"note": {"a": Note("one")}, "other": {"b": object()}})

    def half() -> None:
        with control.exclusive():
            control.save("note", {"a": Note("one")})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert control.load("note", Note) == {}


def test_a_document_that_does_not_fit_is_named(control) -> None:
    control.save("gpu", {"3": Note("no GPU")})
    with pytest.raises(ValueError, match=r"control state gpu/3: .*missing required field"):
        control.load("gpu", Gpu)


def test_a_document_is_replaced_only_if_it_is_the_expected_one(control, other) -> None:
    assert control.replace("note", "a", None, Note("one")) is True
    assert other.replace("note", "a", None, Note("two")) is False
    assert other.replace("note", "a", Note("one"), Note("two")) is True
    assert control.replace("note", "a", Note("one"), Note("three")) is False
    assert control.load("note", Note) == {"a": Note("two")}
    control.delete("note", ["a"])
    assert other.replace("note", "a", None, Note("again")) is True


def test_changes_are_what_others_saved_and_deleted_since(control, other) -> None:
    nothing = other.newest_change()
    control.save_all({"note": {"a": Note("one"), "b": Note("two")}, "unasked": {"c": Note("x")}})
    first = other.changes({"note": Note}, nothing)
    assert first.saved == {"note": {"a": Note("one"), "b": Note("two")}}
    assert first.deleted == {}
    assert other.changes({"note": Note}, first.number).saved == {}
    control.save("note", {"b": Note("three")})
    control.delete("note", ["a"])
    second = other.changes({"note": Note}, first.number)
    assert second.saved == {"note": {"b": Note("three")}}
    assert second.deleted == {"note": ["a"]}
    assert second.number == control.newest_change() > first.number


def test_exclusive_transactions_of_two_collectors_follow_one_another(control, other) -> None:
    control.save("number", {"n": 0})

    def count_up(own: PostgresControl) -> None:
        for _ in range(25):
            with own.exclusive():
                own.save("number", {"n": own.load("number", int)["n"] + 1})

    threads = [threading.Thread(target=count_up, args=(own,)) for own in (control, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert control.load("number", int) == {"n": 50}


def test_a_lease_has_one_holder_and_ends_by_itself(control, other) -> None:
    assert control.take_lease("periodic", "a", LEASE_SECONDS) is True
    assert other.take_lease("periodic", "b", LEASE_SECONDS) is False
    assert control.take_lease("periodic", "a", LEASE_SECONDS) is True
    assert other.take_lease("else", "b", 60) is True
    time.sleep(LEASE_SECONDS + 0.1)
    assert other.take_lease("periodic", "b", 60) is True
    assert control.take_lease("periodic", "a", 60) is False
    control.drop_lease("periodic", "a")
    assert other.holds_lease("periodic", "b") is True
    other.drop_lease("periodic", "b")
    assert control.take_lease("periodic", "a", 60) is True


def test_who_has_lost_the_duty_writes_nothing(control, other) -> None:
    first, second = LeasedDuty(control, "a", LEASE_SECONDS), LeasedDuty(other, "b", 60)
    first.renew()
    second.renew()
    assert (first.has(), second.has()) == (True, False)
    fenced = FencedControl(control, first)
    fenced.save("note", {"a": Note("on duty")})
    time.sleep(LEASE_SECONDS + 0.1)
    assert first.has() is False
    second.renew()
    assert second.has() is True
    with pytest.raises(NotOnDuty):
        fenced.save("note", {"a": Note("late")})
    with pytest.raises(NotOnDuty):
        fenced.delete("note", ["a"])
    assert other.load("note", Note) == {"a": Note("on duty")}


def test_a_duty_that_is_resigned_is_free_at_once(control, other) -> None:
    first, second = LeasedDuty(control, "a", 60), LeasedDuty(other, "b", 60)
    first.renew()
    first.resign()
    second.renew()
    assert (first.has(), second.has()) == (False, True)


def test_a_lost_connection_is_made_anew(control, address) -> None:
    import psycopg

    control.save("note", {"a": Note("one")})
    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    with pytest.raises(Unavailable):
        control.load("note", Note)
    assert control.load("note", Note) == {"a": Note("one")}


def test_a_server_that_is_not_there_is_unavailable_and_the_password_is_not_told() -> None:
    with pytest.raises(Unavailable, match="the control state in PostgreSQL") as told:
        PostgresControl("postgresql://flopwatch:geheim@127.0.0.1:1/flopwatch")
    assert "geheim" not in str(told.value)
