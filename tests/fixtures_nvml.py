"""The real pynvml over a fake libnvidia-ml.so.1, compiled once a session: ``FakeNvml`` and its fixtures.

Import the fixtures in a ``conftest.py``: ``from tests.fixtures_nvml import fake_nvml, fake_nvml_library``.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "fixtures" / "fake_nvml.c"


@dataclass(frozen=True)
class FakeNvmlLibraries:
    """Folders that hold a ``libnvidia-ml.so.1``: of today's driver, and of one of the R470 era."""

    current: Path
    old_driver: Path


@dataclass
class FakeNvml:
    """A scenario that child processes see through their environment; ``write`` changes it while they run."""

    library: Path
    scenario: Path
    trace: Path

    @property
    def environment(self) -> dict[str, str]:
        """What a child process needs."""
        return {
            "LD_LIBRARY_PATH": str(self.library),
            "FAKE_NVML_SCENARIO": str(self.scenario),
            "FAKE_NVML_TRACE": str(self.trace),
        }

    def write(self, *directives: str) -> None:
        """Replace the scenario; the library sees it within 20 ms."""
        temporary = self.scenario.with_suffix(".tmp")
        temporary.write_text("\n".join(directives) + "\n")
        temporary.replace(self.scenario)

    def calls(self) -> dict[str, int]:
        """Calls by symbol of the processes that ended."""
        counts: dict[str, int] = {}
        for line in self.trace.read_text().splitlines() if self.trace.exists() else ():
            name, count = line.split()
            counts[name] = counts.get(name, 0) + int(count)
        return counts


@pytest.fixture(scope="session")
def fake_nvml_library(tmp_path_factory: pytest.TempPathFactory) -> FakeNvmlLibraries:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler, so the fake NVML library cannot be built")
    folders = []
    for name, extra in (("current", []), ("old", ["-DFAKE_OLD_DRIVER"])):
        folder = tmp_path_factory.mktemp(f"nvml-{name}")
        flags = ["-O1", "-fPIC", "-shared", "-pthread", "-Wl,-soname,libnvidia-ml.so.1", *extra]
        target = str(folder / "libnvidia-ml.so.1")
        subprocess.run([compiler, *flags, "-o", target, str(SOURCE), "-lm"], check=True)
        folders.append(folder)
    return FakeNvmlLibraries(current=folders[0], old_driver=folders[1])


@pytest.fixture
def fake_nvml(fake_nvml_library: FakeNvmlLibraries, tmp_path: Path) -> Iterator[FakeNvml]:
    fake = FakeNvml(fake_nvml_library.current, tmp_path / "scenario.txt", tmp_path / "nvml_trace.txt")
    fake.write(f"gpus {os.environ.get('FAKE_NVML_GPUS', '8')}")
    return fake
