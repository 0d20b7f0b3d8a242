"""Many short reads share one thread; one that hangs, fails or is slow costs only itself."""

import threading
import time
from dataclasses import dataclass, field
from functools import partial

import pytest
from tests.integration.agent.agent_process import eventually

from flopwatch_agent.rounds import Rounds

INTERVAL_SECONDS = 0.1


@dataclass
class Reading:
    """A task that notes by which thread it was read; ``gate`` closed keeps it from coming back."""

    rounds: Rounds
    threads: list[int] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    seconds: float = 0.0
    over: bool = False
    fails: bool = False

    def __post_init__(self) -> None:
        self.gate.set()
        self.rounds.add(self)

    def turn(self, moment: float) -> float | None:
        self.threads.append(threading.get_ident())
        self.gate.wait(60.0)
        time.sleep(self.seconds)
        if self.fails:
            raise RuntimeError("no such device")
        return None if self.over else self.rounds.next_after(moment, INTERVAL_SECONDS)

    def end(self) -> None:
        self.over = True
        self.gate.set()
        self.rounds.hurry(self)


@pytest.fixture
def readings():
    rounds = Rounds(INTERVAL_SECONDS)
    made = [Reading(rounds) for _ in range(3)]
    yield made
    for reading in made:
        reading.end()
    eventually(lambda: all(reading.over for reading in made))


def count_after(reading: Reading) -> int:
    """Turns that it had once three more came."""
    had = len(reading.threads)
    return eventually(lambda: now if (now := len(reading.threads)) >= had + 3 else None)


def has_had(reading: Reading, turns: int) -> bool:
    """Whether it had so many turns, after a look at who hangs."""
    reading.rounds.look_after(time.monotonic())
    return len(reading.threads) >= turns


def test_quick_reads_have_their_turns_in_one_thread(readings: list[Reading]) -> None:
    for reading in readings:
        count_after(reading)

    # The newest ones: a machine that is busy may have let one go for a while.
    assert eventually(lambda: len({reading.threads[-1] for reading in readings}) == 1)


def test_one_that_hangs_does_not_keep_the_others(readings: list[Reading]) -> None:
    first, *others = readings
    count_after(first)
    first.gate.clear()
    for other in (*others, *others):
        stuck = len(first.threads)
        eventually(partial(has_had, other, len(other.threads) + 3))

    assert len(first.threads) == stuck
    assert others[0].threads[-1] != first.threads[-1]

    first.gate.set()
    count_after(first)
    # Quick again for some turns, it comes back to the others.
    assert eventually(lambda: first.threads[-1] == others[0].threads[-1] == others[1].threads[-1])


def test_one_that_is_slow_leaves_the_round_without_anybody_looking(readings: list[Reading]) -> None:
    slow, *others = readings
    slow.seconds = 0.25
    for other in others:
        count_after(other)

    assert eventually(lambda: slow.threads and slow.threads[-1] != others[0].threads[-1])
    assert eventually(lambda: len(others[0].threads) > len(slow.threads))


def test_one_that_fails_is_tried_again_and_said_once(
    readings: list[Reading], caplog: pytest.LogCaptureFixture
) -> None:
    failing, other = readings[0], readings[1]
    failing.fails = True
    count_after(failing)
    count_after(other)

    assert len([record for record in caplog.records if "no such device" in str(record.exc_info)]) == 1
    failing.fails = False
    count_after(failing)


def test_one_that_is_over_has_no_more_turns_and_the_last_one_ends_the_thread() -> None:
    rounds = Rounds(INTERVAL_SECONDS)
    reading = Reading(rounds)
    count_after(reading)
    thread = reading.threads[-1]

    reading.end()

    eventually(lambda: thread not in {item.ident for item in threading.enumerate()})
    again = Reading(rounds)
    count_after(again)
    again.end()
