"""Batches gathered in one round: through the directory and a real store."""

from pathlib import Path

from tests.integration.collector.batches import NOW, MemoryControl, batch, sample

from flopwatch import wire
from flopwatch_collector.ingest.accept import Ingest
from flopwatch_collector.ingest.directory import Directory
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings


def test_batches_that_came_together_are_one_commit_with_each_row_under_its_own_node(
    tmp_path: Path,
) -> None:
    control = MemoryControl()
    store = EmbeddedStore(StoreSettings(folder=tmp_path, flush_seconds=0.0, free_disk_ratio=0.0), lambda: NOW)
    ingest = Ingest(Directory(control, lambda: NOW), control, store, clock=lambda: NOW)
    ingest.gather_seconds = 0.2
    good = [
        batch(f"n{n}", NOW, gpu_samples=(sample(f"G{n}", NOW, power_watts=float(n)),)) for n in range(1, 4)
    ]
    late = batch(
        "n4",
        NOW,
        sequence=3,
        phases=(wire.Phase(job="j", kind="eval", begin_seconds=NOW - 9, end_seconds=NOW),),
    )

    for future in [ingest.accept_batch(each) for each in (*good, late)]:
        future.result(timeout=10)

    assert control.saves == 1
    assert store.gpu_samples(NOW - 1, NOW + 1, ("node",))["node"].tolist() == [1, 2, 3]
    assert store.phases(NOW - 60, NOW)["ts"].tolist() == [NOW - 9]
    assert store.stats().commits == 1
    ingest.close()
    store.close()
