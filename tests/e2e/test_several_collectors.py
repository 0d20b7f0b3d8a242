"""Two collectors over one ClickHouse and one PostgreSQL: either takes batches, one is on duty, and it may be killed."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tests.e2e.processes import Process, Processes, get_json, until
from tests.e2e.test_alert import Receiver
from tests.fixtures import clickhouse
from tests.fixtures import postgres as postgres_server
from tests.ports import free_port

SETTINGS = """
[collector]
port = {port}
data_dir = "{folder}/collector"
store = "clickhouse"
clickhouse_url = "{clickhouse}"
control_url = "{control}"
lease_seconds = 3

[alerts]
send = ["NoData"]
no_data_for_seconds = 2
evaluate_seconds = 1

[[notify]]
kind = "webhook"
url = "{hook}"
"""


INTERVAL_SECONDS = {"quiet": 1.0, "steady": 60.0}
"""So that the one node is soon silent and the other, on a busy machine, never."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def control() -> Iterator[str]:
    server = postgres_server.start()
    yield server.new_database()
    server.stop()


@pytest.fixture
def chdb(tmp_path: Path) -> Iterator[clickhouse.ChdbServer]:
    server = clickhouse.start(tmp_path / "chdb")
    yield server
    server.stop()


def push(port: int, node: str, sequence: int) -> bool:
    """Send one sample of the node's one GPU; whether it was a duplicate."""
    now = time.time()
    body = {
        "version": 1,
        "agent_version": "test",
        "boot_id": "b",
        "monotonic_seconds": 100.0,
        "node": node,
        "cluster": "default",
        "spool": "s",
        "sequence": sequence,
        "sampled_at_seconds": now,
        "interval_seconds": INTERVAL_SECONDS[node],
        "gpus": [{"uuid": f"GPU-{node}", "slot": "0000:1b:00.0", "name": "NVIDIA H100 80GB HBM3"}],
        "gpu_samples": [{"gpu": f"GPU-{node}", "time_seconds": now, "kernel_active_ratio": 0.5}],
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/ingest",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return bool(json.loads(answer.read())["duplicate"])


def fleet(port: int) -> tuple[int, int]:
    """Nodes and GPUs that a collector knows."""
    clusters = get_json(f"http://127.0.0.1:{port}/api/v1/query/status")["clusters"]
    return sum(each["nodes"] for each in clusters), sum(each["gpus"] for each in clusters)


def firing(port: int) -> list[str]:
    """Nodes of alerts that a collector shows as firing."""
    active = get_json(f"http://127.0.0.1:{port}/api/v1/query/alerts")["active"]
    return [row["labels"]["node"] for row in active if row["rule"] == "NoData" and row["state"] == "firing"]


class Feed:
    """Pushes nodes' samples to the collectors by turns."""

    def __init__(self, ports: list[int]) -> None:
        self.ports = ports
        self.sequences = {"steady": 0, "quiet": 0}

    def push(self, *nodes: str) -> None:
        for node in nodes:
            self.sequences[node] += 1
            push(self.ports[self.sequences[node] % len(self.ports)], node, self.sequences[node])

    def until(self, ask: Callable[[], object], what: str, *nodes: str) -> None:
        """Push until the answer is true.

        Raises:
            AssertionError: it is not within a minute.
        """
        deadline = time.monotonic() + 60
        while not ask():
            assert time.monotonic() < deadline, what
            self.push(*nodes)
            time.sleep(0.25)


def holder(control: str, collectors: dict[int, Process]) -> int | None:
    """The port of the collector on duty."""
    with psycopg.connect(control, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT holder FROM flopwatch_lease WHERE until > clock_timestamp()"
        ).fetchall()
    pids = {str(process.popen.pid): port for port, process in collectors.items()}
    return pids.get(rows[0][0].split(":")[1]) if rows else None


def test_the_duty_moves_when_its_holder_is_killed_and_nothing_is_sent_twice_or_lost(
    receiver: Receiver,
    control: str,
    chdb: clickhouse.ChdbServer,
    processes: Processes,
    tmp_path: Path,
) -> None:
    collectors: dict[int, Process] = {}
    for name in ("a", "b"):
        port = free_port()
        folder = tmp_path / name
        folder.mkdir()
        settings = folder / "flopwatch.toml"
        settings.write_text(
            SETTINGS.format(port=port, folder=folder, clickhouse=chdb.url, control=control, hook=receiver.url)
        )
        collectors[port] = processes.flopwatch("collector", "--config", str(settings))
        until(lambda port=port: get_json(f"http://127.0.0.1:{port}/healthz"), 60, "the collector answers")
    first, second = collectors
    feed = Feed([first, second])

    feed.push("quiet", "steady", "quiet", "steady")
    assert push(first, "quiet", 2) is push(second, "quiet", 2) is True, "a batch counts once in all"
    for port in collectors:
        feed.until(lambda port=port: fleet(port) == (2, 2), "both know both nodes", "steady", "quiet")

    feed.until(lambda: receiver.got, "the silent node's alert arrives", "steady")
    for port in collectors:
        feed.until(lambda port=port: firing(port) == ["quiet"], "both show it", "steady")
        assert get_json(f"http://127.0.0.1:{port}/api/v1/query/fleet")["status"]["clusters"]
    on_duty = until(lambda: holder(control, collectors), 10, "one collector is on duty")
    collectors.pop(on_duty).kill()
    (left,) = collectors
    feed.ports = [left]
    feed.until(lambda: holder(control, collectors) == left, "the other takes over", "steady")
    later = time.monotonic() + 4
    feed.until(lambda: time.monotonic() > later, "some evaluations pass", "steady")
    assert [message["status"] for message in receiver.got] == ["firing"], "what was sent is not sent again"

    feed.until(lambda: len(receiver.got) > 1, "the resolution arrives", "steady", "quiet")
    assert [message["status"] for message in receiver.got] == ["firing", "resolved"]
    assert [message["alerts"][0]["labels"]["node"] for message in receiver.got] == ["quiet", "quiet"]
    assert [each.name for each in processes.started if "Traceback" in each.output()] == []
