"""Signing in, silencing an alert, saving costs: a person at a browser before a real collector."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.integration.dashboard.collector_pages import Site, site
from tests.integration.dashboard.conftest import Seen, looking
from tests.integration.dashboard.test_looks_in_browser import DESK, LAPTOP, doubts, faults

WAIT = 60_000
PHONE: Any = {"width": 390, "height": 844}
expect.set_options(timeout=WAIT)


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("collector")) as running:
        yield running


@pytest.fixture(scope="module")
def secrets(collector: Site) -> dict[str, str]:
    return {
        "operator": collector.token("operator", "ada"),
        "viewer": collector.token("viewer", "grace"),
        "of nlp": collector.token("viewer", "alan", ("nlp",)),
    }


@pytest.fixture
def seen(collector: Site, browser: Browser, secrets: dict[str, str]) -> Iterator[Seen]:
    with looking(browser, collector.url) as watched:
        watched.page.set_default_timeout(WAIT)
        yield watched


def enter(seen: Seen, secret: str, path: str) -> Page:
    """Ask for a page, sign in on the way, and arrive there."""
    page = seen.page
    page.goto(seen.base + path)
    page.fill("#token", secret)
    page.click("form button")
    page.wait_for_selector("#person .who")
    return page


def complaints(seen: Seen) -> list[str]:
    """What the console says beside the answers to a wrong token."""
    return [words for words in seen.complaints if "401" not in words]


def test_a_wrong_token_is_said_and_a_right_one_leads_where_one_wanted_to_go(
    seen: Any, secrets: dict[str, str]
) -> None:
    page = seen.page
    page.goto(seen.base + "/ui/alerts?range=6h&theme=dark&lang=zh")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.fill("#token", "fw_wrong")
    page.click("form button")
    expect(page.locator("[role=alert]")).to_have_text("令牌不存在或已被吊销。")

    page.fill("#token", secrets["viewer"])
    page.click("form button")

    expect(page.locator("#person .who-n")).to_have_text("grace")
    assert page.url == f"{seen.base}/ui/alerts?range=6h&theme=dark&lang=zh"
    page.click("#person .leave button")
    expect(page.locator(".told")).to_have_text("You have signed out.")
    page.goto(seen.base + "/ui/alerts")
    assert "/login?next=" in page.url
    assert seen.outside == []
    assert complaints(seen) == []


@pytest.mark.parametrize(
    ("theme", "lang"), [("light", "en"), ("dark", "zh"), ("dark", "en"), ("light", "zh")]
)
def test_the_form_reads_well_and_fits_also_when_it_complains_and_on_a_phone(
    seen: Any, theme: str, lang: str
) -> None:
    page = seen.page
    page.goto(f"{seen.base}/login?next=/ui/&theme={theme}&lang={lang}")
    found = {"asked": (faults(page), doubts(page))}
    page.set_viewport_size(DESK)
    found["desk"] = (faults(page), [])
    page.fill("#token", "fw_wrong")
    page.click("form button")
    expect(page.locator("[role=alert]")).to_be_visible()
    page.set_viewport_size(PHONE)
    found["phone, wrong"] = (faults(page), doubts(page))

    assert found == {how: ({}, []) for how in found}
    assert page.evaluate("document.activeElement.id") == "token"
    assert complaints(seen) == []


def test_a_viewer_reads_alerts_and_is_told_why_there_are_no_buttons(
    seen: Any, secrets: dict[str, str]
) -> None:
    page = enter(seen, secrets["viewer"], "/ui/alerts?theme=light&lang=en")

    expect(page.locator(".al-table tbody tr")).to_have_count(4)
    expect(page.locator("#alerts-why")).to_contain_text("Changes need the role operator")
    expect(page.locator("[data-deed]")).to_have_count(0)
    expect(page.get_by_text("New silence")).to_have_count(0)


def test_somebody_of_a_team_sees_no_alert_of_another_team_s_job(seen: Any, secrets: dict[str, str]) -> None:
    page = enter(seen, secrets["of nlp"], "/ui/alerts?theme=light&lang=en")

    expect(page.locator(".al-table tbody tr")).to_have_count(3)
    expect(page.locator(".al-table")).to_contain_text("llama-70b")
    expect(page.locator(".al-table")).not_to_contain_text("vit-g")


def test_an_operator_silences_an_alert_takes_another_and_ends_the_silence(
    seen: Any, secrets: dict[str, str], collector: Site
) -> None:
    page = enter(seen, secrets["operator"], "/ui/alerts?theme=light&lang=en")
    row = page.locator(".al-table tbody tr", has_text="gpu-n07")
    row.locator("[data-deed=silence]").click()
    form = page.locator("form.al-form")
    expect(form.locator("textarea")).to_have_value("alertname=NodeDown\ncluster=train-a\nnode=gpu-n07")
    form.locator("select").select_option("4")
    form.locator("[name=comment]").fill("being repaired")
    form.locator("button[type=submit]").click()

    expect(row).to_contain_text("silenced")
    expect(page.locator("#alerts-silences")).to_contain_text("ada: being repaired")
    kept = list(collector.running.periodic.engine.desk.words().silences.values())
    assert [(one.created_by, str(one.matchers[2])) for one in kept] == [("ada", "node=gpu-n07")]
    assert round((kept[0].end_seconds - kept[0].start_seconds) / 3_600, 2) == 4.0

    other = page.locator(".al-table tbody tr", has_text="gpu-n11")
    other.locator("[data-deed=take]").click()
    page.locator("form.al-form [name=comment]").fill("I look at it")
    page.locator("form.al-form button[type=submit]").click()
    expect(other).to_contain_text("taken by ada")

    page.get_by_role("button", name="End now").click()
    expect(page.locator("#alerts-silences")).to_contain_text("Nothing is silenced.")
    expect(row).not_to_contain_text("silenced")
    assert complaints(seen) == []


def test_alerts_are_filtered_searched_and_grouped_and_the_address_says_so(
    seen: Any, secrets: dict[str, str]
) -> None:
    page = enter(seen, secrets["viewer"], "/ui/alerts?theme=light&lang=en")
    rows = page.locator(".al-table tbody tr")
    page.locator(".pill", has_text="info").click()
    expect(rows).to_have_count(2)
    page.locator(".pill", has_text="by job").click()
    expect(page.locator(".al-group")).to_have_count(2)
    page.locator("[name='alerts.find']").fill("vit")
    page.keyboard.press("Tab")

    expect(page.locator(".al-group")).to_have_count(1)
    kept = page.url
    page.goto(seen.base + "/ui/")
    page.goto(kept)
    expect(page.locator(".al-group")).to_have_text("vit-g1")
    expect(page.locator("#alerts-active-head")).to_contain_text("1 of 4")


def test_an_operator_saves_costs_for_everyone_and_goes_back_to_the_settings(
    seen: Any, secrets: dict[str, str], collector: Site
) -> None:
    page = enter(seen, secrets["operator"], "/ui/breakeven?theme=light&lang=en&own.capex_per_gpu=35000")
    page.get_by_role("link", name="Save for everyone").click()
    form = page.locator("form.al-form")
    expect(form).to_contain_text("40000 → 35000")
    form.locator("[name=comment]").fill("new quotation")
    form.locator("button[type=submit]").click()

    expect(page.locator("#be-saving")).to_contain_text("Costs saved by ada")
    expect(page.locator("[name='own.capex_per_gpu']")).to_have_value("35000")
    costs = collector.running.costs
    own = costs.current().own
    assert own is not None
    assert (own.capex_per_gpu, costs.versions()[0].comment) == (35_000, "new quotation")

    page.get_by_role("button", name="Use the settings file's again").click()
    expect(page.locator("[name='own.capex_per_gpu']")).to_have_value("40000")
    assert [one.by for one in costs.versions()] == ["ada", "ada"]
    assert complaints(seen) == []


def test_a_session_that_has_ended_leads_to_the_form_and_back_to_the_same_view(
    seen: Any, secrets: dict[str, str]
) -> None:
    page = enter(seen, secrets["viewer"], "/ui/alerts?range=6h&theme=light&lang=en")
    expect(page.locator(".al-table tbody tr")).to_have_count(4)
    cookies = {one["name"]: one["value"] for one in page.context.cookies()}
    page.evaluate("fetch('/logout', {method: 'POST'})")

    page.wait_for_url("**/login?next=*")
    page.fill("#token", secrets["viewer"])
    page.click("form button")

    expect(page.locator(".al-table tbody tr")).to_have_count(4)
    assert "range=6h" in page.url
    assert cookies["flopwatch_session"] not in {one["value"] for one in page.context.cookies()}


def test_an_operator_reads_who_changed_what_and_narrows_it_by_who_and_what(
    seen: Any, secrets: dict[str, str], collector: Site
) -> None:
    page = enter(seen, secrets["operator"], "/ui/alerts?theme=light&lang=en")
    page.get_by_role("link", name="Who changed what").click()
    rows = page.locator("#audit-lines tbody tr")

    expect(rows.filter(has_text="ada").filter(has_text="signed in").first).to_be_visible()
    page.locator("[name='audit.what']").fill("nothing like it")
    page.keyboard.press("Tab")
    expect(page.locator("#audit-lines")).to_contain_text("Nothing of this kind")
    assert "audit.what=nothing" in page.url
    page.goto(f"{seen.base}/ui/audit?lang=zh&audit.by=ada&audit.what=signed")
    expect(rows.first).to_contain_text("登录")
    expect(rows.filter(has_not_text="ada")).to_have_count(0)
    assert complaints(seen) == []


def test_the_book_of_changes_reads_well_and_fits_in_every_theme_language_and_size(
    seen: Any, secrets: dict[str, str]
) -> None:
    page = enter(seen, secrets["operator"], "/ui/audit?theme=light&lang=en")
    shown = page.locator("#audit-lines tbody tr").first
    expect(shown).to_be_visible()
    found = {}
    for button, theme, lang, what in (
        (None, "light", "en", "signed in"),
        ("#theme-b", "dark", "en", "signed in"),
        ("#lang-b", "dark", "zh", "登录"),
        ("#theme-b", "light", "zh", "登录"),
    ):
        if button is not None:
            seen.switch(button, theme, lang)
        expect(shown).to_contain_text(what)
        for size in (LAPTOP, DESK):
            page.set_viewport_size(size)
            found[f"{theme} {lang} {size['width']}"] = (faults(page), doubts(page) if size is LAPTOP else [])
    page.set_viewport_size(PHONE)
    found["phone"] = (faults(page), [])

    assert found == {how: ({}, []) for how in found}
    assert seen.outside == []
    assert complaints(seen) == []


def test_a_viewer_is_told_why_there_is_no_book_of_changes(seen: Any, secrets: dict[str, str]) -> None:
    page = enter(seen, secrets["viewer"], "/ui/audit?theme=light&lang=en")

    expect(page.locator("#audit-why")).to_contain_text("Changes need the role operator")
    expect(page.locator("#audit-lines")).to_be_empty()
    assert complaints(seen) == []
