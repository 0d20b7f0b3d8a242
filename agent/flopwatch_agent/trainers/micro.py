"""Lines of micro batches put together to optimizer steps, where every one of them is printed with its time."""

import re

from flopwatch_agent.trainers.grammar import Hit

_STEPPED = re.compile(r"\((?:optimizer\.)?step\)")
"""The line's micro batch ended an optimizer step."""


class MicroSteps:
    """Sums the times of the micro batches of a step; an incomplete sum is no time."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._first = 1
        self._seconds = 0.0
        self._count: int | None = None
        """Micro batches since the step before; ``None`` when one was not printed."""

    def values_of(self, hit: Hit) -> dict[str, float] | None:
        """The row's values; ``None`` for a micro batch inside a step, and for a line that comes once more."""
        values = dict(hit.values)
        number = int(values["micro_steps"])
        if number == self._last:
            return None
        self._add(number, values["micro_iteration_time_s"])
        values["micro_steps"] = float(number + 1 - self._first)
        if _STEPPED.search(hit.text):
            if self._count is not None:
                values["micro_seconds"], values["micro_count"] = self._seconds, float(self._count)
            self._count, self._seconds = 0, 0.0
        elif self._count is not None:
            return None
        return values if values.get("step", 0.0) >= 1 else None

    def _add(self, number: int, seconds: float) -> None:
        begins = self._last is None or number < self._last
        if begins:
            self._first = min(number, 1)
            self._count, self._seconds = (0, 0.0) if number <= 1 else (None, 0.0)
        elif self._last is not None and number != self._last + 1:
            self._count = None
        self._last = number
        if self._count is not None:
            self._count, self._seconds = self._count + 1, self._seconds + seconds
