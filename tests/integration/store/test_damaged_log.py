"""Logs that were damaged between two starts: what can be read is kept, and what is missing is counted."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from tests.integration.store.conftest import NOON

from flopwatch_collector.model import BatchId, RawRows

BATCHES, GPUS = 20, 50
LOG = "000000001.duckdb.wal"


def batch(sequence: int) -> BatchId:
    return BatchId(node="n", spool="s", sequence=sequence)


def rows(sequence: int) -> RawRows:
    return RawRows(
        gpu={
            "ts": np.full(GPUS, NOON + sequence),
            "gpu": np.arange(1, GPUS + 1),
            "node": np.ones(GPUS),
            "energy_joules": np.full(GPUS, float(sequence)),
        }
    )


@pytest.fixture
def left(store, settings):
    """A folder as a killed process leaves it, with all batches in its log."""
    for sequence in range(BATCHES):
        store.submit(batch(sequence), rows(sequence)).result(30)
    copy = settings.folder.with_name("copy")
    shutil.copytree(settings.folder, copy)
    return replace(settings, folder=copy)


def log_of(settings):
    return settings.folder / "raw" / "hot" / LOG


def whole_batches(store) -> list[int]:
    """Sequences found, each of which must have all its GPUs."""
    found = store.gpu_samples(NOON, NOON + 100, ("energy_joules",))["energy_joules"]
    sequences, counts = np.unique(found, return_counts=True)
    assert set(counts.tolist()) <= {GPUS}
    return sequences.astype(int).tolist()


def aside(settings) -> list[str]:
    return sorted(path.name for path in (settings.folder / "raw" / "aside").iterdir())


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75, 0.98])
def test_damage_anywhere_in_a_log_costs_only_what_follows_it_and_is_counted(left, opened, share) -> None:
    content = bytearray(log_of(left).read_bytes())
    at = min(int(len(content) * share) + 1, len(content) - 20)
    content[at : at + 16] = bytes(byte ^ 0xA5 for byte in content[at : at + 16])
    log_of(left).write_bytes(content)

    again = opened(left)
    kept = whole_batches(again)
    missing = BATCHES - len(kept)
    assert kept == list(range(len(kept)))
    assert len(kept) >= int(BATCHES * share) - 2
    assert missing >= 1
    assert again.stats().batches_missing == missing
    words = "1 acknowledged batch is" if missing == 1 else f"{missing} acknowledged batches are"
    assert any(f"{words} missing" in problem for problem in again.stats().problems)
    assert [name.rpartition(".")[2] for name in aside(left)] == [f"missing-{missing}"]
    # A batch that is gone is taken again; one that is there is not counted twice.
    assert again.submit(batch(BATCHES - 1), rows(BATCHES - 1)).result(30).duplicate is False
    assert all(again.submit(batch(sequence), rows(sequence)).result(30).duplicate for sequence in kept)


def test_a_log_without_its_end_is_noticed_and_what_comes_after_is_kept(left, opened) -> None:
    content = log_of(left).read_bytes()
    log_of(left).write_bytes(content[: len(content) // 2])
    again = opened(left)
    kept = whole_batches(again)
    assert again.stats().batches_missing == BATCHES - len(kept) > 0
    again.submit(batch(70), rows(70)).result(30)
    once_more = replace(left, folder=left.folder.with_name("more"))
    shutil.copytree(left.folder, once_more.folder)
    third = opened(once_more)
    assert whole_batches(third) == [*kept, 70]
    assert third.stats().problems == ()
    assert third.stats().batches_missing == BATCHES - len(kept)
    assert [(found.code, found.batches_missing) for found in third.check()] == [
        ("set_aside", BATCHES - len(kept))
    ]


def test_a_whole_log_leaves_nothing_aside_and_nothing_missing(left, opened) -> None:
    again = opened(left)
    assert whole_batches(again) == list(range(BATCHES))
    assert (again.stats().batches_missing, again.stats().problems, aside(left)) == (0, (), [])
    assert again.check() == ()
    names = {path.name for path in (left.folder / "raw" / "hot").iterdir()}
    assert names <= {"000000001.duckdb", LOG, "000000001.duckdb.count"}


def test_a_file_of_an_earlier_version_without_a_count_opens_and_gets_one(left, opened) -> None:
    count = left.folder / "raw" / "hot" / "000000001.duckdb.count"
    count.unlink()
    again = opened(left)
    assert whole_batches(again) == list(range(BATCHES))
    assert int(count.read_text()) == BATCHES


def test_damage_without_a_count_is_said_to_be_of_unknown_size(left, opened) -> None:
    (left.folder / "raw" / "hot" / "000000001.duckdb.count").unlink()
    content = bytearray(log_of(left).read_bytes())
    for at in range(len(content) // 4, len(content) - 100, 997):
        content[at] ^= 0xFF
    log_of(left).write_bytes(content)
    again = opened(left)
    assert any("an unknown number of batches is missing" in problem for problem in again.stats().problems)


def test_the_count_goes_with_its_hour(store, settings, clock) -> None:
    store.submit(batch(1), rows(1)).result(30)
    clock.now += 3600
    store.submit(batch(2), rows(2)).result(30)
    store.settle()
    names = {path.name for path in (settings.folder / "raw" / "hot").iterdir()}
    assert names <= {"000000002.duckdb", "000000002.duckdb.wal", "000000002.duckdb.count"}
    assert (settings.folder / "raw" / "hot" / "000000002.duckdb.count").read_text().strip() == "1".zfill(20)
