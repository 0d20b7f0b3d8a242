"""Fixtures of the end-to-end tests: processes that are ended, and ``up`` on a fake NVML."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.processes import Processes
from tests.fixtures_nvml import fake_nvml, fake_nvml_library

__all__ = ["fake_nvml", "fake_nvml_library"]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Starts real processes, and ends those that are left."""
    made = Processes(folder=tmp_path)
    yield made
    made.stop_all()
