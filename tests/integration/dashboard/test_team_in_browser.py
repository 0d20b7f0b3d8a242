"""A team chosen on the Fleet page of a real collector: its figures are those of the report by team."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, expect
from starlette.testclient import TestClient
from tests.fixtures.listening import Server
from tests.integration.dashboard.conftest import Seen, looking
from tests.integration.views.site import MIDNIGHT, Site, two_teams

from flopwatch_dashboard import wording
from flopwatch_dashboard.app import mount

WAIT = 60_000
VALUES = "#fleet-tiles .k-v"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with two_teams(tmp_path_factory.mktemp("teams")) as site:
        yield site


@pytest.fixture
def reader(collector: Site, browser: Browser) -> Iterator[Seen]:
    api = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    mount(api, collector.query)
    server = Server(api).start()
    with looking(browser, server.url) as seen:
        yield seen
    server.stop()


def test_a_chosen_team_has_the_figures_of_its_report_and_the_verdict_says_whose_it_is(
    collector: Site, reader: Seen
) -> None:
    report = TestClient(collector.running.app).get("/api/v1/report", params={"from": str(MIDNIGHT)}).json()
    (line,) = (each for each in report["lines"] if each["key"] == "vision")
    page = reader.open("/ui/?range=24h&lang=en", "#fleet-tiles .kpi")
    expect(page.locator("#fleet-team")).to_have_count(0, timeout=WAIT)

    page.click("#scope-b")
    page.select_option("dialog.scope-d select >> nth=1", "vision")
    page.keyboard.press("Enter")

    told = page.locator("#fleet-team")
    expect(told).to_contain_text("owning is decided for a cluster, not for a team", timeout=WAIT)
    expect(told).to_contain_text("16 GPU-h of the range that nobody held", timeout=WAIT)
    given = wording.hours(line["gpu_milliseconds"])
    wasted = wording.number(line["waste_gpu_milliseconds"] / 3_600_000)
    money = wording.money(line["waste_money"], "USD")
    assert (given, wasted, money) == ("16", "16", "$32")
    expect(page.locator(VALUES)).to_have_text([given, "n/a", wasted, money, "1"], timeout=WAIT)
    expect(page.locator("#fleet-fall-head")).to_contain_text(
        "Where the GPU-hours of vision went", timeout=WAIT
    )
    expect(page.locator("#fleet-top tbody tr")).to_have_count(1, timeout=WAIT)

    page.click("#scope .drop")
    expect(page.locator("#fleet-team")).to_have_count(0, timeout=WAIT)
    assert reader.complaints == []
