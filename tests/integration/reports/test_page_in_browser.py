"""The HTML report in a real browser."""

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page
from tests.integration.views.site import MIDNIGHT, Site

from flopwatch_collector.reports.making import Question
from flopwatch_collector.reports.page import html_of
from flopwatch_collector.reports.wording import Language


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_file_shows_its_charts_and_asks_for_nothing(
    trained: Site, page: Page, tmp_path: Path, language: Language
) -> None:
    report = trained.running.reports.report(Question(start_seconds=MIDNIGHT, end_seconds=trained.now))
    marked = replace(report, status=replace(report.status, simulated=True))
    file = tmp_path / "report.html"
    file.write_bytes(html_of(marked, language))
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())

    assert asked == [file.as_uri()]
    assert said == []
    assert page.locator("section svg").count() >= 3
    assert "SIMULATED" in page.locator(".mark").inner_text()
    assert page.title().startswith("SIMULATED" if language == "en" else "模拟数据")
    assert page.locator("tr.total").inner_text().split("\t")[1] == "15.9"
    for width in (1366, 820, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_prints_on_paper(trained: Site, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_bytes(
        html_of(
            trained.running.reports.report(Question(start_seconds=MIDNIGHT, end_seconds=trained.now)), "en"
        )
    )
    page.goto(file.as_uri())

    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")
