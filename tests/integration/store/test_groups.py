"""Batches that are submitted together: each is taken once, whatever else is in the group."""

from pathlib import Path

import numpy as np

from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings

AT = 1_764_504_000.0


def ids(*sequences: int) -> list[BatchId]:
    return [BatchId(node="n", spool="s", sequence=sequence) for sequence in sequences]


def rows(*gpus: float) -> RawRows:
    count = len(gpus)
    return RawRows(
        gpu={
            "ts": AT + np.array(gpus),
            "gpu": np.array(gpus),
            "node": np.ones(count),
            "power_watts": np.where(np.array(gpus) == 1.0, np.nan, 500.0),
        }
    )


def test_a_group_is_stored_with_a_batch_that_came_before_left_out(tmp_path: Path) -> None:
    settings = StoreSettings(folder=tmp_path, flush_seconds=0.0, free_disk_ratio=0.0)
    store = EmbeddedStore(settings, lambda: AT)
    store.submit(ids(1)[0], rows(1.0)).result(10)

    futures = store.submit_group(ids(1, 2, 3, 3), rows(1.0, 2.0, 3.0, 3.0), {"gpu": np.array([0, 1, 2, 3])})

    assert [future.result(10).duplicate for future in futures] == [True, False, False, True]
    assert store.stats().rows["gpu"] == 3
    store.close()


def test_what_a_group_held_is_known_after_a_restart(tmp_path: Path) -> None:
    settings = StoreSettings(folder=tmp_path, flush_seconds=0.0, free_disk_ratio=0.0)
    store = EmbeddedStore(settings, lambda: AT)
    for future in store.submit_group(ids(1, 2), rows(1.0, 2.0), {"gpu": np.array([0, 1])}):
        future.result(10)
    store.close()

    store = EmbeddedStore(settings, lambda: AT)
    again = store.submit_group(ids(2, 9), rows(2.0, 4.0), {"gpu": np.array([0, 1])})

    assert [future.result(10).duplicate for future in again] == [True, False]
    found = store.gpu_samples(AT, AT + 60, ("power_watts",))
    assert found["gpu"].tolist() == [1.0, 2.0, 4.0]
    assert np.isnan(found["power_watts"]).tolist() == [True, False, False]
    assert store.latest_gpus()["gpu"].tolist() == [1.0, 2.0, 4.0]
    store.close()
