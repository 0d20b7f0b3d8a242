"""Wrong settings stop the start with their name; a full disk does not stop the agent."""

import os
import resource
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.integration.agent.agent_process import FakeCollector, eventually


def start(folder: Path, text: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    config = folder / "flopwatch.toml"
    config.write_text(text)
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("FLOPWATCH_")}
    return subprocess.run(
        [sys.executable, "-m", "flopwatch.cli", "agent", "--config", str(config)],
        env={**inherited, "FLOPWATCH_AGENT_DATA_DIR": str(folder / "data"), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[agent]\nintervall = 3", "agent.intervall"),
        (
            "[[agent.log_format]]\nexpression = 'it=(?P<it>x)'",
            "agent.log_format[0].expression is 'it=(?P<it>x)'; allowed: one that can be used: log format has a group",
        ),
        (
            "[[agent.log_format]]\nexpresion = 'x'",
            "agent.log_format[0].expresion is 'x'; allowed: one of name",
        ),
        (
            "[[agent.log_format]]\nexpression = '(?P<step>x)'\nunits = {seconds = \"ms\"}",
            "agent.log_format[0].units is {'seconds': 'ms'}; allowed: one that can be used",
        ),
        ("[agent]\ninterval_seconds = 0.1", "agent.interval_seconds is 0.1; allowed: 0.2 to 60"),
        ("[agent]\nport = 70000", "agent.port is 70000; allowed: 0 to 65535"),
        ('[agent]\ncollector_url = "collector:8095"', "agent.collector_url"),
        ('[agent]\ncollector_url = "http://u@c/"', "agent.collector_url"),
        ('[agent]\ntoken = "a"\ntoken_file = "/b"', "agent.token_file"),
        ('[agent]\ncollector_url = "http://c"\ntoken_file = "/nowhere/token"', "agent.token_file"),
        ('[agent]\ncollector_url = "https://c"\nca_file = "/nowhere/ca.pem"', "agent.ca_file"),
        ('[agent]\nlog_globs = ["train*.log"]', "agent.log_globs"),
        ('[agent]\nsdk_socket = "/proc/none/steps.sock"\nport = 0', "agent.sdk_socket"),
        ('[agent]\nhost = "203.0.113.7"\nport = 0\nsdk_socket = "off"', "agent.host"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    answer = start(tmp_path, text)

    assert answer.returncode == 2
    assert message in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        answer = start(tmp_path, f'[agent]\nhost = "127.0.0.1"\nport = {port}\nsdk_socket = "off"')

    assert answer.returncode == 2
    assert f"agent.port is {port}" in answer.stderr


def test_a_data_folder_of_another_agent_is_refused(tmp_path: Path, new_agent) -> None:
    agent = new_agent()
    eventually(lambda: agent.port)

    answer = start(tmp_path, f'[agent]\nport = 0\nsdk_socket = "off"\ndata_dir = "{agent.folder}/data"',
                   FLOPWATCH_AGENT_DATA_DIR=f"{agent.folder}/data")  # fmt: skip

    assert answer.returncode == 2
    assert "agent.data_dir" in answer.stderr
    assert "no other agent" in answer.stderr


def test_a_full_disk_is_said_once_and_the_agent_goes_on_and_recovers(
    new_agent, collector: FakeCollector
) -> None:
    agent = new_agent(collector_url=collector.url)
    eventually(lambda: collector.batches)

    resource.prlimit(agent.popen.pid, resource.RLIMIT_FSIZE, (10, resource.RLIM_INFINITY))
    eventually(lambda: agent.has("flopwatch_spool_failed_writes_total") and
               agent.metrics()["flopwatch_spool_failed_writes_total"] >= 2)  # fmt: skip
    assert agent.metrics()["flopwatch_node_memory_total_bytes"] > 0
    resource.prlimit(agent.popen.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    before = len(collector.batches)
    eventually(lambda: len(collector.batches) >= before + 2)

    numbers = [batch["sequence"] for batch in collector.batches]
    assert numbers == list(range(len(numbers)))


def test_the_agent_ends_cleanly(new_agent, collector: FakeCollector) -> None:
    agent = new_agent(collector_url=collector.url)
    eventually(lambda: collector.batches)

    assert agent.stop(60.0) == 0
    assert "Traceback" not in agent.output()


def test_healthz_answers_and_other_paths_do_not(new_agent) -> None:
    import urllib.error
    import urllib.request

    agent = new_agent()
    eventually(lambda: agent.has("flopwatch_nvml_up"))

    with urllib.request.urlopen(f"http://127.0.0.1:{agent.port}/healthz", timeout=5) as response:
        assert response.read() == b"ok\n"
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"http://127.0.0.1:{agent.port}/etc/passwd", timeout=5)
    assert caught.value.code == 404
    caught.value.close()


@pytest.mark.parametrize(("ago_seconds", "status"), [(9.0, 200), (11.0, 503), (None, 503)])
def test_healthz_tells_whether_the_loop_turns_and_not_whether_the_page_is_made(
    ago_seconds: float | None, status: int
) -> None:
    import urllib.error
    import urllib.request

    from flopwatch_agent.sinks.exposition import ExpositionServer
    from flopwatch_agent.source import Snapshot

    def known() -> Snapshot:
        now = time.time()
        turned = None if ago_seconds is None else now - ago_seconds
        return Snapshot(now=now, interval_seconds=1.0, turned_seconds=turned)

    server = ExpositionServer("127.0.0.1", 0, known, "1")
    server.start()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/healthz", timeout=30) as answer:
            found = answer.status
    except urllib.error.HTTPError as error:
        found = error.code
        error.close()
    finally:
        server.stop()

    assert found == status


def test_doctor_says_what_is_read_and_what_is_not(tmp_path: Path, fake_nvml, processes) -> None:
    import json

    with (tmp_path / "train.log").open("wb") as sink:
        process = processes("import time; time.sleep(600)", stdout=sink)
    fake_nvml.write("gpus 2", "lost 1 1", f"proc 0 {process.pid} 100", "fielderr 82 any 3")
    config = tmp_path / "flopwatch.toml"
    config.write_text('[agent]\ncollector_url = "http://127.0.0.1:9"\n')
    answer = subprocess.run(
        [sys.executable, "-m", "flopwatch.cli", "doctor", "--json", "--config", str(config)],
        env={**os.environ, **fake_nvml.environment, "FLOPWATCH_AGENT_DATA_DIR": str(tmp_path / "data")},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    checks = {check["name"]: check for check in json.loads(answer.stdout)["checks"]}
    assert answer.returncode == 1
    assert checks["NVML"]["text"].startswith("driver 580.126.09, 1 GPUs")
    assert "memory_temperature_celsius" in checks["GPU 0000:1b:00.0"]["details"]["not_read"]
    assert "tensor_active_ratio" not in checks["GPU 0000:1b:00.0"]["details"]["not_read"]
    assert checks["collector"]["status"] == "failed"
    job = next(check for name, check in checks.items() if name.startswith("job "))
    assert str(tmp_path / "train.log") in job["details"]["logs"]
