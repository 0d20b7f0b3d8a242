"""What the dashboard itself costs: drawing and sending a page, and what a page left open costs its browser.

Processor time, bytes and heap; where the answers come from is measured in ``test_views`` and beside ingest.
"""

import dataclasses
import gzip
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, CDPSession, Page
from plotly.io.json import to_json_plotly
from tests.fixtures.dashboard_cluster import ClusterQuery, many_rows
from tests.fixtures.listening import Server

from flopwatch.query import Fleet, Job, JobRow, Jobs, Range, Series
from flopwatch_dashboard.app import PAGES, mount
from flopwatch_dashboard.live import Live, answer, as_sent
from flopwatch_dashboard.pages import missing
from flopwatch_dashboard.view import View, from_browser

pytestmark = [pytest.mark.bench, pytest.mark.timeout(600)]
JOBS = 2_000
REFRESHES = 1_000
OPEN_PAGES = 20
TICK_SECONDS = 5.0
ADDRESSES = {
    "fleet": "",
    "jobs": "jobs",
    "job": "jobs/train-a-1001",
    "breakeven": "breakeven",
    "alerts": "alerts",
}
CHANGED_ROWS = 10
"""A tenth of 2,000 jobs have a new MFU in a tick; every tenth row here."""


class Moving(ClusterQuery):
    """The cluster of the tests with 2,000 jobs, whose curves and a tenth of whose jobs change with every tick."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = tuple(_unlike(row, index) for index, row in enumerate(many_rows(JOBS)))

    def fleet(self, asked: Range) -> Fleet:
        found = super().fleet(asked)
        return dataclasses.replace(found, series=self._moved(found.series))

    def job(self, job_id: str, asked: Range) -> Job | None:
        found = super().job(job_id, asked)
        if found is None:
            return None
        return dataclasses.replace(found, series=self._moved(found.series), steps=self._moved(found.steps))

    def jobs(self, asked: Range) -> Jobs:
        found = super().jobs(asked)
        shift = self.frame.generation % 7 / 1_000
        rows = tuple(
            dataclasses.replace(row, kernel_active_ratio=0.5 + shift) if index % CHANGED_ROWS == 0 else row
            for index, row in enumerate(found.rows)
        )
        return dataclasses.replace(found, rows=rows)

    def _moved(self, series: Series) -> Series:
        shift = self.frame.generation % 97
        columns = {name: values[shift:] + values[:shift] for name, values in series.columns.items()}
        return dataclasses.replace(series, columns=columns)


def _unlike(row: JobRow, index: int) -> JobRow:
    """The row with figures that hardly another one has."""
    factor = 1 - index / JOBS / 2

    def less(value: float | None) -> float | None:
        return None if value is None else value * factor

    return dataclasses.replace(
        row,
        mfu=dataclasses.replace(row.mfu, value_ratio=less(row.mfu.value_ratio)),
        wall_mfu_ratio=less(row.wall_mfu_ratio),
        trend=tuple(less(value) for value in row.trend),
        tensor_active_ratio=less(row.tensor_active_ratio),
        start_seconds=row.start_seconds - 61 * index,
        last_step=None if row.last_step is None else row.last_step + 7 * index,
        waste_gpu_milliseconds=round(row.waste_gpu_milliseconds * factor),
        waste_money=less(row.waste_money),
    )


def processor_milliseconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return (time.process_time() - begin) * 1_000


@pytest.mark.parametrize("name", ADDRESSES)
def test_a_refresh_of_a_page_takes_at_most_100_ms(name: str) -> None:
    query = Moving()
    live = Live(query=query, pages=PAGES, missing=missing.PAGE, prefix="/ui/")
    page, item = live.find(f"/ui/{ADDRESSES[name]}")
    view = from_browser({}, "/ui/")
    first, sent = answer(live, page, item, view, {})
    fresh, same, sizes = [], [], []

    for _ in range(15):
        query.advance()
        given = dict(sent)

        def refresh(given: dict[str, str] = given) -> None:
            nonlocal sent
            values, sent = answer(live, page, item, view, given)
            encoded = to_json_plotly(as_sent(page, values)).encode()
            sizes.append((len(encoded), len(gzip.compress(encoded, 1))))

        fresh.append(processor_milliseconds(refresh))
        same.append(processor_milliseconds(lambda: answer(live, page, item, view, sent)))
    begun = time.process_time()
    whole = to_json_plotly(as_sent(page, first)).encode()
    encoding = (time.process_time() - begun) * 1_000

    cost, kept = statistics.median(fresh), statistics.median(same)
    raw, packed = (statistics.median(size) for size in zip(*sizes, strict=True))
    print(
        f"\n{name}: first answer {len(whole) / 1e3:.0f} KB ({len(gzip.compress(whole, 1)) / 1e3:.0f} KB gzip), "
        f"encoded in {encoding:.1f} ms; refresh {cost:.1f} ms, {raw / 1e3:.1f} KB "
        f"({packed / 1e3:.1f} KB gzip); unchanged {kept:.2f} ms"
    )
    assert len(whole) < 1e6
    assert cost < 100.0
    assert kept < 20.0


def test_twenty_open_pages_take_less_than_a_fifth_of_a_core() -> None:
    query = Moving()
    live = Live(query=query, pages=PAGES, missing=missing.PAGE, prefix="/ui/")
    readers = list(itertools.islice(itertools.cycle(ADDRESSES.values()), OPEN_PAGES))
    views = [
        from_browser({"theme": ("light", "dark")[i % 2], "w": 1200 + 64 * i}, "/ui/")
        for i in range(OPEN_PAGES)
    ]
    known: list[dict[str, str]] = [{} for _ in readers]

    def tick() -> None:
        query.advance()
        for number, (path, view) in enumerate(zip(readers, views, strict=True)):
            known[number] = dict(_refreshed(live, path, view, known[number]))

    tick()
    cost = statistics.median(processor_milliseconds(tick) for _ in range(8))

    share = cost / 1_000 / TICK_SECONDS
    print(f"\n{OPEN_PAGES} pages of readers who share nothing: {cost:.0f} ms a tick, {share:.1%} of a core")
    assert share < 0.2


def _refreshed(live: Live, path: str, view: View, sent: dict[str, str]) -> dict[str, str]:
    page, item = live.find(f"/ui/{path}")
    values, known = answer(live, page, item, view, sent)
    to_json_plotly(as_sent(page, values))
    return dict(known)


SHOWN = """() => document.querySelectorAll('#fleet-tiles .kpi').length === 5
  && [...document.querySelectorAll('.js-plotly-plot')].filter((g) => g.data && g.data.length).length === 3"""
TICK = """async (count) => {
  for (let i = 0; i < count; i += 1) {
    const before = window.answers || 0;
    window.dash_clientside.set_props('tick', {data: Math.random()});
    while ((window.answers || 0) === before) { await new Promise((done) => setTimeout(done, 5)); }
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  }
}"""
COUNT = """() => {
  const asked = window.fetch;
  window.fetch = async (...about) => {
    const answer = await asked(...about);
    if (String(about[0]).includes('_dash-update-component')) { window.answers = (window.answers || 0) + 1; }
    return answer;
  };
}"""


def metric(session: CDPSession, name: str) -> float:
    found = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in found if one["name"] == name))


def heap_megabytes(session: CDPSession) -> float:
    session.send("HeapProfiler.collectGarbage")
    return metric(session, "JSHeapUsedSize") / 1e6


@pytest.fixture
def moving() -> Any:
    query = Moving()
    api = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    mount(api, query)
    server = Server(api).start()
    yield server, query
    server.stop()


def test_a_page_left_open_neither_grows_nor_keeps_its_browser_busy(moving: Any, browser: Browser) -> None:
    server, query = moving
    before = query.status

    def status() -> Any:
        query.advance(0.01)
        return before()

    query.status = status
    context = browser.new_context(viewport={"width": 1366, "height": 768}, locale="en-US")
    page = context.new_page()
    page.add_init_script(f"({COUNT})()")
    sizes: list[int] = []
    page.on("response", lambda response: sizes.append(int(response.headers.get("content-length") or 0)))
    began = time.monotonic()
    page.goto(f"{server.url}/ui/?theme=light&lang=en")
    page.wait_for_function(SHOWN, timeout=60_000)
    cold = time.monotonic() - began
    requests, loaded = len(sizes), sum(sizes)
    warm = _reloaded(page)
    session = context.new_cdp_session(page)
    session.send("Performance.enable")
    page.evaluate("window.dash_clientside.set_props('clock', {disabled: true})")
    page.evaluate(TICK, 20)
    heap, busy, nodes = heap_megabytes(session), metric(session, "TaskDuration"), metric(session, "Nodes")

    page.evaluate(TICK, REFRESHES)

    task = (metric(session, "TaskDuration") - busy) / REFRESHES * 1_000
    grown = heap_megabytes(session) - heap
    more = metric(session, "Nodes") - nodes
    print(
        f"\nfleet: cold {cold:.2f} s, {requests} requests, {loaded / 1e6:.2f} MB; warm {warm:.2f} s (wall, shared "
        f"machine); main thread {task:.0f} ms a refresh; heap {heap:.1f} MB, after {REFRESHES} refreshes "
        f"{grown:+.1f} MB, {more:+.0f} nodes"
    )
    context.close()
    assert grown < 12.0
    assert more < 500


def _reloaded(page: Page) -> float:
    began = time.monotonic()
    page.reload()
    page.wait_for_function(SHOWN, timeout=60_000)
    return time.monotonic() - began
