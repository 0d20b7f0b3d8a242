"""Control state: documents that survive, change in one step, and say what does not fit."""

import sqlite3
import subprocess
import sys
import threading
from dataclasses import dataclass

import pytest

from flopwatch.wire import RunFacts
from flopwatch_collector.model import Gpu, JobPart, JobRecord, LeaseRecord
from flopwatch_collector.store.control_sqlite import SqliteControl

GPU = Gpu(number=3, cluster="c", node=1, slot="0000:1b:00.0", uuid="GPU-1", name="H100", from_seconds=1.5)
JOB = JobRecord(
    number=1,
    job_id="j",
    key="slurm/7",
    cluster="c",
    name="训练",
    scheduler="slurm",
    parts=(JobPart(node=1, ref="r", gpus=(1, 2), start_seconds=0.25),),
    runs=(RunFacts(source="log", origin="config.json", shape={"hidden_size": 4096}),),
    findings=(("shared_log", "two jobs write one log", {"jobs": [1, 2]}),),
)
LEASE = LeaseRecord(lease_id="l", job=1, gpus=(3,), source="slurm", start_seconds=5)


@dataclass(frozen=True)
class Note:
    text: str


@pytest.fixture
def control(tmp_path):
    control = SqliteControl(tmp_path / "deep" / "control.sqlite")
    yield control
    control.close()


def test_documents_come_back_as_they_were_saved_also_after_a_start(control, tmp_path) -> None:
    control.save("gpu", {"3": GPU})
    control.save_all({"job": {"1": JOB}, "lease": {"l": LEASE}})
    control.close()
    again = SqliteControl(tmp_path / "deep" / "control.sqlite")
    assert again.load("gpu", Gpu) == {"3": GPU}
    assert again.load("job", JobRecord) == {"1": JOB}
    assert again.load("lease", LeaseRecord) == {"l": LEASE}
    assert again.load("nothing", Gpu) == {}
    again.close()


def test_saving_replaces_and_deleting_forgets(control) -> None:
    control.save("note", {"a": Note("one"), "b": Note("two")})
    control.save("note", {"a": Note("three")})
    control.delete("note", ["b", "never there"])
    control.delete("note", [])
    control.save("note", {})
    assert control.load("note", Note) == {"a": Note("three")}


def test_a_save_of_several_kinds_is_all_or_nothing(control) -> None:
    class Unwritable:
        pass

    with pytest.raises(TypeError):
        control.save_all({"note": {"a": Note("one")}, "other": {"b": Unwritable()}})
    assert control.load("note", Note) == {}


def test_a_document_that_does_not_fit_is_named(control) -> None:
    control.save("gpu", {"3": Note("no GPU")})
    with pytest.raises(ValueError, match=r"control state gpu/3: .*missing required field"):
        control.load("gpu", Gpu)


def test_threads_may_save_at_once(control) -> None:
    def save(name: str) -> None:
        for at in range(20):
            control.save("note", {f"{name}{at}": Note(name)})

    threads = [threading.Thread(target=save, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(control.load("note", Note)) == 80


def test_what_was_saved_survives_a_kill(tmp_path) -> None:
    program = (
        "import os, pathlib, signal, sys\n"
        "from flopwatch_collector.store.control_sqlite import SqliteControl\n"
        "control = SqliteControl(pathlib.Path(sys.argv[1]))\n"
        "control.save('note', {str(at): {'text': 'x'} for at in range(100)})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "control.sqlite"
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    control = SqliteControl(path)
    assert len(control.load("note", Note)) == 100
    control.close()


def test_a_file_that_is_no_database_is_refused(tmp_path) -> None:
    path = tmp_path / "control.sqlite"
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(sqlite3.DatabaseError):
        SqliteControl(path)


def test_a_document_is_replaced_only_while_it_is_the_expected_one(control) -> None:
    assert control.replace("note", "a", None, Note("one")) is True
    assert control.replace("note", "a", None, Note("two")) is False
    assert control.replace("note", "a", Note("other"), Note("two")) is False
    assert control.replace("note", "a", Note("one"), Note("two")) is True
    assert control.load("note", Note) == {"a": Note("two")}


def test_a_document_of_an_earlier_version_is_the_expected_one_all_the_same(control) -> None:
    control.save(
        "lease", {"l": {"lease_id": "l", "job": 1, "gpus": [3], "source": "slurm", "start_seconds": 5}}
    )
    read = control.load("lease", LeaseRecord)["l"]
    assert read == LEASE
    assert control.replace("lease", "l", read, {"not": "a lease"}) is True
    assert control.replace("lease", "l", read, LEASE) is False


def test_of_many_that_replace_at_once_one_is_the_first(control) -> None:
    control.save("note", {"a": Note("start")})
    barrier, won = threading.Barrier(8), []

    def replace(name: str) -> None:
        barrier.wait(10)
        if control.replace("note", "a", Note("start"), Note(name)):
            won.append(name)

    threads = [threading.Thread(target=replace, args=(str(at),)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(won) == 1
    assert control.load("note", Note) == {"a": Note(won[0])}


def test_a_lease_has_one_holder_until_its_time_is_over_or_it_is_dropped(tmp_path) -> None:
    now = [1000.0]
    control = SqliteControl(tmp_path / "control.sqlite", lambda: now[0])
    assert control.take_lease("periodic", "a", 10.0) is True
    assert control.take_lease("periodic", "b", 10.0) is False
    assert control.take_lease("other", "b", 10.0) is True
    now[0] = 1009.0
    assert control.take_lease("periodic", "a", 10.0) is True  # prolonged
    now[0] = 1018.9
    assert control.take_lease("periodic", "b", 10.0) is False
    now[0] = 1019.0
    assert control.take_lease("periodic", "b", 10.0) is True
    control.drop_lease("periodic", "a")
    assert control.take_lease("periodic", "a", 10.0) is False
    control.drop_lease("periodic", "b")
    assert control.take_lease("periodic", "a", 10.0) is True
    control.close()


def test_a_copy_made_while_it_is_written_is_whole(control, tmp_path) -> None:
    over = threading.Event()

    def write() -> None:
        at = 0
        while not over.is_set():
            at += 1
            control.save_all({"left": {"x": Note(str(at))}, "right": {"x": Note(str(at))}})

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for at in range(5):
            control.copy_to(tmp_path / f"copy{at}.sqlite")
    finally:
        over.set()
        writer.join(30)
    for at in range(5):
        copy = SqliteControl(tmp_path / f"copy{at}.sqlite")
        assert copy.load("left", Note) == copy.load("right", Note)
        copy.close()
