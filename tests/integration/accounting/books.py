"""A real store with what was measured in it, a fleet that is given, and an accounting over both."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from flopwatch_collector.accounting import Accounting, Terms
from flopwatch_collector.bookkeeping.prices import Prices
from flopwatch_collector.model import (
    GPU_COLUMNS,
    BatchId,
    Columns,
    FleetState,
    Gpu,
    JobRecord,
    Launch,
    LeaseRecord,
    Node,
    RawRows,
    empty,
)
from flopwatch_collector.store.control_sqlite import SqliteControl
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings


@dataclass
class GivenFleet:
    """A fleet whose state is set by the test."""

    nodes: dict[int, Node] = field(default_factory=dict)
    gpus: dict[int, Gpu] = field(default_factory=dict)
    jobs: dict[int, JobRecord] = field(default_factory=dict)
    launches: dict[int, Launch] = field(default_factory=dict)
    leases: dict[str, LeaseRecord] = field(default_factory=dict)
    generation: int = 1

    def state(self) -> FleetState:
        """The state as set."""
        return FleetState(
            generation=self.generation,
            nodes=dict(self.nodes),
            gpus=dict(self.gpus),
            jobs=dict(self.jobs),
            launches=dict(self.launches),
            leases=dict(self.leases),
            latest=empty(GPU_COLUMNS),
        )


class Books:
    """The parts of one collector, without its wire."""

    def __init__(self, folder: Path, fleet: GivenFleet, clock: list[float], **settings: object) -> None:
        self.folder, self.fleet, self.clock = folder, fleet, clock
        self._settings = settings
        self._sequence = 0
        self._ticks = 0
        self.open()

    def open(self) -> None:
        """Open the folder, as a collector's start does."""
        self.store = EmbeddedStore(StoreSettings(folder=self.folder / "store"), clock=lambda: self.clock[0])
        self.control = SqliteControl(self.folder / "control.sqlite")
        terms = Terms(timer=lambda: 10.0 * self._ticks, **self._settings)
        self.accounting = Accounting(self.store, self.control, self.fleet, terms)

    def close(self) -> None:
        """Let everything go."""
        self.store.close()
        self.control.close()

    def put(self, *, gpu: Columns | None = None, **tables: Columns) -> None:
        """Make rows durable."""
        self._sequence += 1
        batch = BatchId(node="n", spool="s", sequence=self._sequence)
        self.store.submit(batch, RawRows(gpu=whole(gpu) if gpu else {}, **tables)).result(60)

    def tick(self, now: float) -> None:
        """Let the accounting work at this time."""
        self.clock[0] = now
        self._ticks += 1
        self.accounting.tick(now)

    def settle(self, now: float) -> None:
        """Tick until nothing is outstanding."""
        self.tick(now)
        for _ in range(50):
            if self.accounting.settled():
                return
            self.tick(now)
        raise AssertionError("the accounting does not settle")


def whole(samples: Columns) -> Columns:
    """Samples with all columns of the table, those not given unknown."""
    count = samples["ts"].size
    return {name: samples.get(name, np.full(count, np.nan)) for name in GPU_COLUMNS}


PRICES = Prices(price_per_gpu_hour=2.0)
