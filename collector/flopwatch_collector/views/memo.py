"""Answers that are kept while nothing has changed."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
KEPT_ANSWERS = 64
MOST_MADE_AHEAD = 8


@dataclass(frozen=True, slots=True)
class _Kept:
    generation: int
    made_seconds: float
    value: Any


class Memo:
    """The newest answer to each question.

    An answer is good while the generation is the same and it is younger than ``oldest_seconds``, since answers
    also say how old things are; and for ``fresh_seconds`` whatever has arrived, so that a busy fleet does not
    make every reader compute.
    """

    def __init__(self, *, fresh_seconds: float = 2.0, oldest_seconds: float = 10.0) -> None:
        self._fresh_seconds = fresh_seconds
        self._oldest_seconds = oldest_seconds
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._asked: dict[Hashable, float] = {}
        self._makers: dict[Hashable, Callable[[], Any]] = {}
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, question: Hashable, generation: int, now: float, make: Callable[[], T]) -> T:
        """The kept answer, or the one that ``make`` gives; made once however many ask at the same time."""
        with self._lock:
            self._asked[question] = now
            self._makers[question] = make
            making = self._making.setdefault(question, threading.Lock())
        with making:
            kept = self._kept.get(question)
            if kept is None or not self._good(kept, generation, now):
                kept = _Kept(generation, now, make())
                self._keep(question, kept)
            value: T = kept.value
            return value

    def again(self, generation: int, now: float, asked_within_seconds: float) -> int:
        """Make answers anew that were asked lately and are no longer good, before the next reader waits for them.

        Returns how many.
        """
        with self._lock:
            wanted = [
                (question, self._makers[question])
                for question, asked in self._asked.items()
                if now - asked <= asked_within_seconds and question in self._makers
            ]
        made = 0
        for question, make in wanted[-MOST_MADE_AHEAD:]:
            kept = self._kept.get(question)
            if kept is None or kept.generation != generation:
                self._keep(question, _Kept(generation, now, make()))
                made += 1
        return made

    def _good(self, kept: _Kept, generation: int, now: float) -> bool:
        age = now - kept.made_seconds
        if 0.0 <= age < self._fresh_seconds:
            return True
        return kept.generation == generation and 0.0 <= age < self._oldest_seconds

    def _keep(self, question: Hashable, kept: _Kept) -> None:
        with self._lock:
            self._kept[question] = kept
            self._kept.move_to_end(question)
            while len(self._kept) > KEPT_ANSWERS:
                oldest, _ = self._kept.popitem(last=False)
                for table in (self._making, self._asked, self._makers):
                    table.pop(oldest, None)
