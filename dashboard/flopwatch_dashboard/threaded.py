"""The one way a callback runs."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any


def threaded(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """The function in a thread: a plain callback would run on the event loop that also takes telemetry."""

    @functools.wraps(function)
    async def run(*arguments: Any) -> Any:
        return await asyncio.to_thread(function, *arguments)

    return run
