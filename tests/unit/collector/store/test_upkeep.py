import threading

import pytest

from flopwatch_collector.store import upkeep
from flopwatch_collector.store.problems import Problems
from flopwatch_collector.store.upkeep import Task, Upkeep


@pytest.fixture
def keeper(monkeypatch):
    monkeypatch.setattr(upkeep, "RETRY_SECONDS", 0.05)
    keeper = Upkeep(Problems())
    yield keeper
    keeper.close()


def test_a_task_that_fails_is_reported_tried_again_and_holds_up_no_other(keeper) -> None:
    ran, recovered = [], threading.Event()

    def fails_twice() -> None:
        ran.append("first")
        if ran.count("first") < 3:
            raise OSError(28, "No space left on device")
        recovered.set()

    keeper.ask(Task(name="closing hour 7", run=fails_twice))
    keeper.ask(Task(name="other", run=lambda: ran.append("second")))
    assert recovered.wait(5)
    assert ran[:2] == ["first", "second"]
    assert keeper._problems.texts() == (
        "closing hour 7 failed and will be tried again: [Errno 28] No space left on device",
    )


def test_waiting_ends_when_all_that_is_due_has_run(keeper) -> None:
    ran = []
    for at in range(5):
        keeper.ask(Task(name=str(at), run=lambda at=at: ran.append(at)))
    keeper.wait()
    assert ran == [0, 1, 2, 3, 4]


def test_the_same_task_does_not_wait_twice(keeper) -> None:
    ran, go = [], threading.Event()
    keeper.ask(Task(name="blocking", run=lambda: go.wait(5) and None))
    for _ in range(3):
        keeper.ask(Task(name="merge", run=lambda: ran.append(1)))
    go.set()
    keeper.wait()
    assert ran == [1]
