"""The folder is the marker: unit, integration, e2e or bench by a test's path.

``make test`` runs two workers. What starts agents stays with one of them, because agents see every process of the
machine; what shares a server or a browser stays with the other; unit tests go to whichever is free.
"""

from pathlib import Path

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
WITH_AGENTS = {("e2e",), ("integration", "agent"), ("integration", "prometheus"), ("integration", "trainers")}
"""Folders whose tests start agents, or jobs that agents would find."""


# First: xdist reads the groups in a hook of the same name.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    workers = config.pluginmanager.hasplugin("xdist")
    for item in items:
        parts = item.path.relative_to(root).parts
        if parts[0] in KINDS:
            item.add_marker(parts[0])
        if workers and parts[0] in ("e2e", "integration"):
            agents = parts[:1] in WITH_AGENTS or parts[:2] in WITH_AGENTS
            item.add_marker(pytest.mark.xdist_group("agents" if agents else "servers"))
