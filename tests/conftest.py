"""The folder is the marker: unit, integration, e2e or bench by a test's path."""

from pathlib import Path

import pytest
from tests.fixtures_browser import browser, page

__all__ = ["browser", "page"]

KINDS = ("unit", "integration", "e2e", "bench")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent
    for item in items:
        kind = item.path.relative_to(root).parts[0]
        if kind in KINDS:
            item.add_marker(kind)
