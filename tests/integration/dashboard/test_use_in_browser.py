import dataclasses
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.fixtures.dashboard_cluster import many_rows

TILES = "#fleet-tiles .kpi"
ROWS = ".ag-center-cols-container .ag-row"
WATCH = """() => {
  const graphs = [...document.querySelectorAll('.js-plotly-plot')];
  const first = graphs.map((g) => g);
  window.watched = { frames: 0, blank: 0, titles: new Set() };
  const look = () => {
    window.watched.frames += 1;
    window.watched.titles.add(document.title);
    const now = [...document.querySelectorAll('.js-plotly-plot')];
    const fine = (g, i) => g === first[i] && g.offsetParent !== null
      && g.querySelectorAll('.trace, .point').length > 0;
    if (now.length !== first.length || !now.every(fine)) { window.watched.blank += 1; }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


def query_of(page: Any) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(page.url).query).items()}


def hurry(page: Any, milliseconds: int = 400) -> None:
    """Let the page's clock tick faster than it does for readers."""
    page.evaluate(f"window.dash_clientside.set_props('clock', {{interval: {milliseconds}}})")


def test_no_frame_is_blank_over_three_ticks_of_new_data(seen: Any, served: Any) -> None:
    page = seen.open("/ui/?theme=light&lang=en", TILES)
    page.evaluate(WATCH)
    before = len(seen.refreshes)

    hurry(page)
    for _ in range(3):
        served.query.advance()
        with page.expect_response(lambda response: "_dash-update-component" in response.url):
            pass
    page.wait_for_timeout(300)
    watched = page.evaluate("({...window.watched, titles: [...window.watched.titles]})")

    assert len(seen.refreshes) - before >= 3
    assert watched["frames"] > 10
    assert watched["blank"] == 0
    assert watched["titles"] == ["flopwatch · Fleet"]
    assert page.inner_text("#live") != "Live · 15:11:56 UTC"
    assert seen.complaints == []


def test_a_deep_link_opens_the_job_with_its_range_theme_and_language(seen: Any) -> None:
    page = seen.open("/ui/jobs/train-a-1001?range=6h&theme=dark&lang=zh", "#job-tiles .kpi")

    assert page.inner_text("h1") == "llama-70b-sft/a41"
    assert "256 卡中观测到 200 卡" in page.inner_text("#job-heading")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    assert page.inner_text(".mantine-SegmentedControl-label[data-active]") == "6h"


def test_back_leads_from_the_job_to_the_fleet_without_a_reload(seen: Any) -> None:
    page = seen.open("/ui/?range=6h&theme=light&lang=en", TILES)
    page.evaluate("window.same = true")

    page.click("#fleet-top a.name >> nth=1")
    page.wait_for_selector("#job-tiles .kpi")
    assert urlsplit(page.url).path == "/ui/jobs/train-a-1001"
    assert query_of(page)["range"] == "6h"
    page.go_back()
    page.wait_for_selector(TILES)
    seen.drawn()

    assert urlsplit(page.url).path == "/ui/"
    assert page.evaluate("window.same") is True
    assert seen.complaints == []


def test_theme_and_language_switch_without_a_reload_and_stay_in_the_address(seen: Any) -> None:
    page = seen.open("/ui/?theme=light&lang=en", TILES)
    page.evaluate("window.same = true")

    seen.switch("#lang-b", "light", "zh")
    seen.switch("#theme-b", "dark", "zh")

    assert (query_of(page)["theme"], query_of(page)["lang"]) == ("dark", "zh")
    assert page.inner_text("#chips").split("\n")[1:] == ["模拟数据", "示例价格"]
    assert page.evaluate("window.same") is True
    page.goto(seen.base + "/ui/")
    page.wait_for_selector("text=今日浪费最多的作业")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert seen.complaints == []


def test_another_range_asks_for_it_and_stays_in_the_address(seen: Any) -> None:
    page = seen.open("/ui/?theme=light&lang=en", TILES)

    page.click(".mantine-SegmentedControl-label >> text=7d")
    page.wait_for_selector("text=MFU, 7d")

    assert query_of(page)["range"] == "7d"


def test_a_paused_page_asks_for_nothing(seen: Any) -> None:
    page = seen.open("/ui/?theme=light&lang=en", TILES)
    page.click("#pause")
    page.wait_for_selector("#pause[aria-pressed=true]")
    before = len(seen.refreshes)

    hurry(page, 150)
    page.wait_for_timeout(900)

    assert len(seen.refreshes) == before
    assert "Paused" in page.inner_text("#age")


def test_old_data_say_how_old_they_are(seen: Any, served: Any) -> None:
    served.query.frame = dataclasses.replace(
        served.query.frame, data_time_seconds=served.query.frame.now_seconds - 600
    )

    page = seen.open("/ui/?theme=light&lang=en", TILES)

    page.wait_for_selector("#age:has-text('data is 10 min old')")
    assert "old" in page.get_attribute("#pause", "class").split()


def test_a_table_of_two_thousand_jobs_is_searched_sorted_and_restored_from_the_address(
    seen: Any, served: Any
) -> None:
    served.query.rows = many_rows(2_000)
    page = seen.open("/ui/jobs?theme=light&lang=en", ROWS)
    assert "1,111 running" in page.inner_text("#jobs-head")

    page.fill("#jobs-search", "llama")
    page.wait_for_function("() => !document.querySelector('#jobs-grid').innerText.includes('dlrm')")
    page.click(".ag-header-cell[col-id=gpus] .ag-header-cell-label")
    page.wait_for_function("() => location.search.includes('sort=gpus')")
    address = page.url

    assert query_of(page)["q"] == "llama"
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector(ROWS)
    page.wait_for_function("() => !document.querySelector('#jobs-grid').innerText.includes('dlrm')")
    assert page.input_value("#jobs-search") == "llama"
    assert page.get_attribute(".ag-header-cell[col-id=gpus]", "aria-sort") == "ascending"
    assert seen.complaints == []


def test_the_table_keeps_its_place_and_takes_only_changed_rows(seen: Any, served: Any) -> None:
    served.query.rows = many_rows(2_000)
    page = seen.open("/ui/jobs?theme=light&lang=en&sort=name:asc", ROWS)
    page.evaluate("document.querySelector('.ag-body-viewport').scrollTop = 3400")
    page.wait_for_timeout(300)
    bodies: list[str] = []

    changed = dataclasses.replace(served.query.rows[0], wall_mfu_ratio=0.777)
    served.query.rows = (changed, *served.query.rows[1:])
    served.query.advance()
    hurry(page)
    with page.expect_response(lambda response: "_dash-update-component" in response.url) as response:
        pass
    bodies.append(response.value.text())
    page.wait_for_timeout(300)

    assert len(bodies[0]) < 20_000
    assert '"update":{"count":1,' in re.sub(r"\s", "", bodies[0])
    assert page.evaluate("document.querySelector('.ag-body-viewport').scrollTop") == 3400
    assert seen.complaints == []


def test_a_job_opens_from_the_table_by_mouse_and_by_keyboard(seen: Any) -> None:
    page = seen.open("/ui/jobs?theme=light&lang=en", ROWS)

    page.click(".g-name >> text=llama-70b-sft/a41")
    page.wait_for_selector("#job-tiles .kpi")
    assert page.inner_text("h1") == "llama-70b-sft/a41"
    page.go_back()
    page.wait_for_selector(ROWS)
    page.click(f"{ROWS} >> nth=0 >> css=[col-id=gpus]")
    page.keyboard.press("Enter")
    page.wait_for_selector("#job-tiles .kpi")

    assert page.inner_text("h1") == "dlrm-v4/run-2"
    assert seen.complaints == []


def test_a_job_that_is_not_there_says_so(seen: Any) -> None:
    page = seen.page
    page.goto(seen.base + "/ui/jobs/none?theme=light&lang=en")
    page.wait_for_selector("#job-gone .empty-t", timeout=20_000)

    assert "There is no job none." in page.inner_text("#job-gone")
    assert not page.is_visible("#job-body")


def test_a_server_that_is_gone_is_seen_on_the_page(seen: Any, served: Any) -> None:
    page = seen.open("/ui/?theme=light&lang=en", TILES)

    served.server.stop()
    page.evaluate("(now => { Date.now = () => now() + 60_000; })(Date.now.bind(Date))")
    page.wait_for_selector("#pause.lost", timeout=20_000)

    assert page.locator(TILES).count() == 5
