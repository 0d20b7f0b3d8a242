"""``flopwatch store`` on folders that nobody holds, and beside a collector that batches come in to all the while."""

import contextlib
import csv
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from datetime import datetime, timezone
from pathlib import Path

import duckdb
import numpy as np
import pytest
from tests.integration.collector.batches import batch, device, sample, slurm, step
from tests.integration.collector.test_process import collector, run
from tests.integration.store.conftest import NOON

from flopwatch_collector.model import BatchId, RawRows
from flopwatch_collector.store import desk as desk_module
from flopwatch_collector.store.desk import Desk, Refused, ask
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import StoreSettings, quiet
from flopwatch_collector.store_command import main

HOUR = 3600.0


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


@pytest.fixture
def kept(tmp_path) -> Path:
    """A data folder with two closed hours and an open one: two GPUs a minute, and an event an hour."""
    folder, now = tmp_path / "data", [NOON]
    store = EmbeddedStore(
        StoreSettings(folder=folder, flush_seconds=0.001, free_disk_ratio=0.0), lambda: now[0]
    )
    for hour in range(3):
        now[0] = NOON + hour * HOUR
        times = np.repeat(now[0] + 60.0 * np.arange(60), 2)
        rows = RawRows(
            gpu={
                "ts": times,
                "gpu": np.tile([1, 2], 60),
                "node": np.ones(120),
                "power_watts": np.tile([100.0, np.nan], 60),
            },
            event={"ts": np.array([now[0]]), "kind": np.array(["xid"]), "text": np.array(['it\'s, "so"'])},
        )
        store.submit(BatchId(node="n", spool="s", sequence=hour), rows).result(30)
    store.put_windows("ledger1d", [0.0], {"ts": np.zeros(2), "bucket": np.array(["STEP", "FREE"])})
    store.settle()
    store.close()
    return folder


def sql(query: str, file: Path):
    """The answer of another reader of Parquet."""
    return duckdb.connect().execute(query.replace("$", f"'{file}'"))


def answer(folder: Path, *arguments: str) -> dict:
    done = run(folder, "store", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def here(kept, capsys, monkeypatch):
    """Runs the command on the kept folder in this process; status and what it printed."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(kept))

    def command(*arguments: str) -> tuple[int, str]:
        status = main([*arguments, "--data-dir", str(kept)])
        return status, capsys.readouterr().out

    return command


def test_stats_of_a_folder_that_nobody_holds(kept) -> None:
    said = answer(kept, "stats")
    assert (said["rows"]["gpu"], said["rows"]["event"], said["rows"]["ledger1d"]) == (360, 3, 2)
    assert (said["batches_missing"], said["first_sample_seconds"]) == (0, 0.0)
    text = run(kept, "store", "stats").stdout
    assert "rows gpu          360\n" in text


def test_check_finds_nothing_wrong_with_a_whole_folder_and_names_what_is_damaged(kept, here) -> None:
    assert here("check") == (0, "everything can be read, and nothing is missing\n")
    damaged = max((kept / "raw" / "gpu").glob("*.parquet"), key=lambda path: path.stat().st_size)
    content = bytearray(damaged.read_bytes())
    content[200:260] = bytes(60)
    damaged.write_bytes(content)
    status, found = here("check")
    assert status == 1
    assert found.startswith(f"unreadable: {damaged} cannot be read: ")


def test_samples_as_csv_have_unknown_values_empty_and_times_in_utc(here, tmp_path) -> None:
    target = tmp_path / "samples.csv"
    status, text = here(
        "export",
        "gpu_samples",
        str(target),
        "--from",
        iso(NOON + HOUR),
        "--to",
        iso(NOON + 2 * HOUR),
        "--json",
    )
    said = json.loads(text)
    assert status == 0
    with target.open() as file:
        rows = list(csv.DictReader(file))
    assert said["rows"] == len(rows) == 120
    assert said["bytes"] == target.stat().st_size
    assert rows[0]["ts"] == "2025-11-30 13:00:00"
    assert [row["power_watts"] for row in rows if row["gpu"] == "1.0"] == ["100.0"] * 60
    assert {row["power_watts"] for row in rows if row["gpu"] == "2.0"} == {""}


def test_a_parquet_export_holds_what_the_question_answers(here, tmp_path) -> None:
    for question, rows in (("events", 3), ("ledger1d", 0), ("job_series", 6), ("steps", 0)):
        target = tmp_path / f"{question}.parquet"
        status, text = here(
            "export", question, str(target), "--from", iso(NOON), "--to", iso(NOON + 3 * HOUR),
            "--step-seconds", "1800",
        )  # fmt: skip
        assert (status, text.startswith(f"{target}: {rows} rows, ")) == (0, True)
        assert sql("SELECT count(*) FROM $", target).fetchall() == [(rows,)]
    series = sql("SELECT * FROM $ ORDER BY ts", tmp_path / "job_series.parquet").fetchnumpy()
    assert series["samples"].tolist() == [60.0] * 6
    assert series["power_watts"].tolist() == [100.0] * 6
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("arguments", "ends"),
    [
        (("export", "gpu_samples", "x.parquet"), (2, "give either --from TIME or --last SPAN")),
        (
            ("export", "gpu_samples", "x.parquet", "--last", "soon"),
            (2, "--last is 'soon'; allowed: a number"),
        ),
        (
            ("export", "gpu_samples", "x.parquet", "--from", "noon"),
            (2, "--from is 'noon'; allowed: ISO 8601"),
        ),
        (("export", "gpu_samples", "x.txt", "--last", "1h"), (2, "name it NAME.parquet or NAME.csv")),
        (
            ("export", "gpu_samples", "x.csv", "--from", "2026-01-02", "--to", "2026-01-01"),
            (2, "is not before --to"),
        ),
        (
            ("export", "job_series", "x.csv", "--last", "1h", "--step-seconds", "0"),
            (2, "step_seconds is 0; allowed: 1"),
        ),
        (("export", "speeds", "x.csv", "--last", "1h"), (2, "choose from")),
        (("export", "steps", "nowhere/x.csv", "--last", "1h"), (1, "nowhere is no folder")),
        (("backup", "."), (1, "is there and not empty; give a new or empty folder")),
        (("restore", "nowhere"), (1, "is there and not empty")),
    ],
)
def test_wrong_use_is_refused_by_name(kept, monkeypatch, capsys, arguments, ends) -> None:
    monkeypatch.chdir(kept)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(kept))
    try:
        ended = main([*arguments, "--data-dir", str(kept)])
    except SystemExit as refused:
        ended = refused.code
    assert (ended, ends[1] in capsys.readouterr().err) == (ends[0], True)


def test_a_folder_without_a_store_is_not_made_into_one(tmp_path) -> None:
    done = run(tmp_path / "nothing", "store", "stats")
    assert done.returncode == 1
    assert "holds no store; name the folder with --data-dir" in done.stderr
    assert not (tmp_path / "nothing").exists()


def test_a_backup_that_is_not_whole_is_not_restored(here, tmp_path) -> None:
    assert here("backup", str(tmp_path / "copy"))[0] == 0
    damaged = max((tmp_path / "copy" / "raw" / "gpu").glob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    refused = run(tmp_path / "other", "store", "restore", str(tmp_path / "copy"))
    assert refused.returncode == 1
    assert f"{damaged} is missing or damaged" in refused.stderr
    assert list((tmp_path / "other").iterdir()) == []
    (tmp_path / "copy" / "backup.json").unlink()
    refused = run(tmp_path / "other", "store", "restore", str(tmp_path / "copy"))
    assert "is no complete backup: it has no backup.json" in refused.stderr


def pushing(client, stop: threading.Event, acknowledged: list[float], start: float) -> None:
    """Batches of one node as fast as they are taken, each at a second of its own."""
    at = start
    while not stop.is_set():
        at += 1.0
        sent = batch(
            at=at, gpus=(device("A"),), jobs=(slurm(),),
            gpu_samples=(sample("A", at, job="slurm:77", power_watts=at % 1000),),
            steps=(step(int(at - start), job="slurm:77", at=at),),
        )  # fmt: skip
        if client.push(sent).status == 200:
            acknowledged.append(at)


@contextlib.contextmanager
def load(client, start: float):
    """A thread that pushes; yields the times of what was acknowledged."""
    stop, acknowledged = threading.Event(), []
    thread = threading.Thread(target=pushing, args=(client, stop, acknowledged, start))
    thread.start()
    try:
        while len(acknowledged) < 20:
            time.sleep(0.02)
        yield acknowledged
    finally:
        stop.set()
        thread.join(30)


def samples(folder: Path) -> dict[str, np.ndarray]:
    """Everything that a store in a folder has of its GPUs and steps."""
    store = EmbeddedStore(StoreSettings(folder=folder, free_disk_ratio=0.0))
    try:
        found = store.gpu_samples(0, 1e11, ("job", "power_watts"))
        return found | {"step_ts": store.steps(0, 1e11)["ts"], "step": store.steps(0, 1e11)["step"]}
    finally:
        store.close()


def test_a_backup_under_load_is_of_one_moment_and_restored_elsewhere_answers_the_same(tmp_path) -> None:
    data, copy, other = tmp_path / "data", tmp_path / "copy", tmp_path / "other"
    start = float(int(time.time()) - 3000)
    with collector(data) as (_, client), load(client, start) as acknowledged:
        before = len(acknowledged)
        saved = answer(data, "backup", str(copy))
        at_end = len(acknowledged)
        stats, checked = answer(data, "stats"), answer(data, "check")
        exported = answer(data, "export", "gpu_samples", str(tmp_path / "x.parquet"), "--last", "2h")
    restored = answer(other, "restore", str(copy))

    assert checked == {"problems": []}
    assert stats["rows"]["gpu"] >= at_end
    assert exported["rows"] >= at_end
    names = sql("SELECT DISTINCT gpu_uuid, node_name, job_id IS NOT NULL FROM $", tmp_path / "x.parquet")
    assert names.fetchall() == [("A", "node1", True)]
    assert restored["rows"] == saved["rows"]
    whole, part = samples(data), samples(other)
    # Everything acknowledged before, nothing twice, and no batch in part: a batch is one sample and one step.
    assert set(acknowledged[:before]) <= set(part["ts"])
    assert len(set(part["ts"])) == len(part["ts"]) == saved["rows"]["gpu"]
    assert sorted(part["step_ts"]) == sorted(part["ts"])
    inside = np.isin(whole["ts"], part["ts"])
    for name in ("ts", "gpu", "job", "power_watts"):
        np.testing.assert_array_equal(whole[name][inside], part[name])
    assert set(acknowledged) <= set(whole["ts"])

    with collector(other) as (_, client):  # the restored folder knows who is who, and what it has
        again = client.push(batch(at=acknowledged[0], gpus=(device("A"),)))
        assert again.json()["duplicate"] is True
        assert [job["scheduler_job_id"] for job in client.get("/api/v1/jobs").json()["jobs"]] == ["77"]


def test_a_second_collector_is_told_which_process_holds_the_folder(tmp_path) -> None:
    with collector(tmp_path) as (process, _):
        second = run(tmp_path, "collector", "--port", "0")
        assert second.returncode == 2
        assert f"{tmp_path} is in use by another process (pid {process.pid})" in second.stderr
        assert "Traceback" not in second.stderr


def test_a_collector_that_ends_says_so_to_whoever_waits(tmp_path) -> None:
    class Endless:
        def do(self, name, options, progress):
            while True:
                progress("forever", 0.5)
                time.sleep(0.01)

    desk, told = Desk(tmp_path, Endless()), []

    def ended_when_told(doing: str, done_ratio: float) -> None:
        if not told:
            threading.Thread(target=desk.close).start()
        told.append((doing, done_ratio))

    with pytest.raises(Refused, match="the collector ends"):
        ask(tmp_path, "anything", {}, ended_when_told)
    assert told[0] == ("forever", 0.5)
    desk.close()
    with pytest.raises(Refused, match="cannot be asked"):
        ask(tmp_path, "anything", {}, quiet)


def test_the_socket_is_its_owners_alone_however_long_its_path_is(tmp_path) -> None:
    class Echo:
        def do(self, name, options, progress):
            return {"name": name, **options}

    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    desk = Desk(folder, Echo())
    try:
        assert ask(folder, "stats", {"a": 1}, quiet) == {"name": "stats", "a": 1}
        assert (folder / "socket").stat().st_mode & 0o777 == 0o600
    finally:
        desk.close()
    assert not (folder / "socket").exists()


def test_a_folder_that_can_have_no_socket_holds_nobody_up(tmp_path, caplog) -> None:
    (tmp_path / "socket").mkdir()
    desk = Desk(tmp_path, object())
    desk.close()
    assert f"no socket in {tmp_path}" in caplog.text


def test_what_is_no_request_is_answered_in_words(tmp_path) -> None:
    class Nothing:
        def do(self, name, options, progress):
            raise ValueError(f"no such work: {name!r}")

    desk = Desk(tmp_path, Nothing())
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(tmp_path / "socket"))
            connection.sendall(b"{nonsense\n")
            assert b'"problem"' in connection.makefile("rb").readline()
        with pytest.raises(Refused, match="no such work: 'dance'"):
            ask(tmp_path, "dance", {}, quiet)
    finally:
        desk.close()


def test_whoever_connects_and_says_nothing_does_not_hold_up_the_end(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(desk_module, "REQUEST_SECONDS", 0.2)
    desk = Desk(tmp_path, object())
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(tmp_path / "socket"))
        time.sleep(0.05)
        began = time.monotonic()
        desk.close()
        assert time.monotonic() - began < 5.0


def test_another_user_is_refused_by_the_socket(tmp_path) -> None:
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")

    class Nothing:
        def do(self, name, options, progress):
            raise AssertionError("asked by another user")

    shared = Path(tempfile.mkdtemp())  # a test's own folder is closed to other users
    shared.chmod(0o755)
    desk = Desk(shared, Nothing())
    (shared / "socket").chmod(0o666)
    program = (
        "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
        's.sendall(b\'{"do": "stats"}\\n\'); print(s.makefile().readline())'
    )
    try:
        said = subprocess.run(
            [sys.executable, "-I", "-c", program, str(shared / "socket")],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    finally:
        desk.close()
        shutil.rmtree(shared)
    assert "user 65534 may not ask this" in said
