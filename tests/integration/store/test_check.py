"""``store check``: damaged files, files that are gone, and files that the store did not make."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from tests.integration.store.conftest import NOON

from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store import saving
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import quiet

HOUR, DAY = 3600.0, 86_400.0


def batch(sequence: int, at: float) -> tuple[BatchId, RawRows]:
    rows = RawRows(
        gpu={"ts": np.array([at, at + 10]), "gpu": np.array([1, 1]), "node": np.array([1, 1])},
        event={"ts": np.array([at]), "kind": np.array(["xid"])},
    )
    return BatchId(node="n", spool="s", sequence=sequence), rows


@pytest.fixture
def closed(settings, clock):
    """A folder that nobody holds: three closed hours and an open one."""
    store = EmbeddedStore(settings, clock)
    for hour in range(4):
        clock.now = NOON + hour * HOUR
        store.submit(*batch(hour, clock.now)).result(30)
    store.settle()
    store.close()
    return settings.folder


def files(folder, table):
    return sorted((folder / "raw" / table).glob("*.parquet"))


def found(store) -> list[tuple[str, str]]:
    return [(problem.code, problem.text) for problem in store.check()]


def test_a_closed_file_that_is_gone_is_missed_with_its_rows(closed, settings, opened) -> None:
    path = files(closed, "gpu")[1]
    path.unlink()
    ((code, text),) = found(opened(settings))
    assert code == "missing_file"
    assert text == f"{path} is gone: it had 2 rows"


def test_an_hour_that_is_gone_as_a_whole_is_missed_file_by_file(closed, settings, opened) -> None:
    gone = [files(closed, table)[0] for table in ("batch", "event", "gpu")]
    for path in gone:
        path.unlink()
    assert [text.partition(" is gone")[0] for _, text in found(opened(settings))] == [
        str(path) for path in gone
    ]


def test_a_file_that_goes_while_the_store_is_open_is_missed_too(closed, settings, opened) -> None:
    store = opened(settings)
    assert found(store) == []
    files(closed, "event")[0].unlink()
    assert {code for code, _ in found(store)} <= {"missing_file", "unreadable"}
    assert "missing_file" in {code for code, _ in found(store)}


def test_a_file_with_fewer_rows_than_it_was_made_with_is_not_whole(closed, settings, opened) -> None:
    first, other = files(closed, "gpu")[0], files(closed, "event")[0]
    shutil.copyfile(other, first)
    ((code, text),) = found(opened(settings))
    assert (code, text) == ("unreadable", f"{first} has 1 rows instead of 2")


def test_a_copy_under_another_number_is_an_orphan(closed, settings, opened) -> None:
    path = files(closed, "gpu")[0]
    again = path.with_name(path.name.replace("000000001", "000000077"))
    shutil.copyfile(path, again)
    ((code, text),) = found(opened(settings))
    assert code == "orphan"
    assert text == f"{again} was not made by this store: its rows may be there twice"


@pytest.mark.parametrize("where", ["raw/gpu", "rollup/job5m", "raw/batch"])
def test_a_file_of_another_name_is_left_alone_and_named(closed, settings, opened, where) -> None:
    (closed / where).mkdir(parents=True, exist_ok=True)
    stray = closed / where / "notes from Monday.parquet"
    shutil.copyfile(files(closed, "gpu")[0], stray)
    store = opened(settings)
    assert store.gpu_samples(0, 1e10, ())["ts"].size == 8
    assert found(store) == [("orphan", f"{stray} is no file of the store, and is not read")]
    assert stray.exists()


def test_a_rollup_file_that_says_nothing_of_itself_is_set_aside(closed, settings, opened) -> None:
    (closed / "rollup" / "job5m").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(files(closed, "gpu")[0], closed / "rollup" / "job5m" / "000000000009-000-0-0.parquet")
    store = opened(settings)
    assert store.done_windows("job5m", 0, 1e10) == frozenset()
    assert [code for code, _ in found(store)] == ["set_aside"]


def test_what_was_set_aside_is_not_missed_as_well(closed, settings, opened) -> None:
    files(closed, "gpu")[0].write_bytes(b"nothing that Parquet knows")
    assert [code for code, _ in found(opened(settings))] == ["set_aside"]


def test_retention_leaves_nothing_to_miss(closed, settings, opened) -> None:
    store = opened(replace(settings, raw_days=2))
    store.retain(NOON + 2 * DAY + 1.5 * HOUR)
    assert len(files(closed, "gpu")) == 1
    assert found(store) == []
    assert len(list((closed / "raw" / "listed").iterdir())) == 1


def test_a_restored_backup_has_its_lists(closed, settings, opened, tmp_path) -> None:
    store = opened(settings)
    store.backup(tmp_path / "backup")
    saving.restore(tmp_path / "backup", tmp_path / "restored", quiet)
    other = replace(settings, folder=tmp_path / "restored")
    files(other.folder, "gpu")[3].unlink()
    files(other.folder, "event")[0].unlink()
    assert [code for code, _ in found(opened(other))] == ["missing_file", "missing_file"]


@pytest.mark.parametrize("name", ["../elsewhere", "/elsewhere"])
def test_a_backup_whose_list_points_elsewhere_is_not_restored(
    closed, settings, opened, tmp_path, name
) -> None:
    opened(settings).backup(tmp_path / "backup")
    manifest = tmp_path / "backup" / saving.MANIFEST
    manifest.write_text(manifest.read_text().replace('"format"', f'"{name}"'))
    with pytest.raises(ValueError, match=f"'{name}' is no file of a backup"):
        saving.restore(tmp_path / "backup", tmp_path / "restored", quiet)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_of_an_earlier_version_gets_its_lists_at_the_first_start(closed, settings, opened) -> None:
    shutil.rmtree(closed / "raw" / "listed")
    store = opened(settings)
    assert found(store) == []
    store.close()
    files(closed, "gpu")[0].unlink()
    assert [code for code, _ in found(opened(settings))] == ["missing_file"]
