"""What a sample costs the collector on its way to ClickHouse: CPU of this process, the server's is its own affair."""

import time

import numpy as np
import pytest
from tests.fixtures import clickhouse
from tests.integration.store.conftest import NOON, Clock

from flopwatch_collector.model import GPU_METRICS, BatchId, RawRows
from flopwatch_collector.store.port import StoreSettings

GPUS, PER_NODE, ROUNDS = 10_000, 8, 30
pytestmark = pytest.mark.bench


def rows_of(rng: np.random.Generator, at: float) -> RawRows:
    numbers = np.arange(GPUS)
    metrics = {name: np.round(rng.random(GPUS) * 1000, 2) for name in GPU_METRICS}
    return RawRows(
        gpu={
            "ts": np.full(GPUS, at),
            "gpu": numbers,
            "node": numbers // PER_NODE,
            "job": numbers // 512,
            **metrics,
        }
    )


def test_cpu_of_inserting_10000_gpus(tmp_path, record_property) -> None:
    server = clickhouse.start(tmp_path / "chdb")
    settings = StoreSettings(folder=tmp_path / "store", flush_seconds=0.0)
    store = clickhouse.store(server.url, settings, Clock())
    try:
        rng = np.random.default_rng(1)
        rounds = [rows_of(rng, NOON + 10 * at) for at in range(ROUNDS)]
        owners = {"gpu": np.arange(GPUS) // PER_NODE}
        began, wall = time.process_time(), time.monotonic()
        for at, rows in enumerate(rounds):
            batches = [BatchId(node=f"n{node}", spool="s", sequence=at) for node in range(GPUS // PER_NODE)]
            for future in store.submit_group(batches, rows, owners):
                future.result(60)
        cpu, wall = time.process_time() - began, time.monotonic() - wall
        samples = GPUS * len(GPU_METRICS) * ROUNDS
        size = store.stats().bytes_on_disk
        print(
            f"\n{samples / 1e6:.1f} M samples in {ROUNDS} inserts: {cpu / samples * 1e6:.3f} CPU-s a million here, "
            f"{wall / ROUNDS:.2f} s an insert with chDB's work, {size / samples:.2f} bytes a sample before merges; "
            f"at 10 s a round {cpu / ROUNDS / 10:.1%} of a core"
        )
        record_property("cpu_seconds_per_million_samples", cpu / samples * 1e6)
        assert store.stats().rows["gpu"] == GPUS * ROUNDS
        assert cpu / samples * 1e6 < 2.0
    finally:
        store.close()
        server.stop()
