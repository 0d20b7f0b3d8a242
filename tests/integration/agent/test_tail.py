"""``flopwatch tail``: a log that only the job's user reads, over the agent's socket."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.agent.agent_process import FakeCollector, eventually

from flopwatch_agent.procfs import Procfs
from flopwatch_agent.sysfs import KernelTree
from flopwatch_agent.tail import alone

ROW = "iter {}: loss 3.1234, time 250.00ms, mfu 40.00%\n"
TRAIN = """
import sys, time
def say(text):
    with open(sys.argv[1], "a") as log: log.write(text)
say("tokens per iteration will be: 491,520\\nnumber of parameters: 123.59M\\n")
for step in range(8):
    say(f"iter {step}: loss 3.1234, time 250.00ms, mfu 40.00%\\n")
    time.sleep(0.25)
time.sleep(600)
"""


@pytest.fixture
def tails() -> Iterator[list["subprocess.Popen[bytes]"]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for process in started:
        process.kill()
        process.wait(5)
        if process.stderr is not None:
            process.stderr.close()


def tail(path: Path, sock: Path, *options: str, **environment: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "flopwatch.cli", "tail", *options, "--", str(path)],
        env={**os.environ, "FLOPWATCH_SOCKET": str(sock), **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def listener(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind(str(path))
    made.settimeout(60)
    return made


def has_open(pid: int, log: Path) -> bool:
    return log in {entry.resolve() for entry in Path(f"/proc/{pid}/fd").iterdir()}


def next_steps(sock: socket.socket, count: int) -> list[dict]:
    found: list[dict] = []
    while len(found) < count:
        message = json.loads(sock.recv(65_536))
        found += [message] if message["event"] == "step" else []
    return found


def test_the_agent_gets_the_rows_of_a_log_it_cannot_see(
    new_agent, collector: FakeCollector, processes, tails, tmp_path: Path
) -> None:
    log, sock = tmp_path / "hidden", tmp_path / "s.sock"
    slurm = {"SLURM_JOB_ID": "4711"}
    new_agent(collector_url=collector.url, sdk_socket=sock)
    trainer = processes(TRAIN, str(log), stdout=subprocess.DEVNULL, env={**os.environ, **slurm})
    tails.append(tail(log, sock, "--pid", str(trainer.pid), **slurm))

    steps = eventually(lambda: found if len(found := collector.all("steps")) == 8 else None)

    assert [step["step"] for step in steps] == list(range(8))
    assert {step["job"] for step in steps} == {"slurm:4711"}
    assert {(step["source"], step["basis"], step["seconds"], step["tokens"]) for step in steps} == {
        ("log", "printed", 0.25, 491_520)
    }
    assert {step["source_id"][:5] for step in steps} == {"file:"}
    facts = [run for job in collector.all("jobs") for run in job.get("run", ())]
    assert {("log", 123_590_000)} <= {(run["source"], run.get("parameter_count")) for run in facts}
    trainer.kill()
    trainer.wait(5)
    assert tails[0].wait(60) == 0


def test_it_waits_for_the_file_and_for_the_agent_and_loses_nothing(tails, tmp_path: Path) -> None:
    log, path = tmp_path / "train.log", tmp_path / "s.sock"
    tails.append(tail(log, path))
    time.sleep(0.5)
    log.write_text("".join(ROW.format(n) for n in range(5)))
    time.sleep(1.0)

    with listener(path) as sock:
        assert [step["step"] for step in next_steps(sock, 5)] == [0, 1, 2, 3, 4]


def test_a_rotated_log_is_followed_under_its_name(tails, tmp_path: Path) -> None:
    log, path = tmp_path / "train.log", tmp_path / "s.sock"
    with listener(path) as sock:
        tails.append(tail(log, path))
        log.write_text("".join(ROW.format(n) for n in range(3)))
        first = next_steps(sock, 3)
        log.rename(tmp_path / "train.log.1")
        log.write_text("".join(ROW.format(n) for n in range(3, 6)))

        assert [step["step"] for step in (*first, *next_steps(sock, 3))] == [0, 1, 2, 3, 4, 5]


def test_what_stood_in_the_file_before_the_run_is_history(tails, processes, tmp_path: Path) -> None:
    log, path = tmp_path / "train.log", tmp_path / "s.sock"
    log.write_text("".join(ROW.format(n) for n in range(50, 60)))
    time.sleep(1.5)
    run = processes("import time; time.sleep(600)")
    with listener(path) as sock:
        tails.append(tail(log, path, "--pid", str(run.pid)))
        eventually(lambda: has_open(tails[0].pid, log))
        with log.open("a") as sink:
            sink.write("".join(ROW.format(n) for n in range(3)))
        assert [step["step"] for step in next_steps(sock, 3)] == [0, 1, 2]

        tails.append(tail(log, path, "--all", "--pid", str(run.pid)))
        assert [step["step"] for step in next_steps(sock, 10)] == list(range(50, 60))


def test_the_step_lines_of_an_in_house_trainer_are_read_as_the_settings_say(tails, tmp_path: Path) -> None:
    log, path, settings = tmp_path / "train.log", tmp_path / "s.sock", tmp_path / "flopwatch.toml"
    settings.write_text(
        "[[agent.log_format]]\nexpression = 'it=(?P<step>\\d+) dt=(?P<seconds>[\\d.]+)'\nunits = {seconds = 'ms'}\n"
    )
    with listener(path) as sock:
        tails.append(tail(log, path, "--config", str(settings)))
        log.write_text("".join(f"it={n} dt=250\n" for n in range(8)))

        assert [(step["step"], step["seconds"]) for step in next_steps(sock, 8)] == [
            (n, 0.25) for n in range(8)
        ]


def test_a_signal_ends_it_after_what_is_written_was_sent(tails, tmp_path: Path) -> None:
    log, path = tmp_path / "train.log", tmp_path / "s.sock"
    with listener(path) as sock:
        tails.append(tail(log, path))
        log.write_text(ROW.format(0) + ROW.format(1))
        next_steps(sock, 2)
        with log.open("a") as sink:
            sink.write(ROW.format(2))
        tails[0].send_signal(signal.SIGTERM)

        assert [step["step"] for step in next_steps(sock, 1)] == [2]
        assert tails[0].wait(60) == 0


def test_a_pipe_is_not_read(tails, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    tails.append(tail(tmp_path / "pipe", tmp_path / "s.sock"))

    assert tails[0].wait(60) == 2
    assert b"is no regular file; it was not read" in (tails[0].stderr.read() if tails[0].stderr else b"")


def test_a_job_is_over_when_no_other_process_of_its_control_group_lives(tmp_path: Path) -> None:
    job, other = "0::/system.slice/slurmstepd.scope/job_7/step_0", "0::/user.slice"
    for pid, state, cgroup in ((10, "S", job), (11, "S", job), (12, "S", other)):
        folder = tmp_path / str(pid)
        folder.mkdir()
        fields = " ".join(["1", *["0"] * 17, "99", "0"])
        (folder / "stat").write_text(f"{pid} (python) {state} {fields}")
        (folder / "cgroup").write_text(cgroup + "\n")
    procfs = Procfs(KernelTree(tmp_path))

    assert not alone(procfs, job, 10)
    (tmp_path / "11/stat").write_text((tmp_path / "11/stat").read_text().replace(" S ", " Z "))
    assert alone(procfs, job, 10)
