"""What a page is: a skeleton that costs nothing, and a function from an answer to what its parts show."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dash import Dash
from dash.development.base_component import Component

from flopwatch.query import Query
from flopwatch_dashboard.view import View


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One page. To add one, write its file and put it in ``app.PAGES``."""

    name: str
    path: str
    """Below the prefix: ``""``, ``"jobs"``; with ``item`` it is followed by ``/<item>``."""
    skeleton: Callable[[], list[Component]]
    """The empty parts; called at each navigation, so it reads nothing."""
    parts: Mapping[str, tuple[str, str]]
    """Part → component id and property."""
    render: Callable[[Query, View, str], dict[str, Any]]
    """Asks once and gives a value for every part; the last argument is the item of the address."""
    item: bool = False
    under: str | None = None
    """The path of the page that the navigation marks for it; None is its own."""
    icon: str | None = None
    """Pages with an icon stand in the navigation, named by the text ``nav.<name>``."""
    rows: str | None = None
    """The part that is a table's rows, each with an ``id``: later answers send only what changed in it."""
    extend: Callable[[Dash], None] | None = None
    """Registers callbacks of its own that stay in the browser."""


def match(pages: tuple[Page, ...], below_prefix: str) -> tuple[Page, str] | None:
    """The page of an address and the item in it (percent-decoded by the caller), None when there is none."""
    path = below_prefix.strip("/")
    for page in pages:
        if not page.item and page.path == path:
            return page, ""
    for page in pages:
        if page.item and path.startswith(page.path + "/"):
            return page, path[len(page.path) + 1 :]
    return None
