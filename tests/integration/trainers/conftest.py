"""Real trainers in an interpreter of their own, and the agent's socket for what their callbacks tell."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flopwatch_agent.sdk_messages import SdkMessage, understood
from flopwatch_agent.sdk_socket import SdkSocket

VARIABLE = "FLOPWATCH_TRAINERS_PYTHON"
HOW = f"{VARIABLE} names no interpreter with the training libraries; docs/sdk.md says how to make one"
SCRIPTS = Path(__file__).parent / "scripts"
AGENT = Path(__file__).parents[3] / "agent"
TRAINING_TIMEOUT_SECONDS = 240

Train = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def sdk_socket(tmp_path: Path) -> Iterator[SdkSocket]:
    listening = SdkSocket(tmp_path / "s.sock")
    listening.start()
    yield listening
    listening.stop()


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """Runs a script; skips where the library that it imports first is not there."""
    python = os.environ.get(VARIABLE, "")
    if not python:
        pytest.skip(HOW)

    def run(script: str, *options: str, needs: str) -> "subprocess.CompletedProcess[str]":
        look = subprocess.run([python, "-c", f"import {needs}"], capture_output=True, check=False)
        if look.returncode != 0:
            pytest.skip(f"{needs} does not import in {VARIABLE}")
        settings = {
            "PYTHONPATH": str(AGENT),
            "HF_HUB_OFFLINE": "1",
            "FLOPWATCH_SOCKET": str(tmp_path / "s.sock"),
        }
        return subprocess.run(
            [python, str(SCRIPTS / script), str(tmp_path / "out"), *options],
            env={**os.environ, **settings},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=TRAINING_TIMEOUT_SECONDS,
        )

    return run


def told(listening: SdkSocket) -> list[SdkMessage]:
    """What the agent understands of what arrived."""
    return [understood(datagram.body, "job", "sdk") for datagram in listening.take()]
