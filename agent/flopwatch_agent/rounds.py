"""Short reads done one after another in one thread, at the same moments, so that the node is woken once for all.

A read that takes long gets a thread of its own, and the others go on in a new one: what hangs costs only itself. It
comes back into the round once it is quick again.
"""

import logging
import math
import threading
import time
from dataclasses import dataclass
from typing import Protocol

logger = logging.getLogger(__name__)

LONGEST_SHARE = 0.05
"""Of the interval: a turn that takes longer is slow."""
SLOW_SECONDS = (0.01, 0.5)
HANGS_SECONDS = 0.1
"""A turn under way is waited for at least so long."""
SLOW_TURNS, QUICK_TURNS = 2, 10
"""So many in a row, and a task leaves the round, or comes back into it."""
AT_ONCE_SHARE = 0.02
"""Of the interval: what is due so soon has its turn now."""
ROUNDING = 1e-3


class Task(Protocol):
    """Something that is read again and again; ``turn`` runs in one thread at a time."""

    def turn(self, moment: float) -> float | None:
        """Do what is due; when the next turn is, by the monotonic clock; None when it is over."""
        ...


@dataclass(slots=True)
class Seat:
    """One task's place."""

    task: Task
    due: float = float("-inf")
    slow_turns: int = 0
    quick_turns: int = 0
    failed: bool = False


class Rounds:
    """The tasks of one interval. ``look_after`` has to be called now and then, by a thread that has no task here."""

    def __init__(self, interval_seconds: float) -> None:
        self.interval_seconds = interval_seconds
        low, high = SLOW_SECONDS
        self.slow_seconds = min(max(interval_seconds * LONGEST_SHARE, low), high)
        self.lock = threading.Lock()
        self._began = time.monotonic()
        self._lanes: list[Lane] = []
        """The first one is the round."""

    def add(self, task: Task) -> None:
        """Give a task its turns from now on."""
        with self.lock:
            self._join(Seat(task))

    def hurry(self, task: Task) -> None:
        """Let a task have its next turn at once."""
        with self.lock:
            for lane in self._lanes:
                for seat in lane.seats:
                    if seat.task is task:
                        seat.due = float("-inf")
                        lane.wake.set()

    def next_after(self, began: float, pause_seconds: float) -> float:
        """The round's moment for the turn after one that ``began`` then; moments that passed are left out."""
        half = self.interval_seconds / 2
        after = max(began + max(pause_seconds, self.interval_seconds) - half, time.monotonic())
        count = math.ceil((after - self._began) / self.interval_seconds - ROUNDING)
        return self._began + count * self.interval_seconds

    def look_after(self, moment: float) -> None:
        """Let the other tasks go on in another thread when the one whose turn it is does not come back."""
        with self.lock:
            lane = self._lanes[0] if self._lanes else None
            since = None if lane is None else lane.busy_since
            if lane is None or since is None or moment - since <= max(HANGS_SECONDS, self.slow_seconds):
                return
            others = [seat for seat in lane.seats if seat is not lane.at_work]
            if others:
                lane.seats = [seat for seat in lane.seats if seat is lane.at_work]
                self._begin(others, first=True)

    def settle(self, lane: "Lane", seat: Seat, due: float | None, took_seconds: float) -> None:
        """Put a task back into its place after a turn; ``lane`` is the caller's own."""
        with self.lock:
            lane.at_work = lane.busy_since = None
            if due is None:
                lane.seats.remove(seat)
                return
            # It may have been hurried meanwhile.
            seat.due = min(due, seat.due)
            slow = took_seconds > self.slow_seconds
            seat.slow_turns = seat.slow_turns + 1 if slow else 0
            seat.quick_turns = 0 if slow else seat.quick_turns + 1
            if lane is not self._lanes[0]:
                if seat.quick_turns >= QUICK_TURNS:
                    lane.seats.remove(seat)
                    self._join(seat)
            elif seat.slow_turns >= SLOW_TURNS and len(lane.seats) > 1:
                lane.seats.remove(seat)
                self._begin([seat], first=False)

    def ended(self, lane: "Lane") -> bool:
        """Whether a lane has no task left; it is forgotten then, and its thread ends."""
        if lane.seats:
            return False
        if lane in self._lanes:
            self._lanes.remove(lane)
        return True

    def _join(self, seat: Seat) -> None:
        if not self._lanes:
            self._begin([seat], first=True)
            return
        self._lanes[0].seats.append(seat)
        self._lanes[0].wake.set()

    def _begin(self, seats: list[Seat], *, first: bool) -> None:
        lane = Lane(self, seats)
        self._lanes.insert(0 if first else len(self._lanes), lane)
        lane.thread.start()


class Lane:
    """One thread and the tasks that have their turns in it."""

    def __init__(self, rounds: Rounds, seats: list[Seat]) -> None:
        self.seats = seats
        self.wake = threading.Event()
        self.at_work: Seat | None = None
        self.busy_since: float | None = None
        self.thread = threading.Thread(target=self._run, name="sampling", daemon=True)
        self._rounds = rounds

    def _run(self) -> None:
        while True:
            seat, pause = self._next()
            if seat is not None:
                self._turn(seat)
            elif pause is None:
                return
            else:
                self.wake.wait(pause)
                self.wake.clear()

    def _next(self) -> tuple[Seat | None, float | None]:
        """The task that is due, else how long there is none; neither when this thread is to end."""
        rounds = self._rounds
        with rounds.lock:
            if rounds.ended(self):
                return None, None
            seat = min(self.seats, key=due_of)
            moment = time.monotonic()
            if seat.due > moment + rounds.interval_seconds * AT_ONCE_SHARE:
                return None, seat.due - moment
            seat.due = float("inf")
            self.at_work, self.busy_since = seat, moment
            return seat, None

    def _turn(self, seat: Seat) -> None:
        rounds, began = self._rounds, time.monotonic()
        try:
            due = seat.task.turn(began)
            seat.failed = False
        except Exception:
            if not seat.failed:
                logger.exception("a turn of %s failed; it is tried again, and said once", seat.task)
            seat.failed = True
            due = rounds.next_after(began, rounds.interval_seconds)
        rounds.settle(self, seat, due, time.monotonic() - began)


def due_of(seat: Seat) -> float:
    """When its turn is."""
    return seat.due
