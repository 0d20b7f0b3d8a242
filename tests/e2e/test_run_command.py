"""``flopwatch run``: real commands under it, their output, signals and status unchanged, and a recording to replay."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.processes import clean_environment, until
from tests.fixtures_nvml import FakeNvml
from tests.integration.agent.agent_process import FakeCollector

TRAINER = Path(__file__).parent / "trainer.py"
RUN = (sys.executable, "-m", "flopwatch.cli", "run")
LLAMA_8B_TOKEN = 51.474e9
"""FLOPs of a trained token at 8,192 tokens a sequence, causal."""
PEAK = 989.4e12


def run(
    folder: Path, *command: str, options: tuple[str, ...] = (), **environment: str
) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [*RUN, "--output", str(folder / "out"), *options, "--", *command],
        capture_output=True,
        env={**clean_environment(folder), **environment},
        timeout=60,
        check=False,
    )


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def replayed(folder: Path) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "flopwatch.cli", "replay", "--json", str(folder)],
        capture_output=True,
        env=clean_environment(folder),
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


def trainer(folder: Path, *, steps: int, seconds: float = 0.2, form: str = "megatron") -> tuple[str, ...]:
    """A trainer that ends after some steps, below a shell."""
    options = f"--step-seconds {seconds} --startup-seconds 0.2 --steps {steps} --control {folder / 'control'}"
    return ("sh", "-c", f"{sys.executable} {TRAINER} {form} {options}; exit $?")


def test_output_of_any_bytes_and_the_exit_status_pass_through_unchanged(tmp_path: Path) -> None:
    script = (
        "import os, sys; data = bytes(range(256)) * 4000; os.write(1, b'first'); os.write(2, b'\\x00\\xff err\\r\\n');"
        "[os.write(1, data[i:i + 7777]) for i in range(0, len(data), 7777)]; sys.exit(37)"
    )

    done = run(tmp_path, sys.executable, "-c", script)

    assert done.returncode == 37
    assert done.stdout == b"first" + bytes(range(256)) * 4000
    assert done.stderr.startswith(b"\x00\xff err\r\n")
    assert only(tmp_path / "out", "*.out.log").read_bytes() == done.stdout


def test_a_command_gets_the_signals_and_its_death_by_one_is_kept(tmp_path: Path) -> None:
    script = "trap 'echo got usr1' USR1; echo ready; while :; do sleep 0.05; done"
    started = subprocess.Popen(
        [*RUN, "--output", str(tmp_path / "out"), "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment(tmp_path),
    )
    with started:
        assert started.stdout is not None
        assert started.stdout.readline() == b"ready\n"

        started.send_signal(signal.SIGUSR1)
        answered = started.stdout.readline()
        started.send_signal(signal.SIGTERM)
        started.wait(20)

    assert answered == b"got usr1\n"
    assert started.returncode == -signal.SIGTERM
    assert json.loads(only(tmp_path / "out", "*.summary").read_text())["exit_status"] == -signal.SIGTERM


def test_a_command_that_is_not_there_is_127_and_leaves_no_file(tmp_path: Path) -> None:
    done = run(tmp_path, "no-such-command-here")

    assert done.returncode == 127
    assert done.stderr == b"flopwatch run: no-such-command-here: No such file or directory\n"
    assert list((tmp_path / "out").iterdir()) == []


def test_in_a_terminal_the_command_has_one_too_and_no_byte_changes(tmp_path: Path) -> None:
    controller, terminal = pty.openpty()
    script = "import os, sys; os.write(1, f'{sys.stdout.isatty()} {os.get_terminal_size()}\\r\\x1b[2K\\n'.encode())"
    command = [*RUN, "--output", str(tmp_path / "out"), "--", sys.executable, "-c", script]

    with subprocess.Popen(
        command, stdout=terminal, stderr=terminal, env=clean_environment(tmp_path)
    ) as started:
        started.wait(30)
    os.close(terminal)
    shown = os.read(controller, 4096)
    os.close(controller)

    # The terminal itself makes a newline of "\r\n", once.
    assert shown.startswith(b"True os.terminal_size(columns=0, lines=0)\r\x1b[2K\r\n")
    assert only(tmp_path / "out", "*[0-9].log").read_bytes().endswith(b"\r\x1b[2K\n")


def test_a_reader_that_goes_away_ends_the_command_as_it_would_without_us(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    line = f"{' '.join(RUN)} --output {folder} -- sh -c 'while :; do echo y; done' 2>/dev/null | head -n 1"

    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, env=clean_environment(tmp_path), timeout=30, check=True
    )
    status = json.loads(until(lambda: only_or_none(folder, "*.summary"), 20, "summary").read_text())

    assert done.stdout == b"y\n"
    assert status["exit_status"] == -signal.SIGPIPE


def only_or_none(folder: Path, pattern: str) -> Path | None:
    return next(iter(folder.glob(pattern)), None)


@pytest.mark.parametrize("killed", ["relay", "recorder"])
def test_when_a_part_of_flopwatch_is_killed_the_command_goes_on(tmp_path: Path, killed: str) -> None:
    marker = tmp_path / "ended"
    script = f"echo $$; for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.25; done; echo done > {marker}"
    started = subprocess.Popen(
        [*RUN, "--output", str(tmp_path / "out"), "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment(tmp_path),
    )
    with started:
        assert started.stdout is not None
        command = int(started.stdout.readline())
        children = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()
        (recorder,) = {int(pid) for pid in children} - {command}

        os.kill(started.pid if killed == "relay" else recorder, signal.SIGKILL)
        until(marker.exists, 20, "the command's own end")
        started.stdout.read()
        started.wait(20)

    log = only(tmp_path / "out", "*.out.log").read_bytes()
    assert log == f"{command}\n".encode() + b"".join(b"line %d\n" % i for i in range(1, 9))
    if killed == "recorder":
        assert started.returncode == 0


def test_a_trainer_is_recorded_with_its_mfu_and_replays_to_the_same(
    tmp_path: Path, fake_nvml: FakeNvml
) -> None:
    fake_nvml.write("gpus 8")

    done = run(
        tmp_path,
        *trainer(tmp_path, steps=14),
        options=("--job", "my-run", "--interval", "0.5", "--json"),
        **fake_nvml.environment,
    )
    found = json.loads(done.stderr)
    answer = replayed(tmp_path / "out")

    # 51.474 GFLOP x 65,536 tokens / (8 GPUs x 989.4 TFLOP/s x 0.2 s)
    by_hand = LLAMA_8B_TOKEN * 8 * 8192 / (8 * PEAK * 0.2)
    assert done.returncode == 0
    assert (found["job"], found["exit_status"]) == ("my-run", 0)
    assert found["steps"] == only(tmp_path / "out", "*.out.log").read_bytes().count(b"] iteration ") == 14
    assert found["step_seconds"] == pytest.approx(0.2)
    assert found["mfu"]["value_ratio"] == pytest.approx(by_hand, rel=0.002)
    assert (found["mfu"]["basis"], found["mfu"]["gpus_basis"]) == ("steps+shape", "world_size")
    assert found["gpu_activity"]["value_ratio"] is not None
    assert answer["input"]["problems"] == []
    (job,) = answer["jobs"]
    assert job["name"] == "my-run"
    assert job["mfu"] == pytest.approx(found["mfu"]["value_ratio"], rel=0.01)


def test_what_is_recorded_is_sent_to_a_collector_too(tmp_path: Path) -> None:
    collector = FakeCollector()
    try:
        done = run(
            tmp_path,
            *trainer(tmp_path, steps=6),
            options=("--job", "sent", "--interval", "0.5", "--collector", collector.url, "--json"),
        )
        steps = until(lambda: found if len(found := collector.all("steps")) >= 6 else None, 30, "the steps")
        ended = until(
            lambda: [job for job in collector.all("jobs") if "end_time_seconds" in job], 30, "the end"
        )
    finally:
        collector.stop()

    assert done.returncode == 0
    assert json.loads(done.stderr)["waiting_batches"] == 0
    assert [step["step"] for step in steps] == [1, 2, 3, 4, 5, 6]
    assert {job["name"] for job in collector.all("jobs")} == {"sent"}
    assert ended[-1]["ref"] == steps[0]["job"]


def test_two_nodes_of_one_job_are_one_job_of_sixteen_gpus(tmp_path: Path, fake_nvml: FakeNvml) -> None:
    fake_nvml.write("gpus 8")
    folder = tmp_path / "out"
    started = []
    for number, name in enumerate(("node-a", "node-b")):
        own = tmp_path / name
        own.mkdir()
        # torchrun's variables, as its first process on each node has them; only rank 0 prints steps.
        rank = {"RANK": str(8 * number), "LOCAL_RANK": "0", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8",
                "GROUP_RANK": str(number), "TORCHELASTIC_RUN_ID": "run-7", "MASTER_ADDR": "node-a",
                "MASTER_PORT": "29500"}  # fmt: skip
        form = "megatron" if number == 0 else "megatron-header"
        command = trainer(own, steps=10, form=form) if number == 0 else ("sleep", "5")
        started.append(
            subprocess.Popen(
                [*RUN, "--output", str(folder), "--interval", "0.5", "--json", "--", *command],
                env={**clean_environment(own), **fake_nvml.environment, **rank, "FLOPWATCH_AGENT_NODE": name},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        )
    for process in started:
        with process:
            _, summary = process.communicate(timeout=90)
            assert process.returncode == 0, summary

    (job,) = replayed(folder)["jobs"]
    assert (
        sorted(job["nodes"]) == ["node-a", "node-b"] if isinstance(job["nodes"], list) else job["nodes"] == 2
    )
    assert job["gpus"] == 16


def test_without_nvml_the_steps_alone_are_recorded_and_the_rest_says_why_not(tmp_path: Path) -> None:
    done = run(tmp_path, *trainer(tmp_path, steps=8), options=("--interval", "0.5", "--json"))
    found = json.loads(done.stderr)

    assert found["step_seconds"] == pytest.approx(0.2)
    assert found["mfu"]["value_ratio"] is None
    assert "NVML" in found["mfu"]["reason"]
    assert found["gpu_activity"]["value_ratio"] is None
    assert found["gpu_activity"]["reason"]


def test_the_sdk_of_the_command_reaches_the_recorder_alone(tmp_path: Path) -> None:
    done = run(tmp_path, *trainer(tmp_path, steps=8, seconds=0.1, form="sdk"), options=("--json",))
    found = json.loads(done.stderr)

    assert found["steps"] == 8
    assert 0.1 <= found["step_seconds"] < 0.5, "a sleep may take longer on a busy machine, never shorter"
    assert found["mfu"]["tokens_per_step"] == 65_536


def test_a_command_of_an_instant_is_still_a_job(tmp_path: Path) -> None:
    began = time.monotonic()
    done = run(tmp_path, "true", options=("--job", "brief", "--json"))

    found = json.loads(done.stderr)
    assert (done.returncode, found["job"], found["steps"], found["step_seconds"]) == (0, "brief", 0, None)
    assert time.monotonic() - began < 30


def test_no_command_is_wrong_use(tmp_path: Path) -> None:
    done = run(tmp_path)

    assert done.returncode == 2
    assert b"no command; use: flopwatch run [OPTIONS] -- COMMAND" in done.stderr
