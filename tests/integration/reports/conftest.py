"""A site with a run on one node and an idle one, for reports."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.views.site import Site


@pytest.fixture
def open_site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    sites: list[Site] = []

    def make(**settings: Any) -> Site:
        sites.append(Site(tmp_path, **settings))
        return sites[-1]

    yield make
    for site in sites:
        site.close()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A run of 105 minutes on half of the GPUs that then hangs for 15, the second node idle; only to be read."""
    site = Site(tmp_path_factory.mktemp("reported"))
    for _ in range(7):
        site.train(900.0)
    site.hang(900.0)
    site.settle()
    yield site
    site.close()
