"""What a reader narrows the pages to: a range of their own, a time zone, a team."""

import dataclasses
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.fixtures import dashboard_cluster as cluster

from flopwatch.query import Range
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import scope_bar
from flopwatch_dashboard.pages.fleet import PAGE
from flopwatch_dashboard.scope import scoped
from flopwatch_dashboard.view import View, from_browser

NOON = 1_796_040_000.0  # 2026-11-30 12:00 UTC


def test_a_range_of_one_s_own_is_asked_with_its_end_and_stays_in_links() -> None:
    view = from_browser(
        {"range": "custom", "from": NOON, "to": NOON + 7_200.5, "zone": "Asia/Shanghai"}, "/ui/"
    )

    assert view.between == (NOON, NOON + 7_200)
    assert view.asked == Range(seconds=7_200, end_seconds=NOON + 7_200, points=1_366)
    assert view.shown_range == "30 Nov 2026 20:00 – 22:00"  # noqa: RUF001 - a range takes an en dash
    query = parse_qs(urlsplit(view.link("jobs")).query)
    assert (query["from"], query["to"]) == (["2026-11-30T12:00Z"], ["2026-11-30T14:00Z"])
    assert query["zone"] == ["Asia/Shanghai"]
    assert view.export("jobs").endswith("seconds=7200&end=1796047200")


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (NOON, NOON),
        (NOON, NOON - 60),
        (NOON, NOON + 400 * 86_400),
        ("noon", NOON),
        (True, NOON),
        (NOON, None),
    ],
)
def test_a_range_that_cannot_be_drawn_is_the_usual_one(begin: object, end: object) -> None:
    view = from_browser({"from": begin, "to": end}, "/ui/")

    assert (view.between, view.range_name) == (None, "24h")


def test_an_unknown_zone_is_the_site_s() -> None:
    assert from_browser({"zone": "Mars/Olympus"}, "/ui/").zone is None
    assert from_browser({"zone": "../../etc/passwd"}, "/ui/").zone is None
    assert from_browser({"zone": "Europe/Berlin"}, "/ui/").zone == "Europe/Berlin"


def test_every_status_has_the_reader_s_zone_and_the_answer_is_else_the_same() -> None:
    query = cluster.ClusterQuery()
    narrowed = scoped(query, "Asia/Kolkata", None)

    assert narrowed.fleet(Range()).status.time_zone == "Asia/Kolkata"
    assert narrowed.economy(Range(), {}).status.time_zone == "Asia/Kolkata"
    found = narrowed.job("train-a-1001", Range())
    assert found is not None
    assert found.status.time_zone == "Asia/Kolkata"
    assert narrowed.job("none", Range()) is None
    assert scoped(query, None, None) is query


def test_a_team_sees_its_jobs_and_alerts_and_the_whole_fleet_s_figures() -> None:
    query = cluster.ClusterQuery()
    query.rows = (dataclasses.replace(query.rows[2], account="nlp"), *query.rows[:2])

    narrowed = scoped(query, None, "nlp")

    assert [row.job_id for row in narrowed.jobs(Range()).rows] == ["train-a-1002"]
    fleet = narrowed.fleet(Range())
    assert [row.job_id for row in fleet.top_jobs] == ["train-a-1002"]
    assert fleet.alerts == ()
    assert fleet.ledger_today == query.fleet(Range()).ledger_today


def test_where_there_is_no_ledger_by_team_the_page_says_whose_figures_it_shows() -> None:
    view = View(team="nlp", lang="en")

    shown = PAGE.render(scoped(cluster.ClusterQuery(), None, "nlp"), view, "")

    assert shown["verdict"][-1].children == (
        "There is no ledger of team nlp here: figures below are of the whole fleet, "
        "only jobs and alerts are the team's."
    )


def test_what_is_narrowed_is_said_and_can_be_taken_back() -> None:
    view = View(
        between=(NOON, NOON + 3_600), range_name="custom", team="nlp", zone="UTC", site_zone="Europe/Berlin"
    )

    told = [chip.children[1].to_plotly_json()["props"]["data-drop"] for chip in scope_bar.bar(view)]

    assert told == ["from,to", "team", "zone"]
    assert scope_bar.bar(View()) == []


def test_the_second_day_of_a_range_is_named() -> None:
    assert wording.span(NOON, NOON + 86_400, "UTC", "en") == "30 Nov 2026 12:00 – 1 Dec 2026 12:00"  # noqa: RUF001
