"""Folders of earlier versions open, and answer what was put into them."""

import tarfile
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from tests.integration.store.conftest import NOON

from flopwatch_collector.ingest.directory import Directory
from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store.control_sqlite import SqliteControl
from flopwatch_collector.store.exporting import Names

FOLDERS = Path(__file__).parents[2] / "fixtures" / "data_folders"
BATCHES = 14
"""Every ten minutes from noon: twelve in closed hours, two in the log of the open one."""
TIMES = [NOON + 600.0 * at for at in range(BATCHES)]
VERSIONS = {"1.5": (1, 5), "2.0": (2, 0)}


@pytest.fixture(params=VERSIONS)
def earlier(request, tmp_path, settings):
    if tuple(int(part) for part in duckdb.__version__.split(".")[:2]) < VERSIONS[request.param]:
        pytest.skip(f"written by DuckDB {request.param}, which this one is older than")
    with tarfile.open(FOLDERS / f"format_1_duckdb_{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return replace(settings, folder=tmp_path / "data")


def test_raw_rows_of_an_earlier_folder_answer_as_they_were_sent(earlier, clock, opened) -> None:
    clock.now = TIMES[-1]
    store = opened(earlier)
    assert store.stats().problems == ()
    samples = store.gpu_samples(NOON, NOON + 1e5, ("job", "power_watts", "energy_joules", "process_count"))
    assert samples["gpu"].tolist() == [1.0] * BATCHES + [2.0] * BATCHES
    assert samples["ts"].tolist() == TIMES * 2
    assert samples["power_watts"][:BATCHES].tolist() == [100.0 + at for at in range(BATCHES)]
    assert np.isnan(samples["power_watts"][BATCHES:]).all()
    assert samples["energy_joules"][BATCHES:].tolist() == [500.0 * at for at in range(BATCHES)]
    assert samples["job"].tolist() == [1.0] * BATCHES + [0.0] * BATCHES
    newest = store.latest_gpus()
    assert (newest["gpu"].tolist(), newest["ts"].tolist()) == ([1.0, 2.0], [TIMES[-1]] * 2)
    steps = store.steps(NOON, NOON + 1e5)
    assert (steps["step"].tolist(), steps["loss"][0]) == ([float(at) for at in range(BATCHES)], 3.0)
    phases = store.phases(NOON, NOON + 1e5)
    assert phases["end"][:-1].tolist() == [time + 30.0 for time in TIMES[:-1]]
    assert np.isnan(phases["end"][-1])
    events = store.events(NOON, NOON + 1e5)
    assert events["text"].tolist() == [f"event {at}" for at in range(BATCHES)]
    series = store.node_series(NOON, NOON + 1e5, 600.0, [1])
    assert series["transmit_bytes_per_second"].tolist() == pytest.approx([1000.0] * (BATCHES - 1))
    assert series["receive_bytes_per_second"].tolist() == pytest.approx([500.0] * (BATCHES - 1))
    assert store.first_sample_seconds() == NOON - 43_200.0


def test_rows_of_later_columns_and_tables_go_into_an_earlier_folder(earlier, clock, opened) -> None:
    clock.now = TIMES[-1] + 60.0
    store = opened(earlier)
    rows = RawRows(
        node={"ts": np.array([clock.now]), "node": np.array([1.0]), "io_pressure_ratio": np.array([0.5])},
        host={"ts": np.array([clock.now]), "job": np.array([1.0]), "main_thread_ratio": np.array([0.9])},
    )
    store.submit(BatchId(node="node1", spool="spool", sequence=BATCHES), rows).result(30)
    clock.now += 7200.0
    store.settle()
    nodes = store.host_samples("node", NOON, NOON + 1e5, [1])
    jobs = store.host_samples("job", NOON, NOON + 1e5, [1])
    assert nodes["io_pressure_ratio"][-1:].tolist() == [0.5]
    assert np.isnan(nodes["io_pressure_ratio"][:-1]).all()
    assert jobs["main_thread_ratio"].tolist() == [0.9]
    assert (store.stats().problems, store.check()) == ((), ())


def test_rollups_of_an_earlier_folder_are_read_with_what_superseded_them(earlier, opened) -> None:
    store = opened(earlier)
    for kind in ("job5m", "ledger5m"):
        rows = store.windows(kind, 0, 1e11)
        # The first window was put again, with one row of value 99.
        assert rows["value"].tolist() == [99.0, *range(2, 24)]
        assert rows["bucket"].tolist() == ["STEP", *["FREE", "STEP"] * 11]
        assert store.done_windows(kind, 0, 1e11) == {NOON + 300.0 * at for at in range(12)}
    assert store.windows("job1h", 0, 1e11)["value"].tolist() == [7.0]
    assert store.windows("ledger1d", 0, 1e11)["value"].tolist() == [1.0, 2.0]


def test_batches_of_an_earlier_folder_are_known_and_new_ones_are_taken(earlier, clock, opened) -> None:
    clock.now = TIMES[-1] + 3600.0
    store = opened(earlier)
    row = RawRows(event={"ts": np.array([NOON]), "kind": np.array(["xid"])})
    for sequence in range(BATCHES):
        known = BatchId(node="node1", spool="spool", sequence=sequence)
        assert store.submit(known, row).result(30).duplicate is True
    new = BatchId(node="node1", spool="spool", sequence=BATCHES)
    assert store.submit(new, row).result(30).duplicate is False
    store.settle()
    assert store.stats().rows["gpu"] == 2 * BATCHES
    assert len(store.events(0, 1e11)["ts"]) == BATCHES + 1
    assert store.check() == ()


def test_who_is_who_in_an_earlier_folder(earlier) -> None:
    control = SqliteControl(earlier.folder / "control.sqlite")
    try:
        names = Names.of(control)
        state = Directory(control, lambda: NOON).state()
    finally:
        control.close()
    assert (names.node, names.gpu, names.job) == ({1: "node1"}, {1: "GPU-1", 2: "GPU-2"}, {1: "77-abc"})
    assert state.jobs[1].name == "llama"
    assert state.gpus[2].slot == "0000:02:00.0"
