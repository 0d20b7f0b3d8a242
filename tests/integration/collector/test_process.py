"""``flopwatch collector`` and ``flopwatch token`` as processes."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.collector.batches import batch, device, sample
from tests.integration.collector.serving import Client

CLI = ("-c", "import sys; from flopwatch.cli import main; sys.exit(main())")
COLLECTOR_ALONE = ("-m", "flopwatch_collector")


def flopwatch(folder: Path, *arguments: str) -> list[str]:
    """The command; the collector without its pages, which take a second to import."""
    program, rest = (COLLECTOR_ALONE, arguments[1:]) if arguments[0] == "collector" else (CLI, arguments)
    return [sys.executable, *program, *rest, "--data-dir", str(folder)]


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FLOPWATCH_")}
    return {**kept, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        flopwatch(folder, *arguments),
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextmanager
def collector(
    folder: Path, *arguments: str, pages: bool = False
) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    command = flopwatch(folder, "collector", "--port", "0", *arguments)
    if pages:
        command[1:3] = [*CLI, "collector"]
    with subprocess.Popen(command, env=environment(folder), stderr=subprocess.PIPE, text=True) as process:
        client = None
        try:
            client = Client(port=port_of(process))
            yield process, client
        finally:
            process.kill()
            if client is not None:
                client.close()


def port_of(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"listening on https?://[^/]*:(\d+)/", line):
            port = int(found[1])
            wait_until_served(port)
            return port
    raise AssertionError(f"the collector ended with {process.wait()}")


def wait_until_served(port: int) -> None:
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)


def test_sigterm_ends_it_cleanly_with_everything_durable(tmp_path: Path) -> None:
    sent = batch(at=time.time(), gpus=(device("A"),), gpu_samples=(sample("A", time.time()),))
    with collector(tmp_path, pages=True) as (process, client):
        answer = client.push(sent)
        page = client.get("/ui/").status
        process.send_signal(signal.SIGTERM)
        status = process.wait(timeout=30)

    with collector(tmp_path) as (_, client):
        again = client.push(sent)

    assert (answer.status, page, status) == (200, 200, 0)
    assert again.json()["duplicate"]


def test_ctrl_c_ends_it_with_status_0(tmp_path: Path) -> None:
    with collector(tmp_path) as (process, _):
        process.send_signal(signal.SIGINT)

        assert process.wait(timeout=30) == 0


def test_beyond_loopback_without_a_token_it_does_not_start(tmp_path: Path) -> None:
    refused = run(tmp_path, "collector", "--host", "0.0.0.0", "--port", "0")

    assert refused.returncode == 2
    assert "flopwatch token create --role agent" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_token_made_on_the_command_line_opens_a_running_collector(tmp_path: Path) -> None:
    created = run(tmp_path, "token", "create", "--role", "admin", "--name", "ada", "--json")
    made = json.loads(created.stdout)
    with collector(tmp_path, "--host", "0.0.0.0") as (process, client):
        closed = client.get("/api/v1/query/status").status
        client.token = made["secret"]
        opened = client.get("/api/v1/query/status").status
        revoked = run(tmp_path, "token", "revoke", made["token_id"])
        run(tmp_path, "token", "create", "--role", "agent")
        deadline = time.monotonic() + 20.0
        while client.get("/api/v1/query/status").status == 200 and time.monotonic() < deadline:
            time.sleep(0.2)
        after = client.get("/api/v1/query/status").status
        process.terminate()
        log = process.stderr.read() if process.stderr else ""

    assert (closed, opened, after) == (401, 200, 401)
    assert revoked.returncode == 0
    assert made["secret"] not in log


def test_only_the_first_token_says_that_from_now_on_everybody_needs_one(tmp_path: Path) -> None:
    first = run(tmp_path, "token", "create", "--role", "agent")
    second = run(tmp_path, "token", "create", "--role", "viewer")

    assert "flopwatch token create --role viewer" in first.stderr
    assert "agent.token_file" in first.stderr
    assert "From now on" not in second.stderr
    assert [len(each.stdout.split()) for each in (first, second)] == [1, 1]


def test_tokens_are_listed_without_their_secrets(tmp_path: Path) -> None:
    made = json.loads(run(tmp_path, "token", "create", "--role", "agent", "--name", "nodes", "--json").stdout)

    listed = run(tmp_path, "token", "list")

    assert re.fullmatch(rf"{made['token_id']}  agent     \d{{4}}-\d\d-\d\d  valid\s+nodes\n", listed.stdout)
    assert made["secret"] not in listed.stdout
    assert run(tmp_path, "token", "revoke", "nothing").returncode == 1


def test_a_wrong_setting_ends_the_start_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "flopwatch.toml"
    file.write_text("[collector]\nport = 99999\n")

    refused = run(tmp_path, "collector", "--config", str(file))

    assert refused.returncode == 2
    assert refused.stderr == "flopwatch: setting collector.port is 99999; allowed: 0 to 65535\n"


def test_a_folder_that_another_collector_holds_ends_the_start(tmp_path: Path) -> None:
    with collector(tmp_path):
        refused = run(tmp_path, "collector", "--port", "0")

    assert refused.returncode == 2
    assert f"the data folder {tmp_path} cannot be used" in refused.stderr
    assert "Traceback" not in refused.stderr
