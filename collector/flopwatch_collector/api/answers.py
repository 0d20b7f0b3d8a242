"""Results of other threads on the event loop: one wake-up for all that became done together."""

import asyncio
import threading
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Answers(Generic[T]):
    """Waits on the event loop for futures that threads complete. Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[T], Future[T]]]] = {}

    def of(self, future: "Future[T]") -> "asyncio.Future[T]":
        """The future's result, for the running loop to await."""
        loop = asyncio.get_running_loop()
        mine: asyncio.Future[T] = loop.create_future()
        future.add_done_callback(lambda done: self._came(loop, mine, done))
        return mine

    def _came(self, loop: asyncio.AbstractEventLoop, mine: "asyncio.Future[T]", done: "Future[T]") -> None:
        with self._lock:
            waiting = self._done.get(loop)
            if waiting is not None:
                waiting.append((mine, done))
                return
            if loop.is_closed():
                return
            self._done[loop] = [(mine, done)]
        loop.call_soon_threadsafe(self._hand_out, loop)

    def _hand_out(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            came = self._done.pop(loop)
        for mine, done in came:
            if mine.done():  # its request was given up
                continue
            error = done.exception()
            if error is None:
                mine.set_result(done.result())
            else:
                mine.set_exception(error)
