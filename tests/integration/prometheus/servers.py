"""Debian's Prometheus and VictoriaMetrics as processes of a test, each in a folder and on a port of its own."""

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest
from tests.ports import free_port

T = TypeVar("T")
Kind = Literal["prometheus", "victoria-metrics"]
KINDS: tuple[Kind, ...] = ("prometheus", "victoria-metrics")
PACKAGES = {"promtool": "prometheus", "amtool": "prometheus-alertmanager"}


def program(name: str) -> str:
    """The path of a Debian program; without it the test is skipped, or fails where everything is to be tested."""
    path = shutil.which(name)
    if path is None:
        words = f"{name} is missing: install the package {PACKAGES.get(name, name)}"
        if os.environ.get("FLOPWATCH_TEST_EVERYTHING") == "1":
            pytest.fail(words)
        pytest.skip(words)
    return path


def eventually(read: Callable[[], T], seconds: float = 30.0) -> T:
    """The first true answer; fails when none came in time."""
    end = time.monotonic() + seconds
    while not (answer := read()):
        assert time.monotonic() < end, f"not within {seconds} s: {read}"
        time.sleep(0.05)
    return answer


@dataclass
class Server:
    """A running time-series database."""

    kind: Kind
    url: str
    process: "subprocess.Popen[bytes]"

    @property
    def write_url(self) -> str:
        return f"{self.url}/api/v1/write"

    def query(self, expression: str, at: float | None = None) -> dict[tuple[tuple[str, str], ...], float]:
        """Values of an instant query by labels."""
        asked = {"query": expression, **({} if at is None else {"time": f"{at:.3f}"})}
        answer = self._get(f"/api/v1/query?{urllib.parse.urlencode(asked)}")
        return {
            tuple(sorted(row["metric"].items())): float(row["value"][1]) for row in answer["data"]["result"]
        }

    def samples(
        self, selector: str, seconds: float, at: float
    ) -> list[tuple[dict[str, str], list[list[float]]]]:
        """Raw samples of the last seconds before ``at``."""
        asked = {"query": f"{selector}[{seconds:.0f}s]", "time": f"{at:.3f}"}
        answer = self._get(f"/api/v1/query?{urllib.parse.urlencode(asked)}")
        return [(row["metric"], row["values"]) for row in answer["data"]["result"]]

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return json.load(answer)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)


def start(
    kind: Kind, folder: Path, targets: Sequence[str] = (), more: Mapping[str, Any] | None = None
) -> Server:
    """Start a server that takes remote writes and scrapes ``targets`` twice a second; ``more`` is configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    scrape = folder / "scrape.yml"
    jobs = [{"job_name": "targets", "static_configs": [{"targets": list(targets)}]}] if targets else []
    often = {"scrape_interval": "500ms", "scrape_timeout": "500ms"}
    if more and kind == "prometheus":
        often["evaluation_interval"] = "1s"
    text = {"global": often, "scrape_configs": jobs, **(more or {})}
    scrape.write_text(json.dumps(text))
    command = {"prometheus": _prometheus, "victoria-metrics": _victoria}[kind](folder, port, scrape)
    with (folder / "log").open("ab") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink, cwd=folder)
    server = Server(kind, f"http://127.0.0.1:{port}", process)
    eventually(lambda: _answers(server), 60)
    return server


@contextmanager
def running(
    kind: Kind, folder: Path, targets: Sequence[str] = (), more: Mapping[str, Any] | None = None
) -> Iterator[Server]:
    server = start(kind, folder, targets, more)
    try:
        yield server
    finally:
        server.stop()


def _prometheus(folder: Path, port: int, scrape: Path) -> list[str]:
    return [
        program("prometheus"), f"--config.file={scrape}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--web.enable-remote-write-receiver",
        "--storage.tsdb.retention.time=10y", "--log.level=warn", "--rules.alert.resend-delay=1s",
    ]  # fmt: skip


def _victoria(folder: Path, port: int, scrape: Path) -> list[str]:
    return [
        program("victoria-metrics"), f"-storageDataPath={folder / 'data'}", f"-httpListenAddr=127.0.0.1:{port}",
        f"-promscrape.config={scrape}", "-retentionPeriod=10y", "-memory.allowedBytes=200MB",
        "-search.latencyOffset=0s", "-loggerLevel=WARN",
    ]  # fmt: skip


def _answers(server: Server) -> bool:
    path = "/-/ready" if server.kind == "prometheus" else "/health"
    assert server.process.poll() is None, f"{server.kind} ended"
    try:
        with urllib.request.urlopen(server.url + path, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
