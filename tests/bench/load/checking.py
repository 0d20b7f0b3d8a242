"""The store after a run: whether what was acknowledged is there, once, and how large it is."""

import time
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from tests.bench.load.fleet import GPU_METRICS, NODE_METRICS, PORT_METRICS, STEP_METRICS

from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings

_METRICS = {"gpu": GPU_METRICS, "port": PORT_METRICS, "node": NODE_METRICS, "step": STEP_METRICS}


@dataclass(frozen=True, kw_only=True, slots=True)
class Stored:
    """What a data folder holds."""

    gpu_rows: int
    distinct_gpu_rows: int
    """By (GPU, time)."""
    step_rows: int
    closed_samples: int
    closed_bytes: int
    """Of closed hours: raw rows of GPUs, ports, nodes and steps."""
    open_seconds: float
    """To open the store again, with what it knows of the newest samples."""
    gpus_known: int
    latest_seconds: float
    """To ask for the newest sample of every GPU."""

    @property
    def closed_bytes_a_sample(self) -> float | None:
        """``None`` when no hour was closed."""
        return self.closed_bytes / self.closed_samples if self.closed_samples else None


def stored(folder: Path, begin: float, end: float) -> Stored:
    """Open a folder that no collector holds, and count."""
    began = time.perf_counter()
    store = EmbeddedStore(StoreSettings(folder=folder, free_disk_ratio=0.0), lambda: end)
    opened = time.perf_counter() - began
    try:
        began = time.perf_counter()
        known = len(store.latest_gpus()["gpu"])
        latest = time.perf_counter() - began
        samples = store.gpu_samples(begin - 60.0, end + 3600.0, ("power_watts",))
        steps = store.steps(begin - 60.0, end + 3600.0)
        store.settle()
        closed_samples, closed_bytes = _closed(folder)
    finally:
        store.close()
    pairs = np.stack([samples["gpu"], samples["ts"]], axis=1)
    return Stored(
        gpu_rows=len(pairs),
        distinct_gpu_rows=len(np.unique(pairs, axis=0)),
        step_rows=len(steps["ts"]),
        closed_samples=closed_samples,
        closed_bytes=closed_bytes,
        open_seconds=opened,
        gpus_known=known,
        latest_seconds=latest,
    )


def _closed(folder: Path) -> tuple[int, int]:
    samples = size = 0
    for table, metrics in _METRICS.items():
        files = sorted((folder / "raw" / table).glob("*.parquet"))
        size += sum(file.stat().st_size for file in files)
        for file in files:
            counted = duckdb.execute("SELECT count(*) FROM read_parquet(?)", [str(file)]).fetchone()
            samples += (counted[0] if counted else 0) * len(metrics)
    return samples, size
