"""Kills in the middle of writing and of closing hours, full disks: what survives, and how soon it is back."""

import os
import subprocess
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.integration.store.ingesting_process import GPUS, START
from tests.integration.store.test_crash import killed_run

from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings, Unavailable

KILLS = 20
FULL_DISKS = 5


def reopened(settings: StoreSettings) -> tuple[EmbeddedStore, float]:
    """The store, and the seconds until it can be asked and written."""
    began = time.perf_counter()
    store = EmbeddedStore(settings)
    return store, time.perf_counter() - began


def assert_whole(store: EmbeddedStore, said: set[int]) -> None:
    """Everything that was said to be durable is there, once, with all its rows."""
    samples = store.gpu_samples(START, START + 1e6, ("energy_joules",))["energy_joules"]
    batches = Counter(int(value) for value in samples)
    assert said <= batches.keys()
    assert set(batches.values()) <= {GPUS}
    assert sorted(store.steps(START, START + 1e6)["step"].astype(int).tolist()) == sorted(batches)
    assert sorted(store.events(START, START + 1e6)["code"].astype(int).tolist()) == sorted(batches)
    assert (store.stats().batches_missing, store.stats().problems) == (0, ())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("per_hour", [1000, 4], ids=["open hour", "closing hours"])
def test_twenty_kills_lose_nothing_and_double_nothing(tmp_path, capsys, per_hour) -> None:
    moments, said, times, first = np.random.default_rng(per_hour), set(), [], 0
    for _ in range(KILLS):
        words = killed_run(tmp_path, first, per_hour, moments.uniform(0.05, 0.6))
        said |= {int(word[0]) for word in words if word[0] != "window"}
        store, seconds = reopened(StoreSettings(folder=tmp_path))
        times.append(seconds)
        assert_whole(store, said)
        store.close()
        first = max(0, max(said, default=0) - 3)
    with capsys.disabled():
        print(
            f"\n{KILLS} kills, {per_hour} batches an hour: {len(said)} batches acknowledged, none lost, none "
            f"doubled, none torn; open again after {np.median(times):.2f} s at the median, {max(times):.2f} s at most"
        )


def rows(sequence: int) -> RawRows:
    """A batch large enough to fill a small disk soon."""
    at, count, random = START + sequence, 100 * GPUS, np.random.default_rng(sequence)
    return RawRows(
        gpu={
            "ts": np.full(count, at),
            "gpu": np.arange(1, count + 1),
            "node": np.ones(count),
            "energy_joules": np.full(count, float(sequence)),
            "power_watts": random.random(count),
        },
        step={"ts": np.array([at]), "job": np.array([1]), "step": np.array([sequence])},
        event={"ts": np.array([at]), "kind": np.array(["xid"]), "code": np.array([sequence])},
    )


@pytest.mark.timeout(300)
def test_five_full_disks_lose_nothing_and_double_nothing(tmp_path, capsys) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    report = [_full_disk_run(tmp_path, at) for at in range(FULL_DISKS)]
    with capsys.disabled():
        for line in report:
            print(line)


def _full_disk_run(tmp_path, at: int) -> str:
    """Write until the disk is full, make room, go on until it is full again, and start anew."""
    disk = tmp_path / f"disk{at}"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)]
    subprocess.run(mount, check=True)
    try:
        return _filled(StoreSettings(folder=disk / "store", free_disk_ratio=0.0), disk / "filler", at)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def _filled(settings: StoreSettings, filler, at: int) -> str:
    now = [START]
    store = EmbeddedStore(replace(settings, flush_seconds=0.001), lambda: now[0])
    filler.write_bytes(bytes((3 + at) << 20))
    durable, refused, sequence = set(), 0, 0
    while refused < 6:
        now[0] = START + 3600 * (sequence // (5 + 10 * at))
        try:
            store.submit(BatchId(node="n", spool="s", sequence=sequence), rows(sequence)).result(60)
            durable.add(sequence)
        except Unavailable:
            refused += 1
            if refused == 3:
                filler.unlink()
        sequence += 1
    reopenings = store.stats().reopened
    store.close()
    store, seconds = reopened(settings)
    samples = store.gpu_samples(START, START + 1e6, ("energy_joules",))["energy_joules"]
    batches = Counter(int(value) for value in samples)
    assert durable <= batches.keys()
    assert set(batches.values()) == {100 * GPUS}
    assert sorted(store.steps(START, START + 1e6)["step"].astype(int).tolist()) == sorted(batches)
    assert store.stats().batches_missing == 0
    store.close()
    return (
        f"\nfull disk {at + 1}: {len(durable)} batches acknowledged, {refused} refused, none lost, none doubled; "
        f"database reopened {reopenings} times, folder open again after {seconds:.2f} s"
    )
