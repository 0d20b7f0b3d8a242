"""The folder is the marker: unit, integration, e2e or bench. Which worker runs a test: ``tests.workers``."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.fixtures_browser import browser, page

__all__ = ["browser", "page"]

# A busy machine must fail no test, and the same commit gives the same examples; ``--hypothesis-profile search`` seeks
# new ones.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("repeatable", derandomize=True, **UNTIMED)
settings.register_profile("search", max_examples=1000, **UNTIMED)
settings.load_profile("repeatable")

KINDS = ("unit", "integration", "e2e", "bench")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    for item in items:
        kind = item.path.relative_to(root).parts[0]
        if kind in KINDS:
            item.add_marker(kind)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Workers take whole rooms; without xdist nobody asks."""
    from tests.workers import ByRoom

    return ByRoom(config, log)
