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
