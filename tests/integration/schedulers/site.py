"""A whole collector with a clock of its own, and nodes that report to it."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.integration.collector.batches import batch, device, sample

from flopwatch import wire
from flopwatch_collector import app, config
from flopwatch_collector.compute.buckets import BUCKETS, REASONS

T0 = 1_800_000_000.0
"""A full hour, and the start of a window of the ledger."""


class Site:
    """A collector whose time and work a test drives itself."""

    def __init__(self, running: app.Running, clock: list[float]) -> None:
        self.running, self.clock = running, clock
        assert running.schedulers is not None
        self.schedulers = running.schedulers

    @property
    def state(self) -> Any:
        return self.running.directory.state()

    def push(self, told: wire.Batch) -> None:
        self.clock[0] = max(self.clock[0], told.sampled_at_seconds)
        self.running.ingest.accept_batch(told).result(timeout=30)

    def read(self, at: float) -> None:
        """Let every scheduler be read at this time, and declarations be told."""
        self.clock[0] = at
        self.schedulers.polls.prepare(at)
        for poll in self.schedulers.polls.polls:
            poll.turn(at)
        self.schedulers.nodes.turn(at)

    def settle(self, at: float) -> None:
        """Account until nothing is outstanding."""
        self.clock[0] = at
        for _ in range(50):
            self.running.accounting.tick(at)
            if self.running.accounting.settled():
                return
        raise AssertionError("the accounting does not settle")

    def ledger(self, start: float, end: float, **filters: Any) -> dict[str, int]:
        """GPU milliseconds by bucket and reason."""
        rows = self.running.accounting.ledger_rows(start, end, **filters)
        result: dict[str, int] = {}
        for bucket, reason, amount in zip(
            rows["bucket"].tolist(), rows["reason"].tolist(), rows["gpu_milliseconds"].tolist(), strict=True
        ):
            name = BUCKETS[int(bucket)] + (
                f":{REASONS[int(reason)]}" if BUCKETS[int(bucket)] == "FREE" else ""
            )
            result[name] = result.get(name, 0) + int(amount)
        return {name: amount for name, amount in result.items() if amount}


@contextmanager
def site(folder: Path, tables: dict[str, Any], environ: dict[str, str] | None = None) -> Iterator[Site]:
    """The collector on a folder."""
    clock = [T0]
    settings = config.read({"collector": {"data_dir": str(folder / "data")}, **tables}, {})
    running = app.build(settings, environ=environ or {}, clock=lambda: clock[0])
    try:
        yield Site(running, clock)
    finally:
        running.stop()


def uuid(node: str, index: int) -> str:
    return f"GPU-{node}-{index}"


def reports(node: str, start: float, end: float, busy: tuple[int, ...], gpus: int = 8) -> wire.Batch:
    """A node's samples every ten seconds: a process that works on the busy ones, none on the others."""
    devices = tuple(
        device(uuid(node, index), f"0000:{index + 16:02x}:00.0", index=index) for index in range(gpus)
    )
    samples = tuple(
        sample(
            uuid(node, index),
            at,
            interval_seconds=10.0,
            kernel_active_ratio=0.9 if index in busy else 0.0,
            process_count=1 if index in busy else 0,
            power_watts=600.0 if index in busy else 70.0,
        )
        for index in range(gpus)
        for at in [start + 10.0 * number for number in range(1, round((end - start) / 10.0) + 1)]
    )
    return batch(node, end, gpus=devices, gpu_samples=samples)


def command(folder: Path, name: str, script: str) -> None:
    """A program of a scheduler: a real process that prints what the test says."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
