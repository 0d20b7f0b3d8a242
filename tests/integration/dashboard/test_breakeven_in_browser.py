import dataclasses
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import tomllib

CHECKS = (Path(__file__).parent / "page_checks.js").read_text()
TILES = "#be-tiles .kpi"
CLIPPED = """
[...document.querySelectorAll('.k-v, .k-t, .k-s span, .summary b, .f-n, .f-r, .tbl td, .tbl th, .gate-x, .decision')]
  .filter((e) => e.offsetParent && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline')
  .map((e) => e.textContent)
"""
OVERLAPPING = """() => {
  const boxes = [...document.querySelectorAll('.main section.card, .main .summary, .main .kpi')]
    .filter((e) => e.offsetParent).map((e) => [e.className, e.getBoundingClientRect()]);
  const hit = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  const others = (a, i) => boxes.slice(i + 1).filter(([, b]) => hit(a, b));
  return boxes.flatMap(([name, a], i) => others(a, i).map(([other]) => [name, other]));
}"""
TOUCHING = """() => [...document.querySelectorAll('.js-plotly-plot')].flatMap((plot) => {
  const texts = [...plot.querySelectorAll('.annotation-text, .xtick text, .ytick text')]
    .filter((e) => e.textContent.trim()).map((e) => [e.textContent, e.getBoundingClientRect()]);
  const hit = (a, b) => a.left < b.right - 2 && b.left < a.right - 2 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
  return texts.flatMap(([one, a], i) => texts.slice(i + 1).filter(([, b]) => hit(a, b)).map(([two]) => [one, two]));
})"""


def query_of(page: Any) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(page.url).query).items()}


def type_in(page: Any, name: str, value: str) -> None:
    page.fill(f"input[name='{name}']", value)
    page.press(f"input[name='{name}']", "Enter")


def shown(page: Any, text: str, where: str = "#be-tiles") -> None:
    page.wait_for_selector(f"{where}:has-text('{text}')", timeout=10_000)


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (1920, 1080)])
def test_the_page_is_quiet_stays_on_its_host_reads_well_and_fits_also_a_phone(
    seen: Any, width: int, height: int
) -> None:
    seen.page.set_viewport_size({"width": width, "height": height})
    page = seen.open("/ui/breakeven?theme=light&lang=en", TILES)
    found = {"light en": page.evaluate(CHECKS)}
    faults = {"en": (page.evaluate(CLIPPED), page.evaluate(OVERLAPPING), page.evaluate(TOUCHING))}
    seen.switch("#theme-b", "dark", "en")
    found["dark en"] = page.evaluate(CHECKS)
    seen.switch("#lang-b", "dark", "zh")
    found["dark zh"] = page.evaluate(CHECKS)
    faults["zh"] = (page.evaluate(CLIPPED), page.evaluate(OVERLAPPING), page.evaluate(TOUCHING))
    seen.switch("#theme-b", "light", "zh")
    found["light zh"] = page.evaluate(CHECKS)

    assert seen.complaints == []
    assert seen.outside == []
    for fault in ("low", "cut"):
        assert {how: one[fault] for how, one in found.items() if one[fault]} == {}
    assert faults == {"en": ([], [], []), "zh": ([], [], [])}
    assert [one["unlabelled"] for one in found.values()] == [0, 0, 0, 0]
    assert max(one["wide"] for one in found.values()) <= 0
    assert page.inner_text("#nav .on") == "自建与租用"
    assert page.inner_text(".chip.sim") == "模拟数据"
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(400)
    assert page.evaluate(
        "[...document.querySelectorAll('.be-grid')].map((e) => e.scrollWidth - e.clientWidth)"
    ) == [0]


def test_see_whether_owning_pays_and_why(seen: Any, served: Any) -> None:
    page = seen.open("/ui/?theme=light&lang=en", "#fleet-tiles .kpi")
    page.click("#nav a:has-text('Breakeven')")
    page.wait_for_selector(TILES)
    seen.drawn()
    group = served.query.economy(None, {}).groups[0]

    assert (
        page.inner_text("#be-verdict b >> nth=0") == "Renting is cheaper: utilisation is below the 65.4% line"
    )
    page.click(".arith summary")
    steps = page.inner_text(".arith ul")
    assert (
        "= $1.8729 ÷ (0.9897 \u00d7 1.000 \u00d7 $3.0000 \u2212 $0.1040)" + f" = {group.u_star:.2%}" in steps
    )
    assert f"Keep or retire: F' = ${16_065 / 8_760 + 0.039 - 9_000 / 8_760:.4f}" in steps
    texts = page.inner_text("#be-tiles")
    assert f"{group.u_star * 100:.1f}" in texts
    assert f"${group.own_per_used_hour:.2f}" in texts
    marked = page.inner_text("#be-table .cell.used")
    assert marked == f"{group.u_star * 100:.1f}%"
    assert seen.complaints == []


def test_a_typed_cost_changes_the_page_stays_in_the_address_and_opens_the_same_elsewhere(
    seen: Any, served: Any
) -> None:
    page = seen.open("/ui/breakeven?theme=light&lang=en", TILES)
    wanted = served.query.economy(None, {"own.life_years": 5.0}).groups[0].u_star

    type_in(page, "own.life_years", "5")
    shown(page, f"{wanted * 100:.1f}")

    assert query_of(page)["own.life_years"] == "5"
    assert "changed here: 1" in page.inner_text("#be-changes")
    again = seen.open(page.url.removeprefix(seen.base), TILES)
    assert f"{wanted * 100:.1f}" in again.inner_text("#be-tiles")
    assert again.input_value("input[name='own.life_years']") == "5"
    again.click("text=Back to the saved costs")
    shown(again, "65.4")
    assert "own.life_years" not in query_of(again)
    assert again.input_value("input[name='own.life_years']") == "4"
    assert seen.complaints == []


def test_a_wrong_cost_is_named_an_emptied_box_shows_the_saved_value_and_keys_are_enough(
    seen: Any, served: Any
) -> None:
    page = seen.open("/ui/breakeven?theme=light&lang=en", TILES)

    type_in(page, "own.life_years", "four")
    shown(page, 'own.life_years is "four"; allowed: a number such as 3', "#be-changes")
    assert page.evaluate("document.querySelector('.field.bad input').name") == "own.life_years"
    type_in(page, "own.life_years", "0")
    shown(page, "own.life_years is 0.0; allowed: above 0, at most 100", "#be-changes")
    type_in(page, "own.life_years", "")
    page.wait_for_function("() => !location.search.includes('life_years')")

    assert page.input_value("input[name='own.life_years']") == "4"
    page.wait_for_function("() => !document.querySelector('#be-changes').textContent")
    page.focus("input[name='own.cost_of_capital']")
    page.keyboard.press("Control+a")
    page.keyboard.type("8%")
    page.keyboard.press("Tab")
    shown(page, f"{served.query.economy(None, {'own.cost_of_capital': 0.08}).groups[0].u_star * 100:.1f}")
    assert query_of(page)["own.cost_of_capital"] == "8%"
    assert seen.complaints == []


def test_what_is_being_typed_outlives_a_refresh(seen: Any, served: Any) -> None:
    page = seen.open("/ui/breakeven?theme=light&lang=en", TILES)
    page.evaluate("window.dash_clientside.set_props('clock', {interval: 300})")

    page.fill("input[name='own.staff_fte']", "9")
    for _ in range(2):
        served.query.advance()
        with page.expect_response(lambda response: "_dash-update-component" in response.url):
            pass
    page.wait_for_timeout(200)

    assert page.input_value("input[name='own.staff_fte']") == "9"
    assert page.evaluate("document.activeElement.name") == "own.staff_fte"


def test_the_costs_and_the_figures_can_be_taken_along(seen: Any) -> None:
    page = seen.open("/ui/breakeven?theme=light&lang=en&own.life_years=5", TILES)

    with page.expect_download() as figures:
        page.click("#be-verdict a:has-text('CSV')")
    page.click(".f-save summary")
    with page.expect_download() as file:
        page.click("a:has-text('Cost file')")

    assert figures.value.suggested_filename == "simulated-breakeven.csv"
    assert Path(figures.value.path()).read_text().startswith("simulated,group,part,name,at,value,note")
    assert file.value.suggested_filename == "simulated-costs.toml"
    assert tomllib.loads(Path(file.value.path()).read_text())["costs"]["own"]["life_years"] == 5
    assert query_of(page)["own.life_years"] == "5"


def test_without_costs_the_page_says_what_to_do(seen: Any, served: Any) -> None:
    served.query.costs = None
    served.query.frame = dataclasses.replace(served.query.frame, generation=99)

    seen.page.goto(seen.base + "/ui/breakeven?theme=light&lang=en")
    seen.page.wait_for_selector(".be-unset")

    assert "capex_per_gpu = 40000" in seen.page.inner_text(".be-unset")
    assert not seen.page.is_visible("#be-body")
    assert seen.complaints == []
