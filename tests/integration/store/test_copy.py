"""flopwatch store copy: an embedded store's history in ClickHouse, whole, once, and resumable."""

import json

import pytest
from tests.fixtures.memory_store import MemoryStore
from tests.integration.store.conftest import Clock
from tests.integration.store.test_clickhouse import batch, rows
from tests.integration.store.test_same_answers import assert_same_answers, filled

from flopwatch_collector import store_command
from flopwatch_collector.config import CONTROL_FILE
from flopwatch_collector.model import Node
from flopwatch_collector.store import copying
from flopwatch_collector.store.clickhouse.arrivals import AREA, SCHEMA, Arrivals
from flopwatch_collector.store.clickhouse.http import Address, Client
from flopwatch_collector.store.clickhouse.store import ClickHouseSettings, ClickHouseStore
from flopwatch_collector.store.clickhouse.tables import Layout
from flopwatch_collector.store.control_postgres import PostgresControl
from flopwatch_collector.store.control_sqlite import SqliteControl
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings
from flopwatch_collector.store.postgres import PostgresTransactions

NODE = Node(number=1, cluster="c", name="n1", first_seen_seconds=1.0, last_seen_seconds=2.0)


@pytest.fixture
def folder(tmp_path, clock):
    """A store with rows of closed and open hours, windows and a control state."""
    folder = tmp_path / "embedded"
    store = EmbeddedStore(StoreSettings(folder=folder, free_disk_ratio=0.0, flush_seconds=0.0), clock)

    def after_batch(at):
        if at % 13 == 12:
            clock.now += 3600

    filled(store, 1, after_batch)
    store.close()
    control = SqliteControl(folder / CONTROL_FILE)
    control.save("node", {"1": NODE})
    control.close()
    return folder


def command(chdb, folder, control_url, monkeypatch, capsys) -> tuple[int, dict]:
    monkeypatch.setattr(copying, "PIECE_SECONDS", 3600)
    monkeypatch.setenv("FLOPWATCH_COLLECTOR_CLICKHOUSE_DATABASE", "copy" + control_url[-8:])
    monkeypatch.setenv("FLOPWATCH_COLLECTOR_RAW_DAYS", "36500")
    monkeypatch.setenv("FLOPWATCH_COLLECTOR_STORE", "clickhouse")
    monkeypatch.setenv("FLOPWATCH_COLLECTOR_CLICKHOUSE_URL", chdb.url)
    monkeypatch.setenv("FLOPWATCH_COLLECTOR_CONTROL_URL", control_url)
    status = store_command.main(["copy", "--from", str(folder), "--to", chdb.url, "--json"])
    told = capsys.readouterr()
    return status, json.loads(told.out) if told.out else {"error": told.err}


def opened(chdb, control_url, clock) -> ClickHouseStore:
    database = "copy" + control_url[-8:]
    arrivals = Arrivals(PostgresTransactions(control_url, AREA, SCHEMA), "reader")
    client = Client(Address(url=chdb.url, database=database))
    layout = Layout(database=database, raw_days=36_500)
    return ClickHouseStore(ClickHouseSettings(layout=layout, flush_seconds=0.0), client, arrivals, clock)


def test_the_copy_gives_the_answers_of_the_original_and_knows_its_batches(
    chdb, postgres, folder, monkeypatch, capsys
) -> None:
    url = postgres.new_database()
    chdb.fault("INSERT INTO `event`", "before", count=4)
    status, _ = command(chdb, folder, url, monkeypatch, capsys)
    assert status == 1, "an interrupted copy says so"
    status, answer = command(chdb, folder, url, monkeypatch, capsys)
    assert (status, answer["whole"], answer["source"]) == (0, True, answer["target"])
    again, answer = command(chdb, folder, url, monkeypatch, capsys)
    assert (again, answer["source"], answer["documents"]) == (0, answer["target"], 0)

    expected = MemoryStore(None, Clock())
    filled(expected, 1, lambda at: None)
    store = opened(chdb, url, Clock())
    try:
        assert answer["target"]["gpu"] == len(expected.raw["gpu"])
        assert_same_answers(store, expected)
        known = next(iter(expected.batches))
        assert store.submit(known, rows(1)).result(30).duplicate is True
        assert store.submit(batch(1, "another"), rows(1)).result(30).duplicate is False
    finally:
        store.close()
    control = PostgresControl(url)
    assert control.load("node", Node) == {"1": NODE}
    control.close()


@pytest.fixture
def copied_twice(chdb, monkeypatch, capsys):
    """Copies a folder, has a batch added to it, and copies it again; what the second copy said."""

    def copy(folder, url, add) -> dict:
        assert command(chdb, folder, url, monkeypatch, capsys)[1]["whole"] is True
        settings = StoreSettings(folder=folder, free_disk_ratio=0.0, flush_seconds=0.0)
        store = EmbeddedStore(settings, Clock())
        store.submit(*add).result(30)
        store.close()
        status, answer = command(chdb, folder, url, monkeypatch, capsys)
        assert (status, answer["whole"], answer["source"]) == (0, True, answer["target"])
        return answer

    return copy


def test_what_came_after_a_copy_is_copied_by_the_next_one(chdb, postgres, tmp_path, copied_twice) -> None:
    folder, url = tmp_path / "small", postgres.new_database()
    store = EmbeddedStore(StoreSettings(folder=folder, free_disk_ratio=0.0, flush_seconds=0.0), Clock())
    store.submit(batch(6), rows(6)).result(30)
    store.close()
    SqliteControl(folder / CONTROL_FILE).close()
    answer = copied_twice(folder, url, (batch(7), rows(7)))  # into ten minutes that were copied already
    reader = opened(chdb, url, Clock())
    assert answer["target"]["gpu"] == 2
    assert reader.gpu_samples(0, 1e10, ())["gpu"].tolist() == [6, 7]
    assert reader.submit(batch(7), rows(7)).result(30).duplicate is True
    reader.close()


def test_a_control_state_of_another_fleet_is_refused(chdb, postgres, folder, monkeypatch, capsys) -> None:
    url = postgres.new_database()
    control = PostgresControl(url)
    other = Node(number=1, cluster="c", name="other", first_seen_seconds=1.0, last_seen_seconds=2.0)
    control.save("node", {"1": other})
    control.close()
    status, answer = command(chdb, folder, url, monkeypatch, capsys)
    assert status == 1
    assert "node 1 is other there and n1 here" in answer["error"]


def test_wrong_use_is_said(tmp_path, capsys) -> None:
    assert store_command.main(["copy", "--data-dir", str(tmp_path)]) == 2
    assert "--to URL" in capsys.readouterr().err
    assert store_command.main(["copy", "--from", str(tmp_path), "--to", "http://127.0.0.1:1"]) == 1
    assert "holds no store" in capsys.readouterr().err


def test_the_other_commands_work_on_clickhouse_too(chdb, tmp_path, monkeypatch, capsys) -> None:
    for name, value in {
        "STORE": "clickhouse", "CLICKHOUSE_URL": chdb.url, "CLICKHOUSE_DATABASE": "commands",
        "DATA_DIR": str(tmp_path),
    }.items():  # fmt: skip
        monkeypatch.setenv(f"FLOPWATCH_COLLECTOR_{name}", value)
    assert store_command.main(["stats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]["gpu"] == 0
    assert store_command.main(["check"]) == 0
    assert "nothing is missing" in capsys.readouterr().out
    assert store_command.main(["backup", str(tmp_path / "copy")]) == 1
    assert "BACKUP DATABASE commands" in capsys.readouterr().err
