"""Every question can be exported, with all its columns and the names of what its numbers mean."""

from functools import partial

import duckdb
import numpy as np
import pytest
from tests.integration.store.conftest import NOON

from flopwatch_collector.model import GPU_COLUMNS, BatchId, RawRows
from flopwatch_collector.store.exporting import QUESTIONS, Export, Names, export
from flopwatch_collector.store.port import quiet
from flopwatch_collector.store.schema import TABLES

NAMES = Names(node={1: "node1", 2: "login"}, gpu={7: "GPU-7"}, job={3: "c:slurm-3"})
SHOWN = {
    "gpu_samples": GPU_COLUMNS, "node_samples": TABLES["node"].columns, "job_host_samples": TABLES["host"].columns,
    "port_samples": TABLES["port"].columns, "steps": TABLES["step"].columns, "phases": TABLES["phase"].columns,
    "events": TABLES["event"].columns,
}  # fmt: skip
NAMED = {"node": "node_name", "gpu": "gpu_uuid", "job": "job_id"}


@pytest.fixture
def filled(store):
    """A row of each kind now and three hours on; node 2 has ports and no GPU."""
    for sequence, at in enumerate((NOON, NOON + 3 * 3600.0)):
        ts, ones = np.array([at]), np.array([1])
        port = {"ts": np.array([at, at + 10]), "node": np.array([2, 2]), "port": np.array(["a", "a"])}
        rows = RawRows(
            gpu={
                "ts": ts,
                "gpu": np.array([7]),
                "node": ones,
                "job": np.array([3]),
                "power_watts": np.array([300.0]),
            },
            node={"ts": ts, "node": np.array([2])},
            host={"ts": ts, "job": np.array([3]), "node": ones},
            port={
                **port,
                "role": np.array(["rdma", "rdma"]),
                "transmit_bytes": np.array([0, 50]),
                "receive_bytes": np.array([0, 10]),
            },
            step={"ts": ts, "job": np.array([3]), "node": ones},
            phase={"ts": ts, "end": ts + 5, "job": np.array([3]), "launch": ones, "kind": ones},
            event={"ts": ts, "kind": np.array(["xid"]), "node": ones},
        )
        store.submit(BatchId(node="n", spool="s", sequence=sequence), rows).result(30)
    for kind in ("job5m", "job1h", "ledger5m", "ledger1d"):
        windows = [NOON, NOON + 86_400.0]
        store.put_windows(kind, windows, {"ts": np.array(windows), "job": np.array([3, 3])})
    return store


def exported(store, question, target):
    wanted = Export(
        question=question, start_seconds=NOON - 60, end_seconds=NOON + 2 * 86_400.0, output=target
    )
    done = export(store, NAMES, wanted, quiet)
    answer = duckdb.read_parquet(str(target))
    return done, answer.columns, answer.fetchall()


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_export_has_all_rows_all_columns_and_the_names(filled, tmp_path, question) -> None:
    done, columns, rows = exported(filled, question, tmp_path / "x.parquet")
    assert done.rows == len(rows) == (4 if question == "port_samples" else 2)
    assert set(SHOWN.get(question, ())) <= set(columns)
    for number, name in NAMED.items():
        assert (name in columns) == (number in columns)
    named = {name: {row[columns.index(name)] for row in rows} for name in NAMED.values() if name in columns}
    assert named.get("job_id", {"c:slurm-3"}) <= {"c:slurm-3", None}
    if question in ("port_samples", "node_samples", "node_series"):
        assert named["node_name"] == {"login"}
    if question == "gpu_series":
        assert named["gpu_uuid"] == {"GPU-7"}
        assert {row[columns.index("power_watts")] for row in rows} == {300.0}


def test_columns_are_the_same_whether_names_are_known_or_not(filled, tmp_path) -> None:
    ask = partial(Export, question="steps", start_seconds=NOON, end_seconds=NOON + 10)
    found = []
    for at, names in enumerate((NAMES, Names())):
        target = tmp_path / f"{at}.parquet"
        export(filled, names, ask(output=target), quiet)
        found.append(duckdb.read_parquet(str(target)).columns)
    assert found[0] == found[1]
