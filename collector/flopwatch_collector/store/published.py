"""A value that readers borrow and one writer swaps: what an old value refers to goes when nobody uses it."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Published(Generic[T]):
    """The current value; values are immutable."""

    def __init__(self, value: T) -> None:
        self._condition = threading.Condition()
        self._value = value
        self._epoch = 0
        self._readers: dict[int, int] = {}

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[T]:
        """The current value; until this ends, :meth:`wait_for_readers` of a later swap waits."""
        with self._condition:
            value, epoch = self._value, self._epoch
            self._readers[epoch] = self._readers.get(epoch, 0) + 1
        try:
            yield value
        finally:
            with self._condition:
                self._readers[epoch] -= 1
                if not self._readers[epoch]:
                    del self._readers[epoch]
                    self._condition.notify_all()

    def peek(self) -> T:
        """The current value, for a look that touches nothing it refers to."""
        return self._value

    def swap(self, change: Callable[[T], T]) -> None:
        """Replace the value in one step."""
        with self._condition:
            self._value = change(self._value)
            self._epoch += 1

    def wait_for_readers(self) -> None:
        """Return when nobody uses a value from before the last swap."""
        with self._condition:
            epoch = self._epoch
            self._condition.wait_for(lambda: all(used >= epoch for used in self._readers))
