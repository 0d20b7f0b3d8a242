import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures_nvml import FakeNvml, fake_nvml, fake_nvml_library
from tests.integration.agent.agent_process import Agent, FakeCollector

__all__ = ["fake_nvml", "fake_nvml_library"]


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    made = FakeCollector()
    yield made
    made.stop()


@pytest.fixture
def new_agent(tmp_path: Path, fake_nvml: FakeNvml) -> Iterator[Callable[..., Agent]]:
    """Starts agents with a short interval over the fake NVML; settings by keyword, by their names."""
    agents: list[Agent] = []
    numbers = itertools.count()

    def make(environment: dict[str, str] | None = None, /, **settings: Any) -> Agent:
        folder = tmp_path / f"agent-{next(numbers)}"
        folder.mkdir()
        config, user = settings.pop("config", None), settings.pop("user", None)
        (folder / "none.toml").write_text("" if config is None else config.read_text())
        chosen: dict[str, object] = {
            "host": "127.0.0.1", "port": 0, "interval_seconds": 0.25, "data_dir": folder / "data",
            "sdk_socket": "off", "node": "node-a", **settings,
        }  # fmt: skip
        variables = {f"FLOPWATCH_AGENT_{name.upper()}": str(value) for name, value in chosen.items()}
        if user is not None:
            for path in (folder, folder / "none.toml"):
                os.chown(path, user, user)
        chosen_environment = {**fake_nvml.environment, **variables, **(environment or {})}
        agents.append(Agent(folder, chosen_environment, user=user).start())
        return agents[-1]

    yield make
    for agent in agents:
        agent.stop()


@pytest.fixture
def processes() -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Starts Python code in processes that end with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str, *arguments: str, **options: object) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-c", code, *arguments]
        started.append(subprocess.Popen(command, **{"start_new_session": True, **options}))  # type: ignore[call-overload]
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(5)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
