"""Collector and dashboard in one process, with something started beside them."""

import contextlib
import os
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from fastapi import FastAPI

from flopwatch import tls
from flopwatch.query import Query
from flopwatch.settings import SettingError
from flopwatch_collector import __main__ as collector
from flopwatch_collector import app, config
from flopwatch_collector.store.port import StoreLocked, Unavailable
from flopwatch_dashboard.app import mount

Beside = Callable[[app.Running, str], AbstractContextManager[object]]
"""Given the collector and its address: starts what runs beside it, and ends it at exit."""


def serve(
    settings: config.Settings, environ: Mapping[str, str], beside: Beside, *, simulated: bool = False
) -> int:
    """Serve until SIGTERM or Ctrl-C, with ``beside`` around it.

    Raises:
        CannotStart: the port or the data folder is taken, or nothing protects an open address.
        SettingError: a setting is wrong.
    """
    tls.check("collector", settings.collector.tls_cert, settings.collector.tls_key)
    with contextlib.closing(collector.listening(settings.collector)) as listener:
        running = _built(settings, environ, simulated=simulated)
        try:
            collector.require_protection(settings.collector, has_token=running.is_protected())
            with beside(running, collector.url(settings.collector, listener)):
                collector.run(running.app, settings.collector, listener)
        finally:
            running.stop()
    return 0


def _built(settings: config.Settings, environ: Mapping[str, str], *, simulated: bool) -> app.Running:
    try:
        return app.build(settings, environ=environ, simulated=simulated, mount=_mount)
    except SettingError:
        raise
    except (StoreLocked, Unavailable, ValueError, OSError) as error:
        folder = config.data_folder(settings.collector, environ)
        raise collector.CannotStart(f"the data folder {folder} cannot be used: {error}") from error


def _mount(api: FastAPI, query: Query, prefix: str) -> None:
    mount(api, query, prefix=prefix)


def state_folder(environ: Mapping[str, str]) -> Path:
    """Where data lie by default: ``FLOPWATCH_DATA_DIR``, else below the user's state directory."""
    if environ.get("FLOPWATCH_DATA_DIR"):
        return Path(environ["FLOPWATCH_DATA_DIR"])
    state = environ.get("XDG_STATE_HOME") or str(Path(environ.get("HOME", "/")) / ".local" / "state")
    return Path(state) / "flopwatch"


def say(text: str) -> None:
    """A line for the person at the terminal."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def how_to_look(address: str) -> str:
    """The page's address, and on a machine without a screen the line that brings it to one."""
    page = address + "ui/"
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        return page
    port = address.rstrip("/").rpartition(":")[2]
    return f"{page}\n  from another machine: ssh -L {port}:127.0.0.1:{port} {socket.gethostname()}"
