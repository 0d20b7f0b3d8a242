"""What the store refuses, and what it does when the disk or the queue is full."""

import os
import re
import shutil
import subprocess
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from tests.integration.store.conftest import NOON

from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store import embedded
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import Overloaded, Unavailable

DAY = 86_400.0


def batch(sequence: int) -> BatchId:
    return BatchId(node="n", spool="s", sequence=sequence)


def rows(at: float = NOON, count: int = 1, seed: int = 0) -> RawRows:
    rng = np.random.default_rng(seed)
    return RawRows(
        gpu={
            "ts": np.full(count, at),
            "gpu": np.arange(1, count + 1),
            "node": np.ones(count),
            "power_watts": rng.random(count),
            "energy_joules": rng.random(count),
        },
        event={"ts": np.array([at]), "kind": np.array(["agent"]), "code": np.array([seed])},
    )


def test_a_full_queue_refuses_and_loses_nothing_it_took(settings, clock) -> None:
    store = EmbeddedStore(replace(settings, queue_batches=3, flush_seconds=60.0), clock)
    taken = [store.submit(batch(sequence), rows()) for sequence in range(3)]
    with pytest.raises(Overloaded) as refused:
        store.submit(batch(3), rows())
    assert refused.value.retry_after_seconds > 0
    assert store.stats().pending_batches == 3
    store.close()
    assert [future.result(0).duplicate for future in taken] == [False] * 3


def test_twenty_thousand_rows_do_not_wait_for_the_clock(settings, clock) -> None:
    store = EmbeddedStore(replace(settings, flush_seconds=60.0), clock)
    started = time.monotonic()
    assert store.submit(batch(1), rows(NOON - 30 * DAY, 20_000)).result(30).duplicate is False
    assert time.monotonic() - started < 30
    assert len(store.gpu_samples(NOON - 30 * DAY, NOON, ())["ts"]) == 20_000
    store.close()


def test_waiting_batches_share_one_commit(settings, clock) -> None:
    store = EmbeddedStore(replace(settings, flush_seconds=0.3), clock)
    futures = [store.submit(batch(sequence % 40), rows(NOON + sequence)) for sequence in range(50)]
    assert sum(future.result(30).duplicate for future in futures) == 10
    assert store.stats().commits == 1
    store.close()


def test_after_closing_nothing_is_taken(settings, clock) -> None:
    store = EmbeddedStore(settings, clock)
    store.close()
    store.close()
    with pytest.raises(Unavailable, match="closed"):
        store.submit(batch(1), rows())


def test_a_disk_below_the_limit_takes_nothing_and_says_so(settings, clock) -> None:
    store = EmbeddedStore(replace(settings, free_disk_ratio=1.0), clock)
    with pytest.raises(Unavailable, match=r"of the disk is free; below 100% nothing is accepted"):
        store.submit(batch(1), rows())
    with pytest.raises(Unavailable):
        store.put_windows("job5m", [0.0], {})
    store.close()


@pytest.mark.parametrize(
    ("table", "columns", "words"),
    [
        ("gpu", {"ts": [NOON], "gpu": [1], "speed": [1]}, "gpu: no such column 'speed'"),
        ("gpu", {"ts": [NOON]}, "gpu: the column 'gpu' is missing"),
        ("gpu", {"ts": [NOON], "gpu": [1, 2]}, "gpu.gpu: 2 values for 1 rows"),
        ("gpu", {"ts": [float("nan")], "gpu": [1]}, "gpu.ts: a value is missing"),
        ("gpu", {"ts": [1e15], "gpu": [1]}, "gpu.ts is 1e+15; allowed: 0 to 2.53402e+11"),
        ("gpu", {"ts": [NOON], "gpu": [-1]}, "gpu.gpu is -1; allowed: 0 to 4.29497e+09"),
        ("step", {"ts": [NOON], "job": [1], "step": [1e30]}, "step.step is 1e+30"),
        ("event", {"ts": [NOON], "kind": [5]}, "event.kind: 5 is not a string"),
    ],
)
def test_rows_that_cannot_be_kept_are_refused_by_name(store, table, columns, words) -> None:
    arrays = {name: np.array(values) for name, values in columns.items()}
    with pytest.raises(ValueError, match=re.escape(words)):
        store.submit(batch(1), RawRows(**{table: arrays}))
    assert store.submit(batch(1), rows()).result(30).duplicate is False


@pytest.mark.parametrize(
    ("windows", "columns", "words"),
    [
        ([0.0], {"ts": [300.0]}, "rows of window 300, which is not among the windows put"),
        ([0.0], {"ts": [0.0], "job": [1, 2]}, "job5m.job: 2 values for 1 rows"),
        ([0.0], {"ts": [0.0], "when": np.array(["2025-01-01"], dtype="datetime64[s]")}, "numbers or strings"),
    ],
)
def test_windows_that_cannot_be_kept_are_refused_by_name(store, windows, columns, words) -> None:
    with pytest.raises(ValueError, match=words):
        store.put_windows("job5m", windows, {name: np.asarray(values) for name, values in columns.items()})
    assert store.done_windows("job5m", 0, 1e6) == frozenset()


def test_an_unknown_column_of_samples_is_named(store) -> None:
    with pytest.raises(ValueError, match="no such column 'speed'"):
        store.gpu_samples(0, 1, ("speed",))


def test_retention_frees_what_is_old_and_keeps_what_is_not(settings, clock) -> None:
    store = EmbeddedStore(replace(settings, raw_days=2, rollup_days=10, hourly_days=20), clock)
    for day in range(6):
        clock.now = NOON + day * DAY
        store.submit(batch(day), rows(clock.now, 5000, seed=day)).result(30)
        for kind in ("job5m", "ledger1d"):
            store.put_windows(kind, [clock.now], {"ts": np.array([clock.now]), "day": np.array([day])})
    store.settle()
    before = store.stats()
    freed = store.retain(NOON + 4.5 * DAY)
    after = store.stats()
    assert freed > 100_000
    lists = 1_000
    assert freed <= before.bytes_on_disk - after.bytes_on_disk <= freed + lists
    days = sorted(set(store.gpu_samples(0, 1e10, ())["ts"].tolist()))
    assert days == [NOON + day * DAY for day in (3, 4, 5)]
    assert after.rows["gpu"] == 15_000
    assert store.windows("job5m", 0, 1e10)["day"].tolist() == [0, 1, 2, 3, 4, 5]
    store.retain(NOON + 13 * DAY)
    assert store.windows("job5m", 0, 1e10)["day"].tolist() == [3, 4, 5]
    assert store.done_windows("job5m", 0, 1e10) == {NOON + day * DAY for day in (3, 4, 5)}
    assert store.windows("ledger1d", 0, 1e10)["day"].tolist() == [0, 1, 2, 3, 4, 5]
    store.close()


def test_raw_hours_beyond_the_most_bytes_go_oldest_first(settings, clock) -> None:
    store = EmbeddedStore(settings, clock)
    for hour in range(5):
        clock.now = NOON + hour * 3600.0
        store.submit(batch(hour), rows(clock.now, 5000, seed=hour)).result(30)
    store.settle()
    sizes = {}
    for path in (settings.folder / "raw").glob("*/0*.parquet"):
        if path.parent.name not in ("latest", "open_phase"):
            sizes[path.name[:9]] = sizes.get(path.name[:9], 0) + path.stat().st_size
    store.close()
    keeps_two = sizes["000000003"] + sizes["000000004"]
    store = EmbeddedStore(replace(settings, raw_bytes=keeps_two), clock)
    assert store.retain(clock.now) == sizes["000000001"] + sizes["000000002"]
    assert sorted(set(store.gpu_samples(0, 1e10, ())["ts"])) == [NOON + hour * 3600.0 for hour in (2, 3, 4)]
    assert store.retain(clock.now) == 0
    assert len(store.latest_gpus()["gpu"]) == 5000
    store.close()


def test_readers_see_every_row_once_while_hours_are_closed(settings, clock) -> None:
    store = EmbeddedStore(settings, clock)
    wrong, over = [], threading.Event()

    def read() -> None:
        while not over.is_set():
            before = store.stats().rows["event"]
            found = store.events(0, 1e10)["code"].tolist()
            after = store.stats().rows["event"]
            if len(set(found)) != len(found) or not before <= len(found) <= after + 1:
                wrong.append((before, len(found), after))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for sequence in range(15):
        clock.now += 1200
        store.submit(batch(sequence), rows(clock.now, 100, seed=sequence)).result(30)
    store.settle()
    over.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert len(store.events(0, 1e10)["ts"]) == 15
    store.close()


def test_superseded_rollup_files_are_merged_away(store, settings) -> None:
    for at in range(60):
        store.put_windows("ledger5m", [300.0 * at], {"ts": np.array([300.0 * at])})
    store.settle()
    assert len(list((settings.folder / "rollup" / "ledger5m").iterdir())) <= 26
    assert len(store.windows("ledger5m", 0, 1e6)["ts"]) == 60


def test_retention_merges_closed_days_to_one_file(store, settings) -> None:
    for day in (0.0, 1.0, 2.0):
        for at in range(5):
            window = day * DAY + 300.0 * at
            store.put_windows("ledger5m", [window], {"ts": np.array([window]), "at": np.array([at])})
    store.retain(3 * DAY)
    store.settle()
    files = sorted(path.name for path in (settings.folder / "rollup" / "ledger5m").iterdir())
    assert len(files) == 1 + 1 + 5
    assert store.windows("ledger5m", 0, 3 * DAY)["at"].tolist() == [0, 1, 2, 3, 4] * 3


def test_a_window_put_often_leaves_few_files(store, settings) -> None:
    for at in range(12):
        store.put_windows("job5m", [0.0], {"ts": np.array([0.0]), "at": np.array([at])})
    store.settle()
    assert len(list((settings.folder / "rollup" / "job5m").iterdir())) == 1
    assert store.windows("job5m", 0, 1)["at"].tolist() == [11]


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_at_five_percent_nothing_is_accepted_while_the_disk_still_has_room(
    small_disk, settings, opened, monkeypatch
) -> None:
    monkeypatch.setattr(embedded, "DISK_CHECK_SECONDS", 0.0)
    store = opened(replace(settings, folder=small_disk / "store", free_disk_ratio=0.05))
    said, durable = None, 0
    while said is None:
        try:
            store.submit(batch(durable), rows(NOON + durable, 200, seed=durable)).result(30)
            durable += 1
        except Unavailable as refused:
            said = str(refused)
    assert re.search(r"[45]\.\d% of the disk is free; below 5% nothing is accepted", said)
    assert shutil.disk_usage(small_disk).free > 0
    assert store.stats().problems == ()
    assert len(store.events(0, 1e10)["ts"]) == durable > 20
    with pytest.raises(Unavailable):
        store.put_windows("job5m", [0.0], {"ts": np.zeros(1)})


@pytest.mark.parametrize("per_hour", [1000, 15], ids=["open hour", "closing hours"])
def test_a_full_disk_loses_nothing_that_was_durable(small_disk, settings, clock, opened, per_hour) -> None:
    settings = replace(settings, folder=small_disk / "store")
    store = opened(settings)
    filler = small_disk / "filler"
    filler.write_bytes(bytes(4 * 2**20))
    durable, refused = set(), 0
    for sequence in range(300):
        clock.now = NOON + sequence // per_hour * 3600
        try:
            store.submit(batch(sequence), rows(NOON + sequence, 4000, seed=sequence)).result(60)
            durable.add(sequence)
        except Unavailable:
            refused += 1
            if refused == 3:
                filler.unlink()
            if refused == 6:
                break
    assert refused == 6
    assert max(durable) >= 12
    for _ in range(2):  # as it is, and after a start
        found = store.events(0, 1e10)["code"]
        assert sorted(found.tolist()) == sorted(set(found.tolist()))
        assert durable <= set(found.tolist())
        times = store.gpu_samples(0, 1e10, ())["ts"] - NOON
        assert np.unique_counts(times).counts.tolist() == [4000] * len(found)
        store.close()
        store = opened(settings)
