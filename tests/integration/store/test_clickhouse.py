"""The store on ClickHouse: its answers, and what becomes of batches when anything fails on their way."""

import random
import shutil
import ssl
import subprocess
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from tests.fixtures import clickhouse
from tests.fixtures.memory_store import MemoryStore
from tests.integration.store.conftest import NOON
from tests.integration.store.test_same_answers import assert_same_answers, filled

from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store.clickhouse import arrivals as arrivals_module
from flopwatch_collector.store.clickhouse.arrivals import AREA, SCHEMA, Arrivals
from flopwatch_collector.store.clickhouse.http import Address, Client
from flopwatch_collector.store.clickhouse.store import ClickHouseSettings, ClickHouseStore
from flopwatch_collector.store.clickhouse.tables import Layout
from flopwatch_collector.store.port import NotSupported, Overloaded, Unavailable
from flopwatch_collector.store.postgres import PostgresTransactions

DAY = 86_400.0


@pytest.fixture
def store(chdb, settings, clock):
    store = clickhouse.store(chdb.url, settings, clock)
    yield store
    store.close()


@pytest.fixture
def opened(chdb, settings, clock):
    """Makes collectors over one database and one PostgreSQL, as many as are asked for."""
    stores = []

    def open_(control_url: str, owner: str) -> ClickHouseStore:
        arrivals = Arrivals(PostgresTransactions(control_url, AREA, SCHEMA), owner)
        layout = Layout(database="shared" + control_url[-12:])
        client = Client(Address(url=chdb.url, database=layout.database), pause=lambda seconds: None)
        made = ClickHouseSettings(layout=layout, flush_seconds=0.01)
        stores.append(ClickHouseStore(made, client, arrivals, clock))
        stores[-1]._writer._places = replace(stores[-1]._writer._places, pause=lambda seconds: None)
        return stores[-1]

    yield open_
    for store in stores:
        store.close()


def batch(sequence: int, node: str = "n1") -> BatchId:
    return BatchId(node=node, spool="s", sequence=sequence)


def rows(sequence: int) -> RawRows:
    """A GPU sample, a step and an event whose numbers are the sequence's."""
    at = np.array([NOON + sequence])
    return RawRows(
        gpu={"ts": at, "gpu": np.array([sequence]), "node": np.array([1]), "power_watts": at - NOON},
        step={"ts": at, "job": np.array([sequence]), "launch": np.array([1]), "step": np.array([sequence])},
        event={"ts": at, "kind": np.array(["xid"]), "code": np.array([sequence])},
    )


def kept(store) -> tuple[list[float], list[float], list[float]]:
    """Sequences that are seen of GPU samples, steps and events."""
    return (
        store.gpu_samples(NOON, NOON + 1e6, ())["gpu"].tolist(),
        store.steps(NOON, NOON + 1e6)["step"].tolist(),
        store.events(NOON, NOON + 1e6)["code"].tolist(),
    )


def test_answers_are_those_of_plain_lists(store, settings, clock) -> None:
    expected = MemoryStore(settings, clock)
    filled(expected, 1, lambda at: None)
    filled(store, 1, lambda at: None)
    assert_same_answers(store, expected)


@pytest.mark.parametrize("table", ["gpu", "step", "event"])
@pytest.mark.parametrize("kind", ["before", "after"])
def test_an_insert_whose_connection_breaks_is_repeated_and_counts_once(chdb, store, table, kind) -> None:
    chdb.fault(f"INSERT INTO `{table}`", kind)
    assert store.submit(batch(7), rows(7)).result(30).duplicate is False
    assert kept(store) == ([7], [7], [7])
    assert store.submit(batch(7), rows(7)).result(30).duplicate is True


@pytest.mark.parametrize("table", ["gpu", "step", "event"])
@pytest.mark.parametrize("kind", ["before", "after"])
def test_a_flush_that_fails_halfway_is_not_seen_and_its_batch_is_taken_when_it_comes_again(
    chdb, store, table, kind
) -> None:
    chdb.fault(f"INSERT INTO `{table}`", kind, count=4)
    with pytest.raises(Unavailable, match=r"ClickHouse at 127\.0\.0\.1"):
        store.submit(batch(7), rows(7)).result(30)
    assert kept(store) == ([], [], [])
    assert len(store.latest_gpus()["gpu"]) == 0
    assert store.stats().problems
    assert store.submit(batch(7), rows(7)).result(30).duplicate is False
    assert kept(store) == ([7], [7], [7])
    store.compact()
    assert kept(store) == ([7], [7], [7])


def test_a_server_with_too_much_to_do_makes_senders_wait(chdb, store) -> None:
    chdb.fault("INSERT INTO `gpu`", "refuse", count=4)
    with pytest.raises(Overloaded):
        store.submit(batch(7), rows(7)).result(30)
    assert store.submit(batch(7), rows(7)).result(30).duplicate is False


def test_a_process_that_dies_between_two_tables_leaves_nothing_that_counts(
    chdb, store, settings, clock, monkeypatch
) -> None:
    """The flush stays begun, as after kill -9; the next process sets it aside and takes the batch again."""
    first = store._arrivals
    monkeypatch.setattr(first, "commit", lambda flush: (_ for _ in ()).throw(Unavailable("gone")))
    monkeypatch.setattr(first, "abandon", lambda flush: None)
    begun = first.begin([batch(7)])
    store._writer._insert(begun.flush, [waiting(7)])
    assert kept(store) == ([], [], [])
    again = clickhouse.store(chdb.url, settings, clock)
    try:
        assert again.submit(batch(7), rows(7)).result(30).duplicate is False
        assert kept(again) == ([7], [7], [7])
        again._tidy(older_than_seconds=0.0)
        assert again.stats().rows["gpu"] == 1
        assert kept(again) == ([7], [7], [7])
    finally:
        again.close()


def waiting(sequence: int):
    from flopwatch_collector.store import columns
    from flopwatch_collector.store.inbox import Waiting
    from flopwatch_collector.store.schema import TABLES

    tables = {name: columns.checked(table, getattr(rows(sequence), name)) for name, table in TABLES.items()}
    return Waiting(batch=batch(sequence), rows={n: t for n, t in tables.items() if t}, count=3)


def test_collectors_see_what_each_other_wrote_and_count_a_batch_once(opened, postgres) -> None:
    address = postgres.new_database()
    first, second = opened(address, "a"), opened(address, "b")
    assert first.submit(batch(1), rows(1)).result(30).duplicate is False
    assert second.submit(batch(1), rows(1)).result(30).duplicate is True
    assert second.submit(batch(2), rows(2)).result(30).duplicate is False
    assert kept(first) == kept(second) == ([1, 2], [1, 2], [1, 2])
    first.refresh()
    second.refresh()
    assert first.latest_gpus()["gpu"].tolist() == [1, 2]
    assert second.latest_gpus()["gpu"].tolist() == [1, 2]


def test_one_batch_sent_to_two_collectors_at_once_counts_once(opened, postgres) -> None:
    address = postgres.new_database()
    stores = [opened(address, "a"), opened(address, "b")]
    outcomes: list[object] = []

    def send(store, sequence: int) -> None:
        while True:
            try:
                outcomes.append(
                    (sequence, store.submit(batch(sequence), rows(sequence)).result(30).duplicate)
                )
            except Overloaded:
                continue
            return

    for sequence in range(10):
        threads = [threading.Thread(target=send, args=(store, sequence)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(outcomes) == [(sequence, known) for sequence in range(10) for known in (False, True)]
    assert kept(stores[0])[0] == list(range(10))


def test_a_collector_that_was_too_slow_is_told_so_and_its_rows_never_count(
    opened, postgres, monkeypatch
) -> None:
    address = postgres.new_database()
    first, second = opened(address, "a"), opened(address, "b")
    begun = first._arrivals.begin([batch(7)])
    with pytest.raises(Overloaded):
        second.submit(batch(7), rows(7)).result(30)
    monkeypatch.setattr(arrivals_module, "TAKE_OVER_SECONDS", 0.0)
    assert second.submit(batch(7), rows(7)).result(30).duplicate is False
    first._writer._insert(begun.flush, [waiting(7)])
    assert first._arrivals.commit(begun.flush) is False
    assert kept(first) == kept(second) == ([7], [7], [7])


def test_a_step_that_two_collectors_took_from_two_nodes_is_one(opened, postgres) -> None:
    address = postgres.new_database()
    first, second = opened(address, "a"), opened(address, "b")
    first.submit(batch(1, "n1"), rows(5)).result(30)
    second.submit(batch(1, "n2"), rows(5)).result(30)
    assert first.steps(NOON, NOON + 100)["step"].tolist() == [5]


def test_windows_that_were_put_halfway_are_as_before(chdb, store) -> None:
    put = {"ts": np.array([0.0]), "job": np.array([1])}
    store.put_windows("job5m", [0.0], put)
    chdb.fault("INSERT INTO `rollup_window`", "before", count=4)
    with pytest.raises(Unavailable):
        store.put_windows("job5m", [0.0, 300.0], {"ts": np.array([0.0, 300.0]), "job": np.array([2, 3])})
    assert store.windows("job5m", 0, 600)["job"].tolist() == [1]
    assert store.done_windows("job5m", 0, 600) == {0.0}
    store.put_windows("job5m", [0.0, 300.0], {"ts": np.array([0.0, 300.0]), "job": np.array([2, 3])})
    assert store.windows("job5m", 0, 600)["job"].tolist() == [2, 3]
    store.compact()
    assert store.windows("job5m", 0, 600)["job"].tolist() == [2, 3]
    # The first put's row went; the unfinished put's rows are too young to go.
    assert store.stats().rows["job5m"] == 4


def test_a_column_of_whole_numbers_may_become_one_of_real_numbers(store) -> None:
    store.put_windows("job5m", [0.0], {"ts": np.array([0.0]), "n": np.array([2**52 + 1])})
    assert store.windows("job5m", 0, 600)["n"].dtype == np.int64
    store.put_windows("job5m", [300.0], {"ts": np.array([300.0]), "n": np.array([0.5])})
    assert store.windows("job5m", 0, 600)["n"].tolist() == [2**52 + 1, 0.5]


def test_retention_drops_whole_days_and_old_windows(store) -> None:
    for sequence, days in enumerate((20, 15, 10, 0)):
        at = np.array([NOON - days * DAY])
        one = RawRows(gpu={"ts": at, "gpu": np.array([sequence]), "node": np.array([1])})
        store.submit(batch(sequence), one).result(30)
    for days in (100, 10):
        for kind in ("job5m", "job1h"):
            window = NOON - days * DAY
            store.put_windows(kind, [window], {"ts": np.array([window]), "job": np.array([1])})
    assert store.retain(NOON) > 0
    assert store.gpu_samples(0, 1e10, ())["gpu"].tolist() == [2, 3]
    assert store.done_windows("job5m", 0, 1e10) == {NOON - 10 * DAY}
    assert store.done_windows("job1h", 0, 1e10) == {NOON - 100 * DAY, NOON - 10 * DAY}
    assert store.first_sample_seconds() == NOON - 100 * DAY


def test_a_check_reads_everything_and_backups_are_the_servers(store, tmp_path) -> None:
    store.submit(batch(1), rows(1)).result(30)
    assert store.check() == ()
    assert "backup" not in store.capabilities
    with pytest.raises(NotSupported, match="BACKUP DATABASE"):
        store.backup(tmp_path / "copy")


def test_the_password_is_sent_and_never_told(tmp_path, settings, clock) -> None:
    server = clickhouse.start(tmp_path / "guarded", CHDB_SERVER_PASSWORD="geheim")
    try:
        with pytest.raises(Unavailable, match="refuses the user 'fw'") as told:
            clickhouse.store(server.url, settings, clock, user="fw", password="falsch")
        assert "falsch" not in str(told.value)
        assert "geheim" not in repr(Address(url=server.url, password="geheim"))
        clickhouse.store(server.url, settings, clock, user="fw", password="geheim").close()
    finally:
        server.stop()


@pytest.fixture
def guarded(tmp_path):
    """An HTTPS server with a certificate of its own: (address, certificate)."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
         key, "-out", certificate, "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True,
        capture_output=True,
    )  # fmt: skip

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}", certificate
        server.shutdown()


def test_the_servers_certificate_is_checked(guarded) -> None:
    url, certificate = guarded
    trusting = Client(Address(url=url, ca_file=certificate))
    assert trusting.ask("SELECT 1") == {}
    trusting.close()
    other = Client(Address(url=url), pause=lambda seconds: None)
    with pytest.raises(Unavailable, match="certificate verify failed"):
        other.ask("SELECT 1")
    other.close()


def test_a_server_that_is_not_there_is_named(settings, clock) -> None:
    with pytest.raises(Unavailable, match=r"ClickHouse at 127\.0\.0\.1:1: .*refused"):
        clickhouse.store("http://127.0.0.1:1", settings, clock)


def test_batches_that_come_again_and_again_through_faults_at_any_place_count_once(
    chdb, opened, postgres
) -> None:
    """Two collectors, every insert and commit at the mercy of chance; agents repeat until they are answered."""
    rng = random.Random(7)  # noqa: S311 - chance, not a secret
    address = postgres.new_database()
    stores = [opened(address, "a"), opened(address, "b")]
    for store in stores:
        store._writer._places.arrivals.commit = lying(store._arrivals.commit, rng)
    for sequence in range(20):
        for _ in range(60):
            if rng.random() < 0.6:
                table = rng.choice(["gpu", "step", "event"])
                chdb.fault(f"INSERT INTO `{table}`", rng.choice(["before", "after"]), rng.choice([1, 4]))
            try:
                rng.choice(stores).submit(batch(sequence), rows(sequence)).result(30)
            except (Unavailable, Overloaded):
                continue
            break
        chdb.calm()
    expected = list(range(20))
    assert kept(stores[0]) == kept(stores[1]) == (expected, expected, expected)
    for store in stores:
        store._tidy(older_than_seconds=0.0)
    assert stores[0].stats().rows["gpu"] == 20
    assert kept(stores[0]) == (expected, expected, expected)


def lying(commit, rng):
    """A commit whose answer is lost, every now and then, once it is made or before."""

    def call(flush):
        fate = rng.random()
        if fate < 0.1:
            raise Unavailable("lost before")
        done = commit(flush)
        if fate > 0.9:
            raise Unavailable("lost after")
        return done

    return call
