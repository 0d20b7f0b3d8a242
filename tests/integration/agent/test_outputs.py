"""Pipes, FIFOs and terminals behind a job's output lose no byte to the agent."""

import os
import pty
import subprocess
import threading
from pathlib import Path

import pytest
from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import FakeCollector, eventually

from flopwatch_agent.log_file import LogFile, NotRegularError

LINES = 40
WRITER = f"""
import sys, time
for n in range({LINES}):
    print(f"iter {{n}}: loss 3.1234, time 250.00ms, mfu 40.00%", flush=True)
    time.sleep(0.04)
time.sleep(600)
"""
EXPECTED = "".join(f"iter {n}: loss 3.1234, time 250.00ms, mfu 40.00%\n" for n in range(LINES)).encode()


def collected(descriptor: int, into: bytearray) -> None:
    def run() -> None:
        while True:
            try:
                data = os.read(descriptor, 65536)
            except OSError:
                return
            if not data:
                return
            into.extend(data)

    threading.Thread(target=run, daemon=True).start()


def test_a_pipe_loses_no_byte_and_the_job_says_what_to_do(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes
) -> None:
    process = processes(WRITER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    pipe = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdout.close()
    into = bytearray()
    collected(os.dup(pipe.stdout.fileno()), into)
    fake_nvml.write("gpus 1", f"proc 0 {process.pid} 100")

    new_agent(collector_url=collector.url)
    job = eventually(lambda: collector.jobs_of(process.pid))[-1]
    eventually(lambda: len(into) >= len(EXPECTED))
    eventually(lambda: len(collector.batches) >= 4)
    pipe.kill()
    pipe.wait()
    pipe.stdout.close()

    assert bytes(into) == EXPECTED
    assert "tee" in job["waiting_for"]
    assert collector.steps_of(process.pid) == []


def test_a_fifo_loses_no_byte(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    fifo = tmp_path / "out"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    with fifo.open("wb") as sink:
        process = processes(WRITER, stdout=sink, stderr=sink)
    into = bytearray()
    collected(reader, into)
    fake_nvml.write("gpus 1", f"proc 0 {process.pid} 100")

    new_agent(collector_url=collector.url)
    eventually(lambda: collector.jobs_of(process.pid))
    eventually(lambda: len(into) >= len(EXPECTED))

    assert bytes(into) == EXPECTED


def test_a_terminal_loses_no_byte_and_is_named(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes
) -> None:
    master, terminal = pty.openpty()
    process = processes(WRITER, stdout=terminal, stderr=terminal, stdin=terminal)
    os.close(terminal)
    into = bytearray()
    collected(master, into)
    fake_nvml.write("gpus 1", f"proc 0 {process.pid} 100")

    new_agent(collector_url=collector.url)
    job = eventually(lambda: collector.jobs_of(process.pid))[-1]
    eventually(lambda: len(into) >= len(EXPECTED) + LINES)

    assert bytes(into).replace(b"\r\n", b"\n") == EXPECTED
    assert "terminal" in job["waiting_for"]
    assert "2>&1 | tee train.log" in job["waiting_for"]


def test_a_pipe_into_tee_is_followed_in_tees_file(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    process = processes(WRITER, stdout=subprocess.PIPE)
    tee = subprocess.Popen(["tee", str(log)], stdin=process.stdout, stdout=subprocess.DEVNULL)
    fake_nvml.write("gpus 1", f"proc 0 {process.pid} 100")
    try:
        new_agent(collector_url=collector.url)
        eventually(lambda: len(collector.all("steps")) == LINES)
    finally:
        tee.kill()
        tee.wait()

    assert [step["step"] for step in collector.all("steps")] == list(range(LINES))
    assert collector.jobs_of(process.pid)[-1]["log_path"] == str(log)


def test_a_launcher_that_captures_output_is_followed_in_its_own_log(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    launcher = """
import subprocess, sys
worker = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE)
print(worker.pid, file=open(sys.argv[2], "w"), flush=True)
for line in worker.stdout:
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
"""
    pid_file = tmp_path / "pid"
    with (tmp_path / "launcher.log").open("wb") as sink:
        processes(launcher, WRITER.replace("600", "8"), str(pid_file), stdout=sink)
    pid = eventually(lambda: pid_file.read_text().strip() if pid_file.exists() else "")
    fake_nvml.write("gpus 1", f"proc 0 {pid} 100")

    new_agent(collector_url=collector.url)
    eventually(lambda: len(collector.all("steps")) == LINES)

    assert collector.jobs_of(int(pid))[-1]["log_path"].endswith("launcher.log")


@pytest.mark.parametrize("kind", ["fifo", "terminal", "folder", "null"])
def test_only_regular_files_are_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    held = []
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "null":
        path = Path("/dev/null")
    else:
        held = list(pty.openpty())
        path = Path(os.ttyname(held[1]))

    with pytest.raises(NotRegularError):
        LogFile(path, str(path))

    for descriptor in held:
        os.close(descriptor)


def test_a_binary_log_with_lines_of_ten_megabytes_costs_little_memory_and_gives_no_rows(
    fake_nvml: FakeNvml, new_agent, collector: FakeCollector, processes, tmp_path: Path
) -> None:
    code = """
import os, sys, time
block = bytes(range(256)).replace(b"\\n", b"") * 4096
for _ in range(40): os.write(1, block)
os.write(1, b"\\n")
for n in range(5): os.write(1, b"iter %d: loss 3.1234, time 250.00ms, mfu 40.00%%\\n" % n); time.sleep(.2)
time.sleep(600)
"""
    with (tmp_path / "train.log").open("wb") as sink:
        process = processes(code, stdout=sink)
    fake_nvml.write("gpus 1", f"proc 0 {process.pid} 100")

    agent = new_agent(collector_url=collector.url)
    eventually(lambda: len(collector.all("steps")) >= 5, 40)

    assert [step["step"] for step in collector.all("steps")] == [0, 1, 2, 3, 4]
    status = Path(f"/proc/{agent.popen.pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    assert peak < 160_000
