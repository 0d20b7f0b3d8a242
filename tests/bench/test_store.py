"""What the embedded store costs at 10,000 GPUs every 10 s: commits, closing an hour, disk, queries.

A sample is one metric of one GPU at one time. The store's own CPU only: neither HTTP nor decoding.
"""

import resource
import time

import numpy as np
import pytest

from flopwatch_collector.model import GPU_METRICS, BatchId, RawRows
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings

GPUS = 10_000
FLUSH_SECONDS = 5
START = 1_764_504_000.0
COUNTERS = ("pcie_transmit_bytes", "pcie_receive_bytes", "nvlink_transmit_bytes", "nvlink_receive_bytes")
STILL = ("throttle_seconds", "ecc_corrected", "ecc_uncorrected", "remapped_rows", "recovery_action")


class Fleet:
    """Half of the GPUs a flush; values noisy and rounded as a node's library gives them."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(7)
        self.turn = 0

    def rows(self, at: float) -> RawRows:
        random, count = self.random, GPUS // 2
        gpu = np.arange(1.0, count + 1) + count * (self.turn % 2)
        self.turn += 1
        node = (gpu - 1) // 8 + 1
        table = {
            "ts": at - FLUSH_SECONDS * (node % 100) / 100,
            "gpu": gpu,
            "node": node,
            "job": (gpu - 1) // 128 + 1,
            "interval_seconds": np.full(count, 10.0),
            "kernel_active_ratio": random.integers(90, 101, count) / 100,
            "memory_busy_ratio": random.integers(30, 60, count) / 100,
            "memory_used_bytes": 70e9 + gpu * 2**20,
            "power_watts": random.normal(600, 30, count).round(1),
            "energy_joules": ((at - START) * 600 + gpu * 1e5 + random.uniform(0, 50, count)).round(1),
            "temperature_celsius": random.integers(55, 65, count).astype(float),
            "memory_temperature_celsius": random.integers(60, 75, count).astype(float),
            "sm_clock_hertz": random.integers(118, 132, count) * 15e6,
            "memory_clock_hertz": np.full(count, 2619e6),
            "clock_event_reasons": random.choice([0.0, 4.0], count),
            "process_count": np.ones(count),
        }
        for name in ("sm_active_ratio", "sm_occupancy_ratio", "tensor_active_ratio", "dram_active_ratio"):
            table[name] = random.normal(0.5, 0.05, count).round(3)
        for name in COUNTERS:
            table[name] = ((at - START) * 1e9 + gpu * 1e6 + random.integers(0, 2**26, count)).round()
        table |= {name: np.zeros(count) for name in STILL}
        return RawRows(gpu=table)


def timed(question) -> tuple[float, int]:
    """Milliseconds of the third asking, and rows."""
    for _ in range(3):
        began = time.perf_counter()
        found = question()
        taken = time.perf_counter() - began
    return taken * 1e3, len(found["ts"])


def ingested(store, clock) -> tuple[list[float], list[float], float]:
    """An hour and a minute of the fleet: seconds and CPU seconds of each commit, CPU seconds with closing the hour."""
    fleet, commits, spent = Fleet(), [], []
    for sequence in range(3600 // FLUSH_SECONDS + 12):
        clock["now"] = START + sequence * FLUSH_SECONDS
        rows = fleet.rows(clock["now"])
        began, cpu_began = time.perf_counter(), time.process_time()
        store.submit(BatchId(node="n", spool="s", sequence=sequence), rows).result(60)
        commits.append(time.perf_counter() - began)
        spent.append(time.process_time() - cpu_began)
    cpu_began = time.process_time()
    store.settle()
    return commits, spent, sum(spent) + time.process_time() - cpu_began


def asked(store) -> dict[str, tuple[float, int]]:
    end = START + 3600
    questions = {
        "latest sample of every GPU": store.latest_gpus,
        "every job, last 5 min, by minute": lambda: store.job_series(end - 300, end, 60),
        "one job, 1 h, by minute": lambda: store.job_series(START, end, 60, jobs=[7]),
        "every job, 1 h, by 5 min": lambda: store.job_series(START, end, 300),
        "one GPU, 1 h, raw": lambda: store.gpu_samples(START, end, ("power_watts",), gpus=[77]),
    }
    return {name: timed(question) for name, question in questions.items()}


@pytest.mark.timeout(900)
def test_an_hour_of_ten_thousand_gpus(tmp_path, capsys) -> None:
    clock = {"now": START}
    settings = StoreSettings(folder=tmp_path, flush_seconds=0.0, free_disk_ratio=0.0)
    store = EmbeddedStore(settings, lambda: clock["now"])
    commits, spent, cpu = ingested(store, clock)
    share = cpu / (len(commits) * FLUSH_SECONDS)
    closed_bytes = sum(file.stat().st_size for file in (tmp_path / "raw" / "gpu").iterdir())
    bytes_a_sample = closed_bytes / (3600 / 10 * GPUS * len(GPU_METRICS))
    took = asked(store)
    began = time.perf_counter()
    store.close()
    EmbeddedStore(settings, lambda: clock["now"]).close()
    reopened = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    p50, p99, longest = np.percentile(commits, [50, 99, 100]) * 1e3
    cpu50, cpu99 = np.percentile(spent, [50, 99]) * 1e3
    with capsys.disabled():
        print(f"\ncommit of {GPUS // 2} rows: p50 {p50:.0f}, p99 {p99:.0f}, longest {longest:.0f} ms")
        print(f"CPU of a commit: p50 {cpu50:.1f}, p99 {cpu99:.1f} ms")
        print(f"CPU with closing the hour: {cpu:.1f} s, {share:.2%} of a core at real time")
        print(f"{bytes_a_sample:.2f} bytes a sample in the closed hour, peak memory {peak:.0f} MB")
        print(f"close and reopen {reopened:.2f} s")
        for name, (milliseconds, count) in took.items():
            print(f"{name}: {milliseconds:.0f} ms, {count} rows")
    assert share <= 0.15
    assert bytes_a_sample <= 1.4
    assert peak <= 1024


@pytest.mark.timeout(300)
def test_thirty_days_of_ledger_windows(tmp_path, capsys) -> None:
    store = EmbeddedStore(StoreSettings(folder=tmp_path, free_disk_ratio=0.0))
    random, jobs = np.random.default_rng(3), 200
    taken, cpu = 0.0, 0.0
    for day in range(30):
        windows = START + day * 86_400 + 300 * np.arange(288.0)
        rows = {
            "ts": np.repeat(windows, jobs),
            "job": np.tile(np.arange(jobs), 288),
            "bucket": np.tile(np.array(["STEP", "HANG", "FREE", "HELD_IDLE"], dtype=object), 288 * jobs // 4),
        }
        rows |= {f"value{at}": random.random(288 * jobs).round(4) for at in range(10)}
        began, cpu_began = time.perf_counter(), time.process_time()
        store.put_windows("ledger5m", windows.tolist(), rows)
        taken += time.perf_counter() - began
        cpu += time.process_time() - cpu_began
    one_day = timed(lambda: store.windows("ledger5m", START, START + 86_400))
    one_job = timed(lambda: store.windows("ledger5m", START, START + 30 * 86_400, jobs=[7]))
    size = store.stats().bytes_on_disk / 2**20
    with capsys.disabled():
        print(f"\n30 puts of a day, {30 * 288 * jobs} rows: {taken:.1f} s, {cpu:.1f} CPU-s, {size:.0f} MiB")
        print(
            f"one day {one_day[0]:.0f} ms, {one_day[1]} rows; one job {one_job[0]:.0f} ms, {one_job[1]} rows"
        )
    assert cpu < 15
    store.close()
