"""The one way a callback runs."""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from dash.exceptions import PreventUpdate

log = logging.getLogger(__name__)


def threaded(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """The function in a thread: a plain callback would run on the event loop that also takes telemetry.

    A failure is logged with its traceback before Dash turns it into an answer that says nothing.
    """

    @functools.wraps(function)
    async def run(*arguments: Any) -> Any:
        try:
            return await asyncio.to_thread(function, *arguments)
        except PreventUpdate:
            raise
        except Exception:
            log.exception("callback %s failed", function.__qualname__)
            raise

    return run
