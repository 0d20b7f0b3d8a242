"""Debian's Prometheus and VictoriaMetrics under the same samples: a process each, watched like the collector."""

import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("prometheus", "victoria-metrics")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rival:
    """A running server that takes remote writes."""

    name: str
    process: "subprocess.Popen[bytes]"
    port: int
    folder: Path

    def stored_bytes(self) -> int:
        """What its data take once it has packed them."""
        if self.name == "prometheus":
            answer = self._post("/api/v1/admin/tsdb/snapshot")
            return _size(self.folder / "data" / "snapshots" / json.loads(answer)["data"]["name"])
        self._post("/internal/force_flush")
        self._post("/internal/force_merge")
        time.sleep(3.0)
        return _size(self.folder / "data" / "data")

    def _post(self, path: str) -> bytes:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method="POST", data=b"")
        with urllib.request.urlopen(request, timeout=60) as answer:
            body: bytes = answer.read()
            return body


def is_there(name: str) -> bool:
    """Whether the program is installed."""
    return shutil.which(name) is not None


@contextlib.contextmanager
def running(name: str, folder: Path) -> Iterator[Rival]:
    """The server, ended at the end."""
    folder.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    (folder / "config.yml").write_text("global: {}\n")
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(_command(name, folder, port), stdout=log, stderr=log, cwd=folder)
    try:
        _wait(name, process, port)
        yield Rival(name=name, process=process, port=port, folder=folder)
    finally:
        process.terminate()
        process.wait(30)


def _command(name: str, folder: Path, port: int) -> list[str]:
    if name == "prometheus":
        return [
            name, f"--config.file={folder / 'config.yml'}", f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}", "--web.enable-remote-write-receiver", "--web.enable-admin-api",
            "--storage.tsdb.retention.time=10y", "--log.level=warn",
        ]  # fmt: skip
    return [
        name, f"-storageDataPath={folder / 'data'}", f"-httpListenAddr=127.0.0.1:{port}", "-retentionPeriod=10y",
        "-loggerLevel=WARN",
    ]  # fmt: skip


def _wait(name: str, process: "subprocess.Popen[bytes]", port: int) -> None:
    path = "/-/ready" if name == "prometheus" else "/health"
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            pass
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{name} did not start")
        time.sleep(0.1)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
