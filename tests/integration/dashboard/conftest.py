"""A dashboard that really listens, and a browser that really draws it."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, Page
from tests.fixtures.dashboard_cluster import ClusterQuery
from tests.fixtures.listening import Server

from flopwatch_dashboard.app import mount

DRAWN = """() => {
  const drawn = [...document.querySelectorAll('.js-plotly-plot')];
  const ours = (graph) => graph._fullLayout && graph._fullLayout.font.family.startsWith('Inter');
  return drawn.length === document.querySelectorAll('.dash-graph').length && drawn.every(ours);
}"""


FOLLOWED = """([theme, lang]) => {
  const root = document.documentElement;
  const words = lang === "zh" ? "集群总览" : "Fleet";
  const ink = theme === "dark" ? "#e7ecf3" : "#17202b";
  const graphs = [...document.querySelectorAll(".js-plotly-plot")];
  return root.dataset.theme === theme && document.querySelector("#nav").innerText.includes(words)
    && graphs.every((graph) => graph._fullLayout.font.color === ink);
}"""


@dataclass
class Served:
    """A running dashboard and the cluster behind it."""

    server: Server
    query: ClusterQuery

    @property
    def url(self) -> str:
        return self.server.url


@dataclass
class Seen:
    """A browser page and what it complained about or asked elsewhere."""

    page: Page
    base: str
    complaints: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    refreshes: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on(
            "console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._asked(request.url))

    def _asked(self, url: str) -> None:
        if not url.startswith((self.base, "data:", "blob:")):
            self.outside.append(url)
        if "_dash-update-component" in url:
            self.refreshes.append(url)

    def open(self, path: str, ready: str) -> Page:
        """The page at that address, once ``ready`` is there and every graph has drawn its traces."""
        self.page.goto(self.base + path)
        self.page.wait_for_selector(ready, timeout=60_000)
        self.drawn()
        return self.page

    def switch(self, button: str, theme: str, lang: str) -> None:
        """Press the theme's or the language's button and wait until the whole page has followed."""
        self.page.click(button)
        self.page.wait_for_function(FOLLOWED, arg=[theme, lang], timeout=60_000)

    def drawn(self) -> None:
        """Wait until every graph shows a figure of ours and not the empty one it began with."""
        self.page.wait_for_function(DRAWN, timeout=60_000)


@contextlib.contextmanager
def serving() -> Iterator[Served]:
    """The dashboard over the cluster, beside a route of the interface it is mounted in."""
    query = ClusterQuery()
    api = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @api.get("/api/v1/known")
    async def known() -> dict[str, bool]:
        return {"known": True}

    mount(api, query)
    server = Server(api).start()
    yield Served(server, query)
    server.stop()


@contextlib.contextmanager
def looking(browser: Browser, base: str) -> Iterator[Seen]:
    """A fresh browser profile on a laptop's screen."""
    context = browser.new_context(
        viewport={"width": 1366, "height": 768},
        accept_downloads=True,
        locale="en-US",
        reduced_motion="reduce",
    )
    seen = Seen(context.new_page(), base)
    seen.watch()
    yield seen
    context.close()


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as running:
        yield running


@pytest.fixture
def seen(served: Served, browser: Browser) -> Iterator[Seen]:
    with looking(browser, served.url) as watched:
        yield watched


@pytest.fixture(scope="module")
def fleet_page(browser: Browser) -> Iterator[Page]:
    """The Fleet page, loaded once for tests that only look at it."""
    with serving() as running, looking(browser, running.url) as watched:
        yield watched.open("/ui/?range=7d&theme=light&lang=en", "#fleet-tiles .kpi")
