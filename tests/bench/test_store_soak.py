"""2,000 GPUs for a long time: memory, open files and disk stay where they are, and retention frees what it should.

Fleet time passes faster than real time: hours are closed, windows put and files dropped as over a day and more.
``FLOPWATCH_SOAK_MINUTES`` sets how long it runs (default 20).
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from flopwatch_collector.model import GPU_METRICS, BatchId, RawRows
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings

GPUS, JOBS = 2_000, 40
START = 1_764_504_000.0
STEP_SECONDS = 10.0
RAW_HOURS = 6.0
MINUTES = float(os.environ.get("FLOPWATCH_SOAK_MINUTES", "20"))
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, kw_only=True)
class Look:
    """The process and its folder at one moment."""

    fleet_hours: float
    resident_bytes: int
    open_files: int
    disk_bytes: int
    threads: int


def look(store: EmbeddedStore, now: float) -> Look:
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
    return Look(
        fleet_hours=(now - START) / 3600,
        resident_bytes=resident,
        open_files=_entries("/proc/self/fd"),
        disk_bytes=store.stats().bytes_on_disk,
        threads=_entries("/proc/self/task"),
    )


def _entries(folder: str) -> int:
    return sum(1 for _ in Path(folder).iterdir())


def samples(random: np.random.Generator, at: float) -> RawRows:
    """Every GPU once, every job's step, now and then an event."""
    gpus, jobs = np.arange(1.0, GPUS + 1), np.arange(1.0, JOBS + 1)
    table = {
        "ts": np.full(GPUS, at),
        "gpu": gpus,
        "node": (gpus - 1) // 8 + 1,
        "job": (gpus - 1) // (GPUS // JOBS) + 1,
        "interval_seconds": np.full(GPUS, STEP_SECONDS),
    }
    table |= {name: random.integers(0, 1000, GPUS) / 8 for name in GPU_METRICS}
    step = {"ts": np.full(JOBS, at), "job": jobs, "step": np.full(JOBS, at - START), "seconds": np.ones(JOBS)}
    event = {"ts": np.array([at]), "kind": np.array(["agent"])} if random.random() < 0.02 else {}
    return RawRows(gpu=table, step=step, event=event)


def put_windows(store: EmbeddedStore, window: float) -> None:
    rows = {"ts": np.full(JOBS, window), "job": np.arange(JOBS), "value": np.arange(JOBS) / 3}
    store.put_windows("job5m", [window], rows)
    store.put_windows("ledger5m", [window], rows)


def soaked(store: EmbeddedStore, clock: list[float]) -> Iterator[Look]:
    """Write, ask and retain until the time is over; a look every fleet hour."""
    random, until = np.random.default_rng(5), time.monotonic() + 60 * MINUTES
    sequence = 0
    while time.monotonic() < until:
        began = time.process_time()
        clock[0] = now = START + sequence * STEP_SECONDS
        store.submit(BatchId(node="n", spool="s", sequence=sequence), samples(random, now)).result(60)
        sequence += 1
        if sequence % 30 == 0:
            put_windows(store, now - now % 300)
            store.job_series(now - 300, now, 60)
            store.phases(now - 600, now)
        if sequence % 360 == 0:
            store.retain(now)
            store.settle()
            yield look(store, now)
        time.sleep(0.3 * (time.process_time() - began))


@pytest.mark.timeout(60 * MINUTES + 300)
def test_a_long_time_of_two_thousand_gpus(tmp_path, capsys) -> None:
    clock = [START]
    settings = StoreSettings(
        folder=tmp_path, flush_seconds=0.0, free_disk_ratio=0.0, raw_days=RAW_HOURS / 24, rollup_days=1.0
    )
    store = EmbeddedStore(settings, lambda: clock[0])
    cpu = time.process_time()
    looks = list(soaked(store, clock))
    cpu = time.process_time() - cpu
    problems = store.stats().problems
    store.close()
    warm = [each for each in looks if each.fleet_hours > RAW_HOURS + 1]
    middle = len(warm) // 2
    early, late = warm[:middle], warm[middle:]
    first, last = max(early, key=_resident), max(late, key=_resident)
    files = [max(each.open_files for each in part) for part in (early, late)]
    disk = [max(each.disk_bytes for each in part) for part in (early, late)]
    with capsys.disabled():
        print(
            f"\n{looks[-1].fleet_hours:.0f} h of {GPUS} GPUs in {MINUTES:g} min, {cpu:.0f} CPU-s "
            f"({cpu / 36 / looks[-1].fleet_hours:.2f} % of a core at real time, with making the rows)"
        )
        print(
            f"resident at most {first.resident_bytes >> 20} MiB early, {last.resident_bytes >> 20} MiB late"
        )
        print(f"open files at most {files[0]} early, {files[1]} late; threads {looks[-1].threads}")
        print(
            f"disk at most {disk[0] >> 20} MiB early, {disk[1] >> 20} MiB late, {RAW_HOURS:g} h of raw kept"
        )
    assert problems == ()
    assert last.resident_bytes <= 1.15 * first.resident_bytes
    assert files[1] <= files[0] + 2
    assert disk[1] <= 1.15 * disk[0]


def _resident(each: Look) -> int:
    return each.resident_bytes
