from urllib.parse import parse_qs, urlsplit

from flopwatch.query import Range
from flopwatch_dashboard.view import View, from_browser


def test_the_browser_state_becomes_a_view() -> None:
    state = {
        "theme": "dark",
        "lang": "zh",
        "range": "7d",
        "cluster": "a",
        "kiosk": True,
        "w": 1920,
        "h": 1080,
    }

    view = from_browser(state, "/ui/")

    assert (view.theme, view.lang, view.range_name, view.cluster, view.kiosk) == (
        "dark",
        "zh",
        "7d",
        "a",
        True,
    )
    assert view.asked == Range(seconds=604_800.0, cluster="a", points=1_920)


def test_whatever_is_not_allowed_falls_back_to_the_default() -> None:
    state = {"theme": "pink", "lang": "fr", "range": "9y", "w": "wide", "h": -1, "kiosk": "1"}

    assert from_browser(state, "/ui/") == View()


def test_readers_with_nearly_the_same_screen_share_an_answer() -> None:
    assert from_browser({"w": 1366, "h": 768}, "/ui/") == from_browser({"w": 1370, "h": 760}, "/ui/")


def test_links_carry_the_settings_and_quote_the_job() -> None:
    view = View(theme="dark", lang="zh", range_name="6h", cluster="a b", kiosk=True)

    parts = urlsplit(view.link("jobs/k8s:x y"))

    assert parts.path == "/ui/jobs/k8s%3Ax%20y"
    assert parse_qs(parts.query) == {
        "range": ["6h"], "theme": ["dark"], "lang": ["zh"], "cluster": ["a b"], "kiosk": ["1"],
    }  # fmt: skip


def test_exports_carry_the_range_and_the_cluster() -> None:
    assert View(range_name="7d").export("jobs") == "/api/v1/export/jobs.csv?seconds=604800"
    assert View(cluster="a").export("days") == "/api/v1/export/days.csv?seconds=86400&cluster=a"


def test_chart_text_grows_with_the_screen_and_keeps_readable() -> None:
    assert View(width=900).font_px == 11.0
    assert View(width=3_840).font_px == 20.0
    assert View(width=1_920, height=1_080, kiosk=True).font_px > View(width=1_920, height=1_080).font_px
