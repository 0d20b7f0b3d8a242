"""Beside closed hours stand summaries, of which only the newest counts: after a crash, a backup, damage."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from tests.integration.store.conftest import NOON

from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store import saving
from flopwatch_collector.store.port import quiet

LATER = NOON + 50_000


def phase(job: int, begin: float, end: float = np.nan) -> RawRows:
    return RawRows(
        phase={
            "ts": np.array([begin]), "end": np.array([end]), "job": np.array([job]), "launch": np.array([1]),
            "kind": np.array([1]),
        },
        gpu={"ts": np.array([begin]), "gpu": np.array([job]), "node": np.array([1])},
    )  # fmt: skip


@pytest.fixture
def hours(store, settings, clock):
    """Writes an hour after another; each is closed before the next one has a second batch."""
    count = 0

    def write(*batches: RawRows) -> None:
        nonlocal count
        for rows in batches:
            count += 1
            store.submit(BatchId(node="n", spool="s", sequence=count), rows).result(30)
            store.settle()
        clock.now += 3600

    return write


def summaries(settings, name="open_phase"):
    return sorted((settings.folder / "raw" / name).iterdir())


def overlapping(store, start: float = LATER) -> list[float]:
    return store.phases(start, start + 1000)["job"].tolist()


def test_a_phase_that_ended_in_the_open_hour_is_over_in_a_restored_backup_too(
    store, settings, hours, opened, tmp_path
) -> None:
    hours(phase(1, NOON), phase(2, NOON))
    hours(phase(9, NOON + 10, NOON + 20), phase(1, NOON, NOON + 4000))
    assert overlapping(store) == [2]
    store.backup(tmp_path / "backup")
    saving.restore(tmp_path / "backup", tmp_path / "restored", quiet)
    other = replace(settings, folder=tmp_path / "restored")
    assert overlapping(opened(other)) == [2]
    assert [len(summaries(other, name)) for name in ("open_phase", "latest")] == [1, 1]


def test_an_older_summary_that_a_crash_left_does_not_count(store, settings, hours, opened) -> None:
    hours(phase(1, NOON), phase(2, NOON))
    hours(phase(9, NOON + 10, NOON + 20), phase(1, NOON, NOON + 4000))
    (first,) = summaries(settings)
    old = first.read_bytes()
    hours(phase(9, NOON + 30, NOON + 40))
    copy = replace(settings, folder=settings.folder.with_name("copy"))
    shutil.copytree(settings.folder, copy.folder)
    (copy.folder / "raw" / "open_phase" / first.name).write_bytes(old)
    again = opened(copy)
    assert overlapping(again) == overlapping(store) == [2]
    assert len(summaries(copy)) == 1


def test_without_the_newest_summary_no_older_one_stands_in_for_open_phases(
    store, settings, hours, opened
) -> None:
    hours(phase(1, NOON), phase(2, NOON))
    hours(phase(9, NOON + 10, NOON + 20), phase(1, NOON, NOON + 4000))
    (first,) = summaries(settings)
    old = first.read_bytes()
    hours(phase(3, NOON + 7200))
    copy = replace(settings, folder=settings.folder.with_name("copy"))
    shutil.copytree(settings.folder, copy.folder)
    (copy.folder / "raw" / "open_phase" / first.name).write_bytes(old)
    max(summaries(copy)).write_bytes(b"nothing that Parquet knows")
    again = opened(copy)
    assert overlapping(again) == [2, 3]
    assert again.latest_gpus()["gpu"].tolist() == [1, 2, 3, 9]
