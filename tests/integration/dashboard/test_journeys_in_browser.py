"""What people come for, from the first page on: one server for all, a browser profile for each."""

import csv
import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser
from tests.integration.dashboard.conftest import Seen, Served, looking, serving

TILES = "#fleet-tiles .kpi"
INK = """() => ({
  ink: getComputedStyle(document.documentElement).getPropertyValue("--text").trim(),
  turned: getComputedStyle(document.querySelector(".js-plotly-plot")).filter,
})"""
FIELDS = "dialog.scope-d input[type=datetime-local]"


@pytest.fixture(scope="module")
def running() -> Iterator[Served]:
    with serving() as served:
        served.query.frame = dataclasses.replace(served.query.frame, teams=("nlp", "research"))
        yield served


@pytest.fixture
def reader(running: Served, browser: Browser) -> Iterator[Seen]:
    with looking(browser, running.url) as seen:
        yield seen


def address_of(page: Any) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(page.url).query).items()}


def test_the_worst_job_and_its_cause_are_found_in_three_clicks(reader: Seen) -> None:
    page = reader.open("/ui/?theme=light&lang=en", TILES)

    worst = page.inner_text("#fleet-top tbody tr:first-child a.name")
    page.click("#fleet-top tbody tr:first-child a.name")
    page.wait_for_selector("#job-tiles .kpi")
    page.wait_for_selector("#job-diagnosis strong")

    assert page.inner_text("h1") == worst == "dlrm-v4/run-2"
    assert "Held idle for 5.2 h" in page.inner_text("#job-diagnosis")
    assert "Allocated idle" in page.inner_text("#job-legend")
    assert reader.complaints == []


def test_whether_owning_pays_and_why_is_one_sentence_and_one_click(reader: Seen) -> None:
    page = reader.open("/ui/?theme=light&lang=en", TILES)

    assert "Below the 70% self-host breakeven" in page.inner_text("#fleet-verdict")
    page.click(".arith summary")
    assert page.is_visible("text=a billable GPU-hour >> nth=0")
    page.click("#fleet-verdict >> text=Own or rent")
    page.wait_for_selector("#be-tiles .kpi")

    assert urlsplit(page.url).path == "/ui/breakeven"
    assert reader.complaints == []


def test_a_curve_is_saved_as_figures_that_say_simulated(reader: Seen) -> None:
    page = reader.open("/ui/jobs/train-a-1001?theme=light&lang=en&zone=Asia/Shanghai", "#job-tiles .kpi")

    with page.expect_download() as download:
        page.click("#job-power-head button.save")
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))

    assert download.value.suggested_filename == "flopwatch-simulated-job-power.csv"
    assert list(rows[0]) == ["simulated", "time (Asia/Shanghai)", "Power of a GPU", "Memory used"]
    assert {row["simulated"] for row in rows} == {"SIMULATED"}
    assert len(rows) == 288
    assert rows[0]["time (Asia/Shanghai)"] == "2026-11-29T23:12:00"
    assert float(rows[0]["Power of a GPU"]) == pytest.approx(640.0, abs=1.0)
    gap = [row for row in rows if row["Power of a GPU"] == ""]
    assert len(gap) == 6


def test_a_shared_address_opens_the_same_view_elsewhere(
    running: Served, reader: Seen, browser: Browser
) -> None:
    page = reader.open("/ui/?theme=dark&lang=zh", TILES)
    page.click("#scope-b")
    page.fill(f"{FIELDS} >> nth=0", "2026-11-30T10:00")
    page.fill(f"{FIELDS} >> nth=1", "2026-11-30T12:30")
    page.select_option("dialog.scope-d select >> nth=1", "research")
    page.keyboard.press("Enter")
    page.wait_for_selector("#scope .chip >> nth=1")
    told, address = page.inner_text("#scope"), page.url.removeprefix(running.url)

    with looking(browser, running.url) as other:
        elsewhere = other.open(address, TILES)
        elsewhere.wait_for_selector("#scope .chip >> nth=1")

        assert elsewhere.inner_text("#scope") == told
        assert "2026年11月30日 10:00" in told
        assert "团队 research" in told
        assert elsewhere.evaluate("document.documentElement.dataset.theme") == "dark"
        assert other.complaints == []
    assert (address_of(page)["from"], address_of(page)["to"]) == ("2026-11-30T10:00Z", "2026-11-30T12:30Z")
    assert reader.complaints == []


def test_what_is_narrowed_is_taken_back_where_it_is_said(reader: Seen) -> None:
    page = reader.open("/ui/?theme=light&lang=en&team=nlp&from=2026-11-30T10:00Z&to=2026-11-30T11:00Z", TILES)
    page.wait_for_selector("#scope .chip >> nth=1")

    page.click("#scope .drop >> nth=0")
    page.wait_for_function("() => document.querySelectorAll('#scope .chip').length === 1")
    page.click("#scope .drop")
    page.wait_for_function("() => document.querySelectorAll('#scope .chip').length === 0")

    assert not {"team", "from", "to"} & set(address_of(page))
    assert page.inner_text(".mantine-SegmentedControl-label[data-active]") == "24h"


def test_times_follow_the_zone_that_the_reader_chose_and_days_stay_the_site_s(reader: Seen) -> None:
    page = reader.open("/ui/?theme=light&lang=en", TILES)
    assert "15:11:56 UTC" in page.inner_text("#live")

    page.goto(f"{reader.base}/ui/?theme=light&lang=en&zone=Asia/Kolkata")
    page.wait_for_selector("#live:has-text('20:41:56 IST')", timeout=60_000)

    assert "last 30 days, UTC" in page.inner_text("#fleet-daily-head")
    page.goto(f"{reader.base}/ui/")
    page.wait_for_selector("#live:has-text('IST')", timeout=60_000)


def test_the_dialog_is_used_by_keyboard_and_says_what_is_wrong(reader: Seen) -> None:
    page = reader.open("/ui/?theme=light&lang=en", TILES)

    page.focus("#scope-b")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog.scope-d[open]")
    page.fill(f"{FIELDS} >> nth=0", "2026-11-30T12:00")
    page.fill(f"{FIELDS} >> nth=1", "2026-11-30T11:00")
    page.keyboard.press("Enter")
    page.wait_for_selector(".scope-d .f-problem:has-text('begin before the end')")
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.querySelector('dialog.scope-d')")

    assert page.evaluate("document.activeElement.id") == "scope-b"
    assert "from" not in address_of(page)


def test_paper_has_the_figures_and_no_controls(reader: Seen) -> None:
    page = reader.open("/ui/jobs/train-a-1001?theme=dark&lang=en", "#job-tiles .kpi")

    page.emulate_media(media="print")
    hidden = page.evaluate(
        "['.nav', '.tools', '.more', '.png'].filter(s => [...document.querySelectorAll(s)].some(e => e.offsetParent))"
    )
    cut = page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(e => e.scrollHeight > e.clientHeight + 2).map(e => e.id)"
    )

    assert hidden == []
    assert cut == []
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate(INK) == {"ink": "#17202b", "turned": "invert(1) hue-rotate(180deg)"}
    assert page.is_visible("#chips >> text=SIMULATED")


def test_escape_leaves_the_wall_screen(reader: Seen) -> None:
    page = reader.open("/ui/?kiosk=1&theme=dark&lang=en", TILES)
    assert not page.is_visible("#scope-b")

    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "kiosk" not in url)
    page.wait_for_selector("#scope-b", state="visible", timeout=60_000)
