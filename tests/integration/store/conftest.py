from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.fixtures import clickhouse
from tests.fixtures import postgres as postgres_server
from tests.fixtures.memory_store import MemoryStore

from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings

NOON = 1_764_504_000.0
"""2025-11-30 12:00:00 UTC."""


@dataclass
class Clock:
    now: float = NOON

    def __call__(self) -> float:
        return self.now


@dataclass
class Bench:
    """A store under test, and how its hour ends, where it has one."""

    make: Callable
    settings: StoreSettings
    clock: Clock
    closes: bool = False
    sequence: int = 0
    store: object = field(init=False)

    def __post_init__(self) -> None:
        self.store = self.make(self.settings, self.clock)

    def write(self, **tables) -> None:
        """Write one batch and wait until it is durable."""
        self.sequence += 1
        batch = BatchId(node="n1", spool="s1", sequence=self.sequence)
        rows = {
            name: {column: np.asarray(values) for column, values in columns.items()}
            for name, columns in tables.items()
        }
        assert self.store.submit(batch, RawRows(**rows)).result(30).duplicate is False

    def between(self) -> None:
        """A moment at which an engine may move data: its hour ends, and it starts anew."""
        if not self.closes:
            return
        self.clock.now += 3600
        self.write(node={"ts": [1.0], "node": [999]})
        self.store.settle()
        self.store.close()
        self.store = self.make(self.settings, self.clock)


ENGINES = {
    "memory": (MemoryStore, False),
    "embedded": (EmbeddedStore, False),
    "embedded-closed-hours": (EmbeddedStore, True),
    "clickhouse": (None, True),
}
if clickhouse.LIVE:
    ENGINES["clickhouse-live"] = (clickhouse.live_store, False)


@pytest.fixture(scope="session")
def chdb(tmp_path_factory):
    """ClickHouse's engine behind its HTTP interface."""
    server = clickhouse.start(tmp_path_factory.mktemp("chdb"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres():
    """Debian's PostgreSQL."""
    server = postgres_server.start()
    yield server
    server.stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def settings(tmp_path: Path) -> StoreSettings:
    return StoreSettings(folder=tmp_path / "store", flush_seconds=0.01, free_disk_ratio=0.0)


@pytest.fixture(params=ENGINES)
def bench(request, settings, clock):
    make, closes = ENGINES[request.param]
    if make is None:
        make = partial(clickhouse.store, request.getfixturevalue("chdb").url)
    bench = Bench(make=make, settings=settings, clock=clock, closes=closes)
    yield bench
    bench.store.close()
    if request.param == "clickhouse-live":
        clickhouse.drop(bench.store)


@pytest.fixture
def store(settings, clock):
    store = EmbeddedStore(settings, clock)
    yield store
    store.close()


@pytest.fixture
def opened(clock):
    stores = []

    def open_(settings):
        stores.append(EmbeddedStore(settings, clock))
        return stores[-1]

    yield open_
    for store in stores:
        store.close()
