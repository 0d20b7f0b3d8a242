"""Questions at 10,000 GPUs with 30 days of rollups and 7 days of steps, while the fleet goes on writing.

CPU seconds are of the whole process and trusted; wall times are of whatever else the machine does.
"""

import statistics
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from tests.bench.test_store import FLUSH_SECONDS, GPUS, START, Fleet

from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings

JOBS, NODES, DAYS = 80, 1_250, 30
RAW_SECONDS = 3_000.0
DAY = 86_400.0
END = START + 3_600.0
"""Raw samples end here, and rollups with them."""


def ledger_day(random: np.random.Generator, day_start: float) -> tuple[list[float], dict]:
    """A row a node and window, as a fleet of whole-node jobs has."""
    windows = day_start + 300.0 * np.arange(288.0)
    rows = {
        "ts": np.repeat(windows, NODES),
        "node": np.tile(np.arange(NODES), 288),
        "job": np.tile(np.arange(NODES) % JOBS, 288),
        "bucket": np.tile(
            np.array(["STEP", "HANG", "FREE", "HELD_IDLE", "CKPT"], dtype=object), 288 * NODES // 5
        ),
        "gpu_milliseconds": random.integers(0, 2_400_000, 288 * NODES),
    }
    return windows.tolist(), rows


def job_windows(random: np.random.Generator, windows: np.ndarray) -> dict:
    rows = {"ts": np.repeat(windows, JOBS), "job": np.tile(np.arange(JOBS), len(windows))}
    return rows | {f"value{at}": random.random(len(rows["ts"])).round(4) for at in range(16)}


def put_rollups(store: EmbeddedStore) -> None:
    random = np.random.default_rng(3)
    first = END - DAYS * DAY
    for day in range(DAYS):
        start = first + day * DAY
        windows, rows = ledger_day(random, start)
        store.put_windows("ledger5m", windows, rows)
        store.put_windows("job5m", windows, job_windows(random, np.array(windows)))
        hours = start + 3600.0 * np.arange(24.0)
        store.put_windows("job1h", hours.tolist(), job_windows(random, hours))
        one = {name: values[:NODES] for name, values in rows.items()}
        store.put_windows("ledger1d", [start], one)


def steps(store: EmbeddedStore) -> None:
    """Seven days, a row a job and minute."""
    random = np.random.default_rng(4)
    for day in range(7):
        times = END - (7 - day) * DAY + 60.0 * np.arange(1440)
        count = 1440 * JOBS
        table = {
            "ts": np.repeat(times, JOBS), "job": np.tile(np.arange(JOBS), 1440), "step": np.arange(count),
            "seconds": random.random(count), "tokens": np.full(count, 4e6),
        }  # fmt: skip
        store.submit(BatchId(node="steps", spool="s", sequence=day), RawRows(step=table)).result(60)


def raw(store: EmbeddedStore, clock: list[float]) -> None:
    """A closed hour of samples."""
    fleet = Fleet()
    for sequence in range(int(RAW_SECONDS / FLUSH_SECONDS)):
        at = END - RAW_SECONDS + sequence * FLUSH_SECONDS
        store.submit(BatchId(node="raw", spool="s", sequence=sequence), fleet.rows(at)).result(60)
    clock[0] += 3600
    store.submit(BatchId(node="raw", spool="s", sequence=10**6), RawRows()).result(60)
    store.settle()


def questions(store: EmbeddedStore) -> dict[str, Callable[[], object]]:
    month = END - DAYS * DAY
    return {
        "latest sample of every GPU": store.latest_gpus,
        "every job, last 5 min, by minute": lambda: store.job_series(END - 300, END, 60),
        "one job: steps and samples of the hour by minute": lambda: (
            store.steps(END - 3600, END, jobs=[7]), store.job_series(END - 3600, END, 60, jobs=[7])
        ),
        "30 days of the ledger, by day": lambda: store.windows("ledger1d", month, END),
        "1 day of the ledger, by 5 min": lambda: store.windows("ledger5m", END - DAY, END),
        "every job, 7 days, by hour": lambda: store.windows("job1h", END - 7 * DAY, END),
        "one job, 30 days, by 5 min": lambda: store.windows("job5m", month, END, jobs=[7]),
        "one GPU, raw hour": lambda: store.gpu_samples(END - 3600, END, ("power_watts",), gpus=[77]),
        "every job's steps, 7 days": lambda: store.steps(END - 7 * DAY, END),
        "one job's steps, 7 days": lambda: store.steps(END - 7 * DAY, END, jobs=[7]),
        "phases, last 10 min": lambda: store.phases(END - 600, END),
    }  # fmt: skip


def asked(question: Callable[[], object]) -> tuple[float, float, float]:
    """Milliseconds: first, median of five more, and CPU of each of those."""
    times = []
    for at in range(6):
        if at == 1:
            cpu = time.process_time()
        began = time.perf_counter()
        question()
        times.append((time.perf_counter() - began) * 1e3)
    return times[0], statistics.median(times[1:]), (time.process_time() - cpu) / 5 * 1e3


class Beside:
    """The fleet, which goes on writing half of its GPUs every five seconds."""

    def __init__(self, store: EmbeddedStore, since: float = END) -> None:
        self._store, self._since, self._over = store, since, threading.Event()
        self.written = 0
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _write(self) -> None:
        fleet, sequence = Fleet(), 0
        while not self._over.wait(FLUSH_SECONDS):
            rows = fleet.rows(self._since + sequence * FLUSH_SECONDS)
            self._store.submit(BatchId(node="on", spool="s", sequence=sequence), rows).result(60)
            sequence += 1
            self.written += len(rows.gpu["ts"])

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        assert self.written > 0


@pytest.mark.timeout(900)
def test_questions_at_ten_thousand_gpus(tmp_path, capsys) -> None:
    clock = [END]
    settings = StoreSettings(folder=tmp_path, flush_seconds=0.0, free_disk_ratio=0.0)
    store = EmbeddedStore(settings, lambda: clock[0])
    put_rollups(store)
    steps(store)
    raw(store, clock)
    store.close()
    store = EmbeddedStore(settings, lambda: clock[0])
    beside = Beside(store)
    try:
        report = {name: asked(question) for name, question in questions(store).items()}
    finally:
        beside.end()
    rows = store.stats().rows
    with capsys.disabled():
        print(
            f"\n{rows['gpu']} raw rows, {rows['step']} steps, {rows['ledger5m']} ledger, {rows['job5m']} job rows"
        )
        for name, (cold, warm, cpu) in report.items():
            print(f"{name}: first {cold:.0f}, then {warm:.0f} ms, {cpu:.0f} CPU-ms")
    store.close()
    assert GPUS == 10_000
    assert report["30 days of the ledger, by day"][2] < 300
    assert report["one job: steps and samples of the hour by minute"][2] < 300
