"""A run falls below its target and recovers: one alert and one resolution arrive, also across a restart."""

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.processes import Process, Processes, get_json, until
from tests.fixtures_nvml import FakeNvml
from tests.ports import free_port

TRAINER = Path(__file__).with_name("trainer.py")


class Receiver:
    """A webhook's receiver that keeps what it got."""

    def __init__(self) -> None:
        got: list[dict[str, Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        self.got = got
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


SETTINGS = """
[collector]
port = {port}
data_dir = "{folder}/collector"

[targets.job]
"run-*" = 0.36

[alerts]
mfu_low_for_seconds = 6
warmup_steps = 2
group_wait_seconds = 0
group_interval_seconds = 0
evaluate_seconds = 1

[[notify]]
kind = "webhook"
url = "{hook}"

[agent]
collector_url = "http://127.0.0.1:{port}"
host = "127.0.0.1"
port = 0
data_dir = "{folder}/agent"
interval_seconds = 2
"""


def test_a_fall_and_a_recovery_are_two_messages_also_when_the_collector_is_killed_between(
    processes: Processes, fake_nvml: FakeNvml, receiver: Receiver, tmp_path: Path
) -> None:
    port = free_port()
    settings = tmp_path / "flopwatch.toml"
    settings.write_text(SETTINGS.format(port=port, folder=tmp_path, hook=receiver.url))
    fake_nvml.write("gpus 8")
    collector = start_collector(processes, settings, port)
    processes.flopwatch("agent", "--config", str(settings), env=fake_nvml.environment)
    control = train(processes, fake_nvml, tmp_path)
    until(lambda: mfu(port), 60, "the run has an MFU")
    assert receiver.got == []

    control.write_text("2.0")
    until(lambda: receiver.got, 90, "the alert arrives")
    collector.kill()
    start_collector(processes, settings, port)
    control.write_text("1.0")
    until(lambda: len(receiver.got) > 1, 120, "the resolution arrives")
    active = get_json(f"http://127.0.0.1:{port}/api/v1/query/alerts")["active"]

    assert [message["status"] for message in receiver.got] == ["firing", "resolved"]
    alert = receiver.got[0]["alerts"][0]
    assert alert["labels"]["alertname"] == "MfuLow"
    assert receiver.got[1]["alerts"][0]["fingerprint"] == alert["fingerprint"]
    assert [row for row in active if row["rule"] == "MfuLow"] == []


def start_collector(processes: Processes, settings: Path, port: int) -> Process:
    started = processes.flopwatch("collector", "--config", str(settings))
    until(lambda: get_json(f"http://127.0.0.1:{port}/healthz"), 30, "the collector answers")
    return started


def train(processes: Processes, fake: FakeNvml, folder: Path) -> Path:
    """A Megatron-like run on eight GPUs: 42.6 % at 1 s a step, half of it at 2 s; the alert clears at 1.1 x 36 %."""
    control = folder / "control"
    with (folder / "run.out").open("wb") as sink:
        process = processes.start(
            "trainer", sys.executable, str(TRAINER), "megatron", "--step-seconds", "1.0", "--startup-seconds", "1.0",
            "--control", str(control), env={"FLOPWATCH_JOB_NAME": "run-a"}, stdout=sink,
        )  # fmt: skip
    fake.write("gpus 8", *(f"proc {gpu} {process.popen.pid} 60000" for gpu in range(8)))
    return control


def mfu(port: int) -> float | None:
    rows = get_json(f"http://127.0.0.1:{port}/api/v1/query/jobs?seconds=3600")["rows"]
    return rows[0]["mfu"]["value_ratio"] if rows else None
