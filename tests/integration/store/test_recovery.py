"""What a start makes of folders that were left in the middle of something, or damaged.

A copy of the folder of an open store is what a crash at that moment leaves.
"""

import os
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from tests.integration.store.conftest import NOON

from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store import closing
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreLocked

FIRST = BatchId(node="n", spool="s", sequence=1)


def sample(at: float = NOON) -> RawRows:
    return RawRows(
        gpu={"ts": np.array([at]), "gpu": np.array([1]), "node": np.array([1])},
        step={"ts": np.array([at]), "job": np.array([1])},
    )


def crashed(store, settings):
    """The settings of a copy of the folder as it is now."""
    copy = settings.folder.with_name("copy")
    shutil.copytree(settings.folder, copy)
    return replace(settings, folder=copy)


def hot_files(settings) -> list[str]:
    return sorted(path.name for path in (settings.folder / "raw" / "hot").iterdir())


def assert_has_the_sample_once(store) -> None:
    assert store.gpu_samples(NOON, NOON + 1, ())["gpu"].tolist() == [1]
    assert store.steps(NOON, NOON + 1)["job"].tolist() == [1]
    assert store.latest_gpus()["ts"].tolist() == [NOON]
    assert store.submit(FIRST, sample()).result(30).duplicate is True


def test_rows_that_are_only_in_the_log_are_there_after_a_crash(store, settings, opened) -> None:
    store.submit(FIRST, sample()).result(30)
    again = opened(crashed(store, settings))
    assert_has_the_sample_once(again)
    assert again.stats().problems == ()


def test_closing_that_was_interrupted_before_its_marker_starts_over(store, settings, opened) -> None:
    store.submit(FIRST, sample()).result(30)
    closing._exported(store._ground, 1)
    left = crashed(store, settings)
    (left.folder / "raw" / "gpu" / "000000001-1-2.parquet.tmp").write_bytes(b"half")
    again = opened(left)
    assert_has_the_sample_once(again)
    assert list((left.folder / "raw" / "gpu").iterdir()) == []


def test_closing_that_was_interrupted_after_its_marker_is_finished(store, settings, opened) -> None:
    store.submit(FIRST, sample()).result(30)
    closing._exported(store._ground, 1)
    left = crashed(store, settings)
    (left.folder / "raw" / "sealed" / "000000001").touch()
    again = opened(left)
    assert_has_the_sample_once(again)
    assert list((left.folder / "raw" / "sealed").iterdir()) == []
    assert [name for name in hot_files(left) if name.endswith(".duckdb")] == ["000000002.duckdb"]


def test_a_marker_whose_file_is_gone_is_removed(store, settings, opened) -> None:
    left = crashed(store, settings)
    (left.folder / "raw" / "sealed" / "000000001").touch()
    for path in (left.folder / "raw" / "hot").iterdir():
        path.unlink()
    opened(left)
    assert list((left.folder / "raw" / "sealed").iterdir()) == []


def test_a_hot_file_that_was_being_made_is_removed(store, settings, opened) -> None:
    store.submit(FIRST, sample()).result(30)
    left = crashed(store, settings)
    (left.folder / "raw" / "hot" / "000000002.duckdb.new").write_bytes(b"half")
    again = opened(left)
    assert_has_the_sample_once(again)
    assert "000000002.duckdb.new" not in hot_files(left)


def test_several_open_files_are_closed_but_the_last(store, settings, clock, opened) -> None:
    store.submit(FIRST, sample()).result(30)
    store._upkeep.close()  # as if the process died before it came to close the hour
    clock.now += 3600
    store.submit(replace(FIRST, sequence=2), sample(NOON + 5)).result(30)
    left = crashed(store, settings)
    again = opened(left)
    again.settle()
    assert [name for name in hot_files(left) if name.endswith(".duckdb")] == ["000000002.duckdb"]
    assert again.gpu_samples(NOON, NOON + 10, ())["ts"].tolist() == [NOON, NOON + 5]


def spoiled(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:8] + b"\xa5" * 16 + content[24:])


def test_a_log_that_cannot_be_replayed_is_set_aside_and_reported(store, settings, opened) -> None:
    for sequence in range(20):
        store.submit(replace(FIRST, sequence=sequence), sample(NOON + sequence)).result(30)
    left = crashed(store, settings)
    spoiled(left.folder / "raw" / "hot" / "000000001.duckdb.wal")
    again = opened(left)
    assert any("20 acknowledged batches are missing" in problem for problem in again.stats().problems)
    assert len(list((left.folder / "raw" / "aside").iterdir())) == 1
    assert again.submit(replace(FIRST, sequence=99), sample()).result(30).duplicate is False


def test_a_hot_file_that_cannot_be_opened_is_set_aside_and_reported(store, settings, opened) -> None:
    store.submit(FIRST, sample()).result(30)
    left = crashed(store, settings)
    (left.folder / "raw" / "hot" / "000000001.duckdb").write_bytes(b"nothing that DuckDB knows" * 1000)
    again = opened(left)
    assert any("could not be opened" in problem for problem in again.stats().problems)
    assert again.submit(FIRST, sample()).result(30).duplicate is False


def test_a_closed_hour_that_cannot_be_read_costs_only_itself(store, settings, clock, opened) -> None:
    for hour in range(3):
        clock.now = NOON + 3600 * hour
        store.submit(replace(FIRST, sequence=hour), sample(clock.now)).result(30)
    store.settle()
    left = crashed(store, settings)
    first = min((left.folder / "raw" / "gpu").glob("*.parquet"))
    first.write_bytes(first.read_bytes()[:-30])
    again = opened(left)
    assert again.gpu_samples(0, 1e10, ())["ts"].tolist() == [NOON + 3600, NOON + 7200]
    assert any(str(first) in problem for problem in again.stats().problems)


def test_a_rollup_file_that_cannot_be_read_leaves_its_windows_undone(store, settings, opened) -> None:
    for window in (0.0, 300.0):
        store.put_windows("job5m", [window], {"ts": np.array([window]), "job": np.array([1])})
    left = crashed(store, settings)
    min((left.folder / "rollup" / "job5m").iterdir()).write_bytes(b"x" * 100)
    again = opened(left)
    assert again.done_windows("job5m", 0, 1e6) == {300.0}
    assert again.windows("job5m", 0, 1e6)["ts"].tolist() == [300]
    assert len(again.stats().problems) == 1


def spoiled_in_its_middle(path: Path) -> None:
    """Damage that a file's footer does not show, but every reading of its rows."""
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)


def test_a_closed_hour_that_breaks_while_it_is_used_costs_only_itself(
    store, settings, clock, tmp_path
) -> None:
    for hour in range(3):
        clock.now = NOON + 3600 * hour
        store.submit(replace(FIRST, sequence=hour), sample(clock.now)).result(30)
    store.settle()
    broken = [min((settings.folder / "raw" / table).glob("*.parquet")) for table in ("gpu", "step")]
    for path in broken:
        spoiled_in_its_middle(path)
    assert store.gpu_samples(0, 1e10, ())["ts"].tolist() == [NOON + 3600, NOON + 7200]
    assert store.steps(0, 1e10)["ts"].tolist() == [NOON + 3600, NOON + 7200]
    for path in broken:
        assert any(f"{path} can no longer be read" in problem for problem in store.stats().problems)
    assert [found.code for found in store.check()] == ["set_aside", "set_aside"]
    assert len(store.phases(0, 1e10)["ts"]) == 0


def test_a_closed_hour_that_breaks_is_found_whatever_its_folder_is_called(settings, clock, opened) -> None:
    store = opened(replace(settings, folder=settings.folder.with_name("it's here")))
    for hour in range(2):
        clock.now = NOON + 3600 * hour
        store.submit(replace(FIRST, sequence=hour), sample(clock.now)).result(30)
    store.settle()
    spoiled_in_its_middle(next((settings.folder.with_name("it's here") / "raw" / "gpu").glob("*.parquet")))
    assert store.gpu_samples(0, 1e10, ())["ts"].tolist() == [NOON + 3600]


def test_a_summary_that_breaks_is_done_without(store, settings, clock) -> None:
    for hour in range(2):
        clock.now = NOON + 3600 * hour
        phase = {
            "ts": np.array([clock.now]),
            "job": np.array([hour]),
            "launch": np.array([1]),
            "kind": np.array([1]),
        }
        store.submit(replace(FIRST, sequence=hour), RawRows(phase=phase)).result(30)
        store.settle()
    summary = next((settings.folder / "raw" / "open_phase").iterdir())
    spoiled_in_its_middle(summary)
    assert store.phases(NOON, NOON + 1e5)["job"].tolist() == [0, 1]
    assert any(f"{summary} can no longer be read" in problem for problem in store.stats().problems)


def test_rollups_that_break_while_they_are_used_leave_their_windows_undone(store, settings) -> None:
    for window in (0.0, 300.0):
        store.put_windows("job5m", [window], {"ts": np.full(50, window), "job": np.arange(50)})
    spoiled_in_its_middle(min((settings.folder / "rollup" / "job5m").iterdir()))
    assert set(store.windows("job5m", 0, 1e6)["ts"].tolist()) == {300}
    assert store.done_windows("job5m", 0, 1e6) == {300.0}
    assert len(store.stats().problems) == 1


def test_another_data_format_is_refused_and_named(store, settings, clock) -> None:
    left = crashed(store, settings)
    (left.folder / "format").write_text("7\n")
    with pytest.raises(ValueError, match=r"data format '7'.*reads and writes 1"):
        EmbeddedStore(left, clock)


def test_a_second_process_is_refused_and_told_who_holds_the_folder(store, settings) -> None:
    program = (
        "import sys, pathlib\n"
        "from flopwatch_collector.store.embedded import EmbeddedStore\n"
        "from flopwatch_collector.store.port import StoreLocked, StoreSettings\n"
        "try:\n"
        "    EmbeddedStore(StoreSettings(folder=pathlib.Path(sys.argv[1])))\n"
        "except StoreLocked as refused:\n"
        "    print(refused)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, str(settings.folder)], capture_output=True, text=True, check=True
    ).stdout
    assert said == f"{settings.folder} is in use by another process (pid {os.getpid()})\n"


def test_a_closed_store_lets_the_folder_go(store, settings, opened) -> None:
    with pytest.raises(StoreLocked):
        opened(settings)
    store.close()
    opened(settings)


def test_a_database_that_died_is_reopened_and_nothing_is_lost(store, settings, opened) -> None:
    store.submit(FIRST, sample()).result(30)
    kill_database(store)
    assert store.submit(replace(FIRST, sequence=2), sample(NOON + 1)).result(30).duplicate is False
    assert store.stats().reopened == 1
    assert len(store.stats().problems) == 1
    assert store.gpu_samples(NOON, NOON + 2, ())["ts"].tolist() == [NOON, NOON + 1]
    again = opened(crashed(store, settings))
    assert again.gpu_samples(NOON, NOON + 2, ())["ts"].tolist() == [NOON, NOON + 1]
    for sequence in (1, 2):
        assert again.submit(replace(FIRST, sequence=sequence), sample()).result(30).duplicate is True


def test_a_question_to_a_database_that_died_reopens_it(store) -> None:
    store.submit(FIRST, sample()).result(30)
    kill_database(store)
    assert_has_the_sample_once(store)
    assert store.stats().reopened == 1


def test_readers_outlive_a_database_that_dies_under_them(store) -> None:
    for sequence in range(3):
        store.submit(replace(FIRST, sequence=sequence), sample(NOON + sequence)).result(30)
    store.put_windows("job5m", [0.0], {"ts": np.zeros(2)})
    over, counts, windows, wrong = threading.Event(), set(), set(), []

    def read() -> None:
        try:
            while not over.is_set():
                counts.add(len(store.steps(NOON, NOON + 100)["ts"]))
                windows.add(len(store.windows("job5m", 0, 100)["ts"]))
        except duckdb.Error as problem:
            wrong.append(problem)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for sequence in range(3, 6):
        kill_database(store)
        store.submit(replace(FIRST, sequence=sequence), sample(NOON + sequence)).result(30)
    over.set()
    for reader in readers:
        reader.join(30)
    assert wrong == []
    assert counts <= {3, 4, 5, 6}
    assert windows == {2}
    assert len(store.steps(NOON, NOON + 100)["ts"]) == 6


def kill_database(store) -> None:
    """Let a checkpoint fail, as a full disk does."""
    with store._ground.database.cursor() as cursor:
        cursor.execute("SET GLOBAL debug_checkpoint_abort = 'before_truncate'")
        with pytest.raises(duckdb.Error):
            cursor.execute("CHECKPOINT hot_000000001")
