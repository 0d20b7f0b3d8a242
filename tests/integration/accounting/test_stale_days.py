"""A closed day whose windows changed is written again, also when the collector died in between."""

from zoneinfo import ZoneInfo

import numpy as np
import pytest

from flopwatch_collector.bookkeeping.closing import Closing
from flopwatch_collector.compute.buckets import LEDGER_COLUMNS, empty_rows
from flopwatch_collector.store.control_sqlite import SqliteControl
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings

DAY = 1_764_460_800.0
"""2025-11-30 00:00 UTC."""
LENGTH = 86_400.0


@pytest.fixture
def kept(tmp_path):
    store = EmbeddedStore(StoreSettings(folder=tmp_path, free_disk_ratio=0.0))
    control = SqliteControl(tmp_path / "control.sqlite")
    yield store, control
    control.close()
    store.close()


def put(store, windows, gpu_milliseconds: int) -> None:
    """A row a window."""
    starts = [DAY + 300.0 * window for window in windows]
    rows = {
        name: np.full(len(starts), "STEP", dtype=object)
        if values.dtype == object
        else np.ones(len(starts), dtype=values.dtype)
        for name, values in empty_rows().items()
    }
    rows["ts"] = np.array(starts)
    rows["gpu_milliseconds"] = np.full(len(starts), gpu_milliseconds)
    assert set(rows) == set(LEDGER_COLUMNS)
    store.put_windows("ledger5m", starts, rows)


def closing(kept) -> Closing:
    """One as a start of the collector makes it."""
    store, control = kept
    return Closing(store, control, ZoneInfo("UTC"))


def close(made: Closing) -> None:
    made.close(DAY, DAY + LENGTH, lambda start, end: end <= DAY + LENGTH, lambda: True)


def day_sum(store) -> int:
    return int(store.windows("ledger1d", DAY, DAY + LENGTH)["gpu_milliseconds"].sum())


def pieces(made: Closing) -> list[str]:
    return [kind for kind, _, _ in made.pieces("ledger1d", "ledger5m", DAY, DAY + LENGTH)]


def test_a_day_stays_open_after_a_death_between_its_windows_and_itself(kept):
    store, _ = kept
    put(store, range(288), 1000)
    first = closing(kept)
    close(first)
    assert (day_sum(store), pieces(first)) == (288_000, ["ledger1d"])

    first.reopen(DAY + 600.0, DAY + 900.0)
    put(store, [2], 5000)  # and here the collector dies

    second = closing(kept)
    close(second)
    assert (day_sum(store), pieces(second)) == (292_000, ["ledger1d"])


def test_windows_changed_in_the_first_moment_of_a_start_open_their_day(kept):
    store, _ = kept
    put(store, range(288), 1000)
    close(closing(kept))

    second = closing(kept)
    second.reopen(DAY + 600.0, DAY + 900.0)
    put(store, [2], 5000)
    assert pieces(second) == ["ledger5m"]
    close(second)
    assert day_sum(store) == 292_000


def test_a_day_that_is_written_again_is_not_written_at_every_start(kept):
    store, control = kept
    put(store, range(288), 1000)
    first = closing(kept)
    close(first)
    first.reopen(DAY, DAY + 300.0)
    close(first)
    before = len(list((store._folder.root / "rollup" / "ledger1d").iterdir()))

    close(closing(kept))

    store.settle()
    assert len(list((store._folder.root / "rollup" / "ledger1d").iterdir())) <= before
    assert control.load("accounting_stale", dict) == {}
