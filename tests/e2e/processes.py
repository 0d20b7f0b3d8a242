"""Real processes for the end-to-end tests: started with their output in a file, ended by their id."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass
class Process:
    """One started process."""

    name: str
    popen: "subprocess.Popen[bytes]"
    log: Path

    def kill(self) -> None:
        self.popen.send_signal(signal.SIGKILL)
        self.popen.wait(10)

    def stop(self, seconds: float = 15.0) -> int:
        """SIGTERM, then SIGKILL when it does not go in time; the exit status."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
            try:
                self.popen.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
        return self.popen.returncode

    def output(self) -> str:
        return self.log.read_text(errors="replace")


@dataclass
class Processes:
    """All processes of one test; ``stop_all`` ends what is left."""

    folder: Path
    started: list[Process] = field(default_factory=list)

    def start(
        self, name: str, *command: str, env: Mapping[str, str] | None = None, **options: Any
    ) -> Process:
        log = self.folder / f"{name}-{len(self.started)}.log"
        with log.open("wb") as sink:
            popen = subprocess.Popen(
                command,
                stdout=options.get("stdout", sink),
                stderr=sink,
                env={**clean_environment(self.folder), **(env or {})},
                start_new_session=True,
            )
        self.started.append(Process(name=name, popen=popen, log=log))
        return self.started[-1]

    def flopwatch(self, *arguments: str, env: Mapping[str, str] | None = None) -> Process:
        return self.start(arguments[0], sys.executable, "-m", "flopwatch.cli", *arguments, env=env)

    def stop_all(self) -> None:
        for process in reversed(self.started):
            process.stop()


def clean_environment(folder: Path) -> dict[str, str]:
    """This environment without flopwatch's own variables, with a home and a socket of the test's."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("FLOPWATCH_", "SLURM_"))}
    return {
        **kept,
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_RUNTIME_DIR": str(folder),
        # As root all agents would meet at one socket in /run, and take each other's steps.
        "FLOPWATCH_AGENT_SDK_SOCKET": str(folder / "s.sock"),
        "FLOPWATCH_SOCKET": str(folder / "s.sock"),
    }


def get_json(url: str) -> Any:
    return json.loads(get(url)[1])


def get(url: str) -> tuple[int, bytes]:
    """Status and body of a good answer; any other raises ``OSError`` with its status."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        error.close()
        raise OSError(f"{url} answered {error.code}") from None


def until(ask: Callable[[], T], seconds: float, what: str) -> T:
    """The first true answer; errors of a server that is not up yet count as none.

    Raises:
        AssertionError: none came in time.
    """
    deadline = time.monotonic() + seconds
    last: object = None
    while time.monotonic() < deadline:
        try:
            answer = ask()
        except (OSError, urllib.error.URLError) as error:
            last = error
        else:
            if answer:
                return answer
            last = answer
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {seconds:g} s; last answer: {last!r}")
