"""An install from a folder of wheels alone: collected once, installed with no index, and the agent starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.processes import Processes, get, until
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "deploy" / "airgapped"


def script(name: str, *arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [SCRIPTS / name, *map(str, arguments)],
        env={**os.environ, "PYTHON": sys.executable, **environment},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder as ``collect.sh`` makes it."""
    folder = tmp_path_factory.mktemp("airgapped")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", folder / "built", ROOT]
    subprocess.run(build, check=True, capture_output=True, timeout=240)
    (wheel,) = (folder / "built").glob("flopwatch-*.whl")
    done = script("collect.sh", wheel, folder / "wheels")
    assert done.returncode == 0, done.stderr
    return folder / "wheels"


def test_an_agent_installed_without_any_index_starts(
    wheels: Path, tmp_path: Path, processes: Processes
) -> None:
    done = script("install.sh", wheels, tmp_path / "opt", PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    port = free_port()

    agent = processes.start(
        "agent",
        str(tmp_path / "opt" / "bin" / "flopwatch"),
        "agent",
        env={"FLOPWATCH_AGENT_PORT": str(port), "FLOPWATCH_AGENT_DATA_DIR": str(tmp_path / "data")},
    )
    status, _ = until(lambda: get(f"http://127.0.0.1:{port}/healthz"), 20, "the agent answers")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("flopwatch ")
    assert len(list(wheels.glob("*.whl"))) == 3
    assert status == 200
    assert agent.stop() == 0


def test_a_folder_that_was_changed_on_the_way_is_refused(wheels: Path, tmp_path: Path) -> None:
    copied = tmp_path / "wheels"
    copied.mkdir()
    for path in wheels.iterdir():
        (copied / path.name).write_bytes(path.read_bytes() + (b"x" if path.suffix == ".whl" else b""))

    done = script("install.sh", copied, tmp_path / "opt")

    assert done.returncode != 0
    assert "FAILED" in done.stdout + done.stderr
    assert not (tmp_path / "opt").exists()
