"""Which of ever-rising numbers (steps of a launch, sequences of a spool) are taken already. Bounded memory."""

from bisect import bisect_right

MAX_SPANS = 512
"""With more gaps than that the oldest numbers are forgotten."""


class Spans:
    """Whole numbers as disjoint closed intervals, in order."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._last: list[int] = []

    def __contains__(self, number: int) -> bool:
        index = bisect_right(self._first, number) - 1
        return index >= 0 and number <= self._last[index]

    def add(self, first: int, last: int) -> None:
        """Take the numbers from ``first`` to ``last``."""
        low = bisect_right(self._last, first - 2)
        high = bisect_right(self._first, last + 1)
        if low < high:
            first, last = min(first, self._first[low]), max(last, self._last[high - 1])
        self._first[low:high] = [first]
        self._last[low:high] = [last]
        if len(self._first) > MAX_SPANS:
            del self._first[0], self._last[0]

    def discard(self, first: int, last: int) -> None:
        """Give the numbers from ``first`` to ``last`` back."""
        low = bisect_right(self._last, first - 1)
        high = bisect_right(self._first, last)
        if low >= high:
            return
        left, right = self._first[low], self._last[high - 1]
        kept = [span for span in ((left, first - 1), (last + 1, right)) if span[0] <= span[1]]
        self._first[low:high] = [span[0] for span in kept]
        self._last[low:high] = [span[1] for span in kept]
