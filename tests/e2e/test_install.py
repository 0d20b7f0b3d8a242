"""What a node gets: ``pip install .`` alone, in an environment of its own."""

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FOREIGN = """
import json, sys
before = set(sys.modules)
import flopwatch
roots = {name.split(".")[0] for name in set(sys.modules) - before}
print(json.dumps(sorted(roots - sys.stdlib_module_names - {"flopwatch"})))
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment into which the project was installed, without extras."""
    folder = tmp_path_factory.mktemp("node")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    constraints = ROOT / "deploy" / "constraints.txt"
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-c", constraints, ROOT],
        check=True,
        capture_output=True,
        timeout=240,
    )
    return python


def test_the_base_install_brings_two_packages_and_nothing_else(node: Path) -> None:
    listed = subprocess.run(
        [node, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"],
        capture_output=True,
        check=True,
    )

    names = {row["name"].lower().replace("_", "-") for row in json.loads(listed.stdout)}

    expected = {"flopwatch", "nvidia-ml-py", "prometheus-client"} | (
        {"tomli"} if sys.version_info < (3, 11) else set()
    )
    assert names - {"pip", "setuptools", "wheel"} == expected


def test_import_flopwatch_loads_the_standard_library_only(node: Path) -> None:
    loaded = subprocess.run([node, "-I", "-c", FOREIGN], capture_output=True, check=True)

    assert json.loads(loaded.stdout) == []


def test_a_server_command_on_a_node_says_what_to_install(node: Path) -> None:
    asked = subprocess.run(
        [node.parent / "flopwatch", "collector"], capture_output=True, text=True, check=False
    )

    assert asked.returncode == 2
    assert "pip install 'flopwatch[server]'" in asked.stderr


def test_an_unknown_command_is_refused_with_those_that_exist(node: Path) -> None:
    asked = subprocess.run(
        [node.parent / "flopwatch", "colector"], capture_output=True, text=True, check=False
    )

    assert asked.returncode == 2
    assert "no command 'colector'; allowed: up, demo, agent" in asked.stderr
