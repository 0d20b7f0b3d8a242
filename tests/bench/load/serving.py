"""The collector's process under load: the product's own parts, with the fleet's clock and its threads told by name."""

import argparse
import json
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

from fastapi import FastAPI
from tests.bench.load.clock import FleetClock

from flopwatch.query import Query
from flopwatch_collector import __main__ as collector
from flopwatch_collector import app, config
from flopwatch_dashboard.app import mount

NAMES_SECONDS = 1.0


def main() -> int:
    """Serve until SIGTERM."""
    options = argparse.ArgumentParser()
    options.add_argument("--folder", type=Path, required=True)
    options.add_argument("--start", type=float, required=True)
    options.add_argument("--wall-start", type=float, required=True)
    options.add_argument("--speed", type=float, default=1.0)
    given = options.parse_args()
    clock = FleetClock(start_seconds=given.start, wall_start_seconds=given.wall_start, speed=given.speed)
    settings = config.read({}, {})
    settings = replace(
        settings, collector=replace(settings.collector, port=0, data_dir=given.folder / "data")
    )
    # Periodic work is due by the fleet's time.
    evaluate_seconds = settings.alerts.evaluate_seconds / given.speed
    settings = replace(settings, alerts=replace(settings.alerts, evaluate_seconds=evaluate_seconds))
    listener = collector.listening(settings.collector)
    running = app.build(settings, environ={}, mount=_pages, clock=clock.now)
    running.periodic.accounting_seconds /= given.speed
    (given.folder / "port").write_text(str(listener.getsockname()[1]))
    threading.Thread(
        target=_tell_names, args=(given.folder / "threads.json",), daemon=True, name="bench-names"
    ).start()
    try:
        collector.run(running.app, settings.collector, listener)
    finally:
        running.stop()
    return 0


def _pages(api: FastAPI, query: Query, prefix: str) -> None:
    mount(api, query, prefix=prefix)


def _tell_names(path: Path) -> None:
    """Write which thread of the system has which name, again and again."""
    known: dict[str, str] = {}
    while True:
        known |= {str(thread.native_id): thread.name for thread in threading.enumerate()}
        path.with_suffix(".new").write_text(json.dumps(known))
        path.with_suffix(".new").replace(path)
        time.sleep(NAMES_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
