import dataclasses
from pathlib import Path
from typing import Any

import pytest

from flopwatch.query import ClusterInfo

CHECKS = (Path(__file__).parent / "page_checks.js").read_text()
CUT = """
[...document.querySelectorAll('.k-v, .k-t, .k-s span, .summary b, .sum-c, .tbl .name')]
  .filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline')
  .map((e) => e.textContent)
"""


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_fleet_page_fits_a_laptop_without_scrolling(seen: Any, lang: str) -> None:
    page = seen.open(f"/ui/?theme=light&lang={lang}", "#fleet-tiles .kpi")

    assert page.evaluate(CHECKS)["tall"] <= 0
    sizes = page.evaluate(
        "[...document.querySelectorAll('.main section.card, .kpi, .summary')]"
        ".map(e => [e.id || e.className, Math.round(e.getBoundingClientRect().bottom), e.scrollWidth - e.clientWidth])"
    )
    assert len(sizes) == 1 + 5 + 5
    assert [size for size in sizes if size[1] > 768 or size[2] > 0] == []
    cut = page.evaluate(CUT)
    assert cut == []


@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (900, 1200)])
def test_other_screens_have_no_horizontal_overflow(seen: Any, width: int, height: int) -> None:
    seen.page.set_viewport_size({"width": width, "height": height})

    page = seen.open("/ui/?theme=dark&lang=en", "#fleet-tiles .kpi")
    found = page.evaluate(CHECKS)

    assert found["wide"] <= 0
    assert found["cut"] == []
    if width > 1100:
        assert found["tall"] <= 0


def test_a_wall_screen_shows_no_controls_and_everything_in_one_view(seen: Any) -> None:
    seen.page.set_viewport_size({"width": 1920, "height": 1080})

    page = seen.open("/ui/?kiosk=1&theme=dark&lang=en", "#fleet-tiles .kpi")

    assert page.evaluate(CHECKS)["tall"] <= 0
    assert not page.is_visible("#theme-b")
    assert page.is_visible("#pause")


def test_all_eight_classes_are_drawn_and_named(fleet_page: Any) -> None:
    names = fleet_page.evaluate(
        "[...document.querySelectorAll('#fleet-fall-g .ytick text')].map(e => e.textContent)"
    )

    assert names == [
        "Capacity", "Down", "Unallocated", "Allocated idle", "Stalled", "In-job loss", "Productive",
        "Working, unmeasured", "Unknown",
    ]  # fmt: skip


def test_the_page_says_simulated_example_price_and_the_time_of_the_data(fleet_page: Any) -> None:
    assert fleet_page.inner_text("#chips").split("\n") == [
        "train-a · 1,024 GPUs",
        "SIMULATED",
        "example price",
    ]
    assert fleet_page.inner_text("#live") == "Live · 15:11:56 UTC"
    assert fleet_page.title() == "flopwatch · Fleet"


def test_several_clusters_long_words_and_old_data_still_fit_in_the_header(seen: Any, served: Any) -> None:
    clusters = tuple(
        ClusterInfo(name=name, nodes=1_280, gpus=10_240, gpus_reporting=9_984)
        for name in ("train-west-2", "train-b")
    )
    served.query.frame = dataclasses.replace(
        served.query.frame, clusters=clusters, data_time_seconds=served.query.frame.now_seconds - 100_000
    )
    page = seen.open("/ui/?theme=light&lang=en", "#fleet-tiles .kpi")
    page.wait_for_selector("#age:has-text('data is 28 h old')")

    right = page.evaluate(
        "Math.max(...[...document.querySelectorAll('.top *')].map(e => e.getBoundingClientRect().right))"
    )
    shown = page.evaluate(
        "[...document.querySelectorAll('.chip.sim, .chip.example')].map(e => e.scrollWidth - e.clientWidth)"
    )
    page.click("#cluster")
    page.click("text=train-b")
    page.wait_for_function("() => location.search.includes('cluster=train-b')")

    assert right <= 1366
    assert shown == [0, 0]
    assert seen.complaints == []


def test_a_screen_reader_hears_the_figures(fleet_page: Any) -> None:
    assert (
        fleet_page.get_by_role("img", name="Daily billable utilisation, 30 days, 30-day mean 62.5%").count()
        == 1
    )
    assert fleet_page.get_by_role("navigation").count() == 1
    assert fleet_page.get_by_role("heading", level=2).count() == 5
    assert fleet_page.get_by_role("link", name="Jobs", exact=True).count() == 1


def test_a_page_that_waits_for_its_first_answer_shows_where_it_will_stand(seen: Any) -> None:
    def held(route: Any) -> None:
        if holding and '"fleet-sent' in (route.request.post_data or ""):
            waiting.append(route)
        else:
            route.continue_()

    waiting: list[Any] = []
    holding = True
    page = seen.page
    page.route("**/_dash-update-component**", held)
    page.goto(f"{seen.base}/ui/?theme=light&lang=en")
    page.wait_for_selector("#fleet-tiles", state="attached", timeout=60_000)
    bars = """['#fleet-tiles', '#fleet-top', '#fleet-daily-head'].map(
      (place) => getComputedStyle(document.querySelector(place), '::after').content)"""
    assert page.evaluate(bars) == ['""', '""', '""']

    holding = False
    for route in waiting:
        route.continue_()
    page.wait_for_selector("#fleet-top tbody tr", timeout=60_000)
    assert page.evaluate(bars) == ["none", "none", "none"]


def test_the_keyboard_reaches_the_content_and_the_arithmetic(seen: Any) -> None:
    page = seen.open("/ui/?theme=light&lang=en", "#fleet-tiles .kpi")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus(".arith summary")
    page.keyboard.press("Enter")
    assert page.is_visible("text=$2.50 a capacity GPU-hour (example) ÷ 62.5% = $4.00 a billable GPU-hour")


def test_the_arithmetic_of_a_job_is_one_click_away(seen: Any) -> None:
    page = seen.open("/ui/jobs/train-a-1001?theme=light&lang=en", "#job-tiles .kpi")

    assert not page.is_visible("#job-arithmetic-line")
    page.click(".inline summary")

    assert page.inner_text("#job-arithmetic-line") == "4.36e+11 × 1.813e+05 ÷ (256 × 9.894e+14) = 31.20%"  # noqa: RUF001


def test_the_only_button_of_a_graph_saves_it_as_a_picture(fleet_page: Any) -> None:
    assert fleet_page.locator(".modebar-btn").count() == 0
    fleet_page.hover("#fleet-daily-g .nsewdrag")
    with fleet_page.expect_download() as download:
        fleet_page.click(".png[data-graph=fleet-daily-g]")

    assert download.value.suggested_filename == "flopwatch-simulated-fleet-daily.png"
    assert Path(download.value.path()).read_bytes()[:4] == b"\x89PNG"


def test_csv_links_lead_to_the_interface_with_the_range(fleet_page: Any) -> None:
    links = fleet_page.evaluate("[...document.querySelectorAll('a.csv')].map(a => a.getAttribute('href'))")

    assert links == ["/api/v1/export/days.csv?seconds=604800", "/api/v1/export/ledger.csv?seconds=604800"]
