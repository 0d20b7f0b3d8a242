"""``flopwatch collector``: the collector, with its dashboard in the same process."""

from fastapi import FastAPI

from flopwatch.query import Query
from flopwatch_collector import __main__ as collector
from flopwatch_dashboard.app import mount


def main(argv: list[str]) -> int:
    """Serve until SIGTERM or Ctrl-C.

    Raises:
        SettingError: a setting is wrong.
    """
    return collector.main(argv, _pages)


def _pages(api: FastAPI, query: Query, prefix: str) -> None:
    mount(api, query, prefix=prefix)
