"""A real agent process, and a collector's ingest endpoint that answers as a test wants."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def eventually(read: Callable[[], T], seconds: float = 30.0) -> T:
    """The first true answer; fails when none came in time."""
    end = time.monotonic() + seconds
    while True:
        answer = read()
        if answer:
            return answer
        assert time.monotonic() < end, f"not within {seconds} s: {read}"
        time.sleep(0.05)


@dataclass
class Request:
    headers: Mapping[str, str]
    batch: dict[str, Any]


@dataclass
class FakeCollector:
    """Takes batches on a port of its own; ``answers`` are given first, then 202."""

    requests: list[Request] = field(default_factory=list)
    answers: list[tuple[int, Mapping[str, str], str]] = field(default_factory=list)
    port: int = 0
    keeps_connections: bool = False

    def __post_init__(self) -> None:
        self._server: ThreadingHTTPServer | None = None
        self.start()

    def start(self) -> None:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1" if collector.keeps_connections else "HTTP/1.0"

            def do_POST(self) -> None:
                body = gzip.decompress(self.rfile.read(int(self.headers["Content-Length"])))
                collector.requests.append(Request(dict(self.headers.items()), json.loads(body)))
                status, headers, text = collector.answers.pop(0) if collector.answers else (202, {}, "")
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def batches(self) -> list[dict[str, Any]]:
        """Every batch once, as a collector keeps them."""
        return list({(b["node"], b["spool"], b["sequence"]): b for b in self.received}.values())

    @property
    def received(self) -> list[dict[str, Any]]:
        """Every batch as it came, those that came again included."""
        return [request.batch for request in list(self.requests)]

    def all(self, name: str) -> list[dict[str, Any]]:
        return [item for batch in self.batches for item in batch.get(name, ())]

    def jobs_of(self, pid: int) -> list[dict[str, Any]]:
        """The sightings of the job that a process is at the head of, whatever else runs on the machine."""
        return [
            job for job in self.all("jobs") if job["ref"].startswith("process:") and f":{pid}:" in job["ref"]
        ]

    def steps_of(self, pid: int) -> list[dict[str, Any]]:
        """The steps of that job."""
        return [step for step in self.all("steps") if f":{pid}:" in step["job"]]


@dataclass
class Agent:
    """One agent process; settings are given by environment."""

    folder: Path
    environment: dict[str, str]
    popen: "subprocess.Popen[bytes] | None" = None
    user: int | None = None
    """Whom the process runs as; None: as the test."""

    def start(self) -> "Agent":
        inherited = {
            key: value for key, value in os.environ.items() if not key.startswith(("FLOPWATCH_", "SLURM_"))
        }
        self.log = self.folder / "agent.log"
        with self.log.open("ab") as sink:
            self.popen = subprocess.Popen(
                [*self.command(), "--config", str(self.folder / "none.toml")],
                env={**inherited, **self.environment},
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        return self

    def command(self) -> list[str]:
        """How it is started; as another user once everything is imported, which that user may not be able to read."""
        if self.user is None:
            return [sys.executable, "-m", "flopwatch_agent"]
        code = (
            "import encodings.ascii, encodings.idna, encodings.latin_1, os, sys\n"
            "from flopwatch_agent.__main__ import main, own_version; own_version(); os.setgroups([]); "
            f"os.setgid({self.user}); os.setuid({self.user}); sys.exit(main(sys.argv[1:]))"
        )
        return [sys.executable, "-c", code]

    def stop(self, seconds: float = 10.0) -> int:
        assert self.popen is not None
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
            try:
                self.popen.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
        return self.popen.returncode

    def kill(self) -> None:
        assert self.popen is not None
        self.popen.kill()
        self.popen.wait(5)

    def output(self) -> str:
        return self.log.read_text()

    @property
    def port(self) -> int:
        match = re.findall(r"metrics at [\d.]+:(\d+)", self.output())
        return int(match[-1]) if match else 0

    def metrics(self) -> dict[str, float]:
        """The exposition by series; empty while the agent does not answer."""
        if not self.port:
            return {}
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as response:
                text = response.read().decode()
        except (OSError, urllib.error.URLError):
            return {}
        rows = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in rows}

    def has(self, series: str, value: float | None = None) -> bool:
        found = self.metrics().get(series)
        return found is not None and (value is None or found == value)
