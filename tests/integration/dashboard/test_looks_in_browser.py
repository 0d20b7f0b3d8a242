"""Every page as people see it: both themes, both languages, a laptop's and a desk's screen, one server for all."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from tests.integration.dashboard.conftest import Seen, looking, serving

HERE = Path(__file__).parent
CHECKS = (HERE / "page_checks.js").read_text()
GEOMETRY = (HERE / "geometry.js").read_text()
PICTURES = (HERE / "pictures.js").read_text()
AXE = (HERE.parents[1] / "fixtures" / "axe.min.js").read_text()
BASELINES = HERE / "baselines"
ROWS = "#jobs-grid .ag-row"
SORTED = "#jobs-grid:has(.ag-header-cell[aria-sort=descending]) .ag-center-cols-container .ag-row"
PAGES = {
    "fleet": ("/ui/", "#fleet-tiles .kpi"),
    "jobs": ("/ui/jobs", SORTED),
    "job": ("/ui/jobs/train-a-1001", "#job-tiles .kpi"),
    "nodes": ("/ui/nodes", "#nodes-grid .ag-row"),
    "node": ("/ui/nodes/r00-n09", "#node-gpus tbody tr"),
    "gpu": ("/ui/gpus/GPU-00000009-2", "#gpu-details .fact"),
    "breakeven": ("/ui/breakeven", "#be-tiles .kpi"),
    "alerts": ("/ui/alerts", "#alerts-active .tbl"),
    "missing": ("/ui/nonsense", "#missing-text .empty-t"),
}
DRAWN_FOR = """(wide) => {
  const graphs = [...document.querySelectorAll(".js-plotly-plot")];
  return graphs.every((graph) => graph._fullLayout && (graph._fullLayout.font.size > 13) === wide);
}"""
WAITING = ".c-h:empty, .scroll:empty, .kpis:empty, .summary:empty"
"""Places that the first answer fills: each is drawn as a bar until then."""
ONE_SCREEN = ".page-fleet, .page-jobs, .page-nodes"
"""Pages that are read without scrolling."""
ROWS_OF_HEADER = """() => {
  const controls = [...document.querySelectorAll(".top :is(.logo, button, .nav-i)")].filter((e) => e.offsetParent);
  const middles = controls.map((e) => { const box = e.getBoundingClientRect(); return (box.top + box.bottom) / 2; });
  return middles.sort((a, b) => a - b).filter((y, i) => i === 0 || y - middles[i - 1] > 12).length;
}"""
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    "rules": {"color-contrast": {"enabled": False}},
}
"""Contrast is checked on every text by ``page_checks.js``, which also reads the words of charts."""
LAPTOP, DESK = {"width": 1366, "height": 768}, {"width": 1920, "height": 1080}


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with serving() as running:
        yield running.url


@pytest.fixture
def watched(base: str, browser: Browser) -> Iterator[Seen]:
    with looking(browser, base) as seen:
        yield seen


def faults(page: Page) -> dict[str, Any]:
    """What is wrong with the page as it stands on a desk or a laptop; empty where nothing is."""
    checked, laid = page.evaluate(CHECKS), page.evaluate(GEOMETRY)
    found = {name: checked[name] for name in ("low", "cut", "unlabelled") if checked[name]}
    if checked["wide"] > 0:
        found["wider than the screen by"] = checked["wide"]
    if page.locator(WAITING).count():
        found["still waiting"] = page.locator(WAITING).count()
    if checked["tall"] > 0 and page.locator(ONE_SCREEN).count():
        found["higher than the screen by"] = checked["tall"]
    return found | {name: words for name, words in laid.items() if words}


def resize(page: Page, size: Any) -> None:
    page.set_viewport_size(size)
    page.wait_for_function(DRAWN_FOR, arg=size["width"] > 1400, timeout=60_000)


def doubts(page: Page) -> list[str]:
    """What axe-core finds: rule, and the elements."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    found = page.evaluate("(rules) => axe.run(document, rules).then((result) => result.violations)", RULES)
    return [f"{one['id']}: {[node['html'][:160] for node in one['nodes']][:4]}" for one in found]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_reads_well_and_fits_in_every_theme_language_and_size(watched: Seen, name: str) -> None:
    path, ready = PAGES[name]
    found = {}

    page = watched.open(f"{path}?theme=light&lang=en", ready)
    found["light en"] = faults(page)
    for_readers = {"light en": doubts(page)}
    watched.switch("#theme-b", "dark", "en")
    found["dark en"] = faults(page)
    watched.switch("#lang-b", "dark", "zh")
    found["dark zh"] = faults(page)
    for_readers["dark zh"] = doubts(page)
    resize(page, DESK)
    found["dark zh desk"] = faults(page)
    watched.switch("#theme-b", "light", "zh")
    found["light zh desk"] = faults(page)
    watched.switch("#lang-b", "light", "en")
    found["light en desk"] = faults(page)
    watched.switch("#theme-b", "dark", "en")
    found["dark en desk"] = faults(page)
    watched.switch("#lang-b", "dark", "zh")
    resize(page, LAPTOP)
    watched.switch("#theme-b", "light", "zh")
    found["light zh"] = faults(page)

    assert {how: what for how, what in found.items() if what} == {}
    assert {how: what for how, what in for_readers.items() if what} == {}
    assert watched.complaints == []
    assert watched.outside == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_readable_on_a_phone(watched: Seen, name: str) -> None:
    path, ready = PAGES[name]
    ready = ROWS if name == "jobs" else ready
    watched.page.set_viewport_size({"width": 390, "height": 844})

    page = watched.open(f"{path}?theme=light&lang=en", ready)
    found, laid = page.evaluate(CHECKS), page.evaluate(GEOMETRY)
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('.main *')].filter(e => e.childElementCount === 0"
        " && e.textContent.trim() && e.offsetParent).map(e => parseFloat(getComputedStyle(e).fontSize)))"
    )

    shown = page.locator(ready).first
    shown.scroll_into_view_if_needed()
    box = shown.bounding_box()
    assert box is not None
    assert box["height"] > 15
    assert page.evaluate(
        "([x, y]) => document.elementFromPoint(x, y).closest('.main') !== null",
        [box["x"] + 20, min(box["y"] + box["height"] / 2, 840)],
    )
    assert page.evaluate(ROWS_OF_HEADER) <= 3
    assert found["wide"] <= 0
    assert found["low"] == []
    assert laid["overlapping"] == []
    assert smallest >= 9.0
    assert watched.complaints == []


def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((BASELINES / "recorded.json").read_text())
    return found


@pytest.mark.parametrize("name", sorted(recorded()["pictures"]))
def test_a_page_looks_as_it_was_recorded(watched: Seen, browser: Browser, name: str) -> None:
    about = recorded()
    if browser.version != about["chromium"]:
        pytest.skip(f"recorded with Chromium {about['chromium']}; here is {browser.version}")
    page_name, theme, lang = name.split("-")
    path, ready = PAGES[page_name]
    page = watched.open(f"{path}?theme={theme}&lang={lang}", ready)
    letters = page.evaluate(f"({PICTURES}).letters()")
    if letters != about["letters"]:
        pytest.skip(f"recorded with other fonts: words measure {letters} here, {about['letters']} there")

    picture = small_picture(page)
    kept = base64.b64encode((BASELINES / f"{name}.png").read_bytes()).decode()
    apart = page.evaluate(f"(two) => ({PICTURES}).apart(two)", [picture, f"data:image/png;base64,{kept}"])

    assert apart["mean"] < 4.0, apart
    assert apart["far"] < 0.03, apart


def small_picture(page: Page) -> str:
    """What the page shows below its header, a third of its size, as a data address."""
    page.evaluate("document.fonts.ready")
    shot = page.locator("#main").screenshot(
        animations="disabled", style=".top{position:static;visibility:hidden}"
    )
    address = "data:image/png;base64," + base64.b64encode(shot).decode()
    small: str = page.evaluate(f"(about) => ({PICTURES}).small(about)", [address, 456])
    return small
