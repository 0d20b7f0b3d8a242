"""A site for each test."""

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


@pytest.fixture
def site(open_site: Callable[..., Site]) -> Site:
    return open_site()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two hours of one run on half of the GPUs; only to be read."""
    site = Site(tmp_path_factory.mktemp("trained"))
    for _ in range(8):
        site.train(900.0)
    site.settle()
    yield site
    site.close()
