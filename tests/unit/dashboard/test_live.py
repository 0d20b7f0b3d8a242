import inspect
from typing import Any

from dash import Dash
from tests.fixtures import dashboard_cluster as cluster

from flopwatch.query import Fleet, Range
from flopwatch_dashboard import live, memo
from flopwatch_dashboard.app import PAGES, build
from flopwatch_dashboard.client import CollectorUnavailable
from flopwatch_dashboard.pages import fleet, jobs, missing
from flopwatch_dashboard.view import View

VIEW = View()


class Silent(cluster.ClusterQuery):
    """A collector that stops answering."""

    silent = False

    def status(self) -> Any:
        if self.silent:
            raise CollectorUnavailable("http://collector:8095: connection refused")
        return super().status()


def serving(query: cluster.ClusterQuery) -> live.Live:
    return live.Live(query=query, pages=PAGES, missing=missing.PAGE, prefix="/ui/")


def built() -> Dash:
    return build(cluster.ClusterQuery())


def test_no_callback_runs_on_the_event_loop() -> None:
    callbacks = [entry["callback"] for entry in built().callback_map.values() if "callback" in entry]

    # Routing, one refresh for each page and for wrong addresses, the words of a dry run and of the audit.
    assert len(callbacks) == 1 + len(PAGES) + 1 + 2
    assert all(inspect.iscoroutinefunction(callback) for callback in callbacks)


def test_every_refresh_stops_the_clock_while_it_runs() -> None:
    refreshing = [entry for entry in built()._callback_list if "-sent.data" in entry["output"]]

    assert len(refreshing) == len(PAGES) + 1
    for entry in refreshing:
        assert entry["running"] == {
            "running": {"clock.disabled": True},
            "runningOff": {"clock.disabled": False},
        }


def test_the_first_answer_brings_every_part_and_the_second_only_what_changed() -> None:
    serve = serving(cluster.ClusterQuery())

    first, sent = live.answer(serve, fleet.PAGE, "", VIEW, {})
    second, _ = live.answer(serve, fleet.PAGE, "", VIEW, sent)

    assert set(fleet.PAGE.parts) <= set(first)
    assert set(second) == {"facts"}


def test_the_same_question_is_answered_from_the_memo_until_the_generation_rises() -> None:
    query = cluster.ClusterQuery()
    serve = serving(query)

    for _ in range(3):
        live.answer(serve, fleet.PAGE, "", VIEW, {})
    query.advance()
    live.answer(serve, fleet.PAGE, "", VIEW, {})

    assert query.asked == ["fleet", "fleet"]


def test_theme_language_range_and_width_are_part_of_the_question() -> None:
    query = cluster.ClusterQuery()
    serve = serving(query)

    for view in (VIEW, View(theme="dark"), View(lang="zh"), View(range_name="7d"), View(width=1_920)):
        live.answer(serve, fleet.PAGE, "", view, {})

    assert query.asked == ["fleet"] * 5


def test_the_table_sends_only_rows_that_changed() -> None:
    query = cluster.ClusterQuery()
    query.rows = cluster.many_rows(50)
    serve = serving(query)
    first, sent = live.answer(serve, jobs.PAGE, "", VIEW, {})
    query.advance()
    query.rows = (
        cluster.job_row(1, job_id="job-0", name="renamed"),
        *query.rows[2:],
        cluster.job_row(2, job_id="new"),
    )

    second, _ = live.answer(serve, jobs.PAGE, "", VIEW, sent)

    assert len(first["rows"]) == 50
    assert "rows" not in second
    change = second["transaction"]
    assert [row["id"] for row in change["add"]] == ["new"]
    assert [row["id"] for row in change["update"]] == ["job-0"]
    assert [row["id"] for row in change["remove"]] == ["job-1"]


def test_a_browser_whose_rows_are_no_longer_known_gets_all_rows() -> None:
    serve = serving(cluster.ClusterQuery())

    changed, _ = live.answer(serve, jobs.PAGE, "", VIEW, {"rows": "forgotten"})

    assert len(changed["rows"]) == len(cluster.ROWS)
    assert "transaction" not in changed


def test_a_collector_that_does_not_answer_leaves_the_page_and_says_so() -> None:
    query = Silent()
    serve = serving(query)
    _, sent = live.answer(serve, fleet.PAGE, "", VIEW, {})

    query.silent = True
    lost, kept = live.answer(serve, fleet.PAGE, "", VIEW, sent)
    query.silent = False
    back, _ = live.answer(serve, fleet.PAGE, "", VIEW, kept)

    assert set(lost) == {"notice"}
    assert set(back) == {"notice", "facts"}
    assert back["notice"] == []


def test_the_memo_forgets_what_was_not_asked_for_longest() -> None:
    kept: memo.Memo[str] = memo.Memo(2)
    kept.put("a", "1")
    kept.put("b", "2")
    kept.peek("a")
    kept.put("c", "3")

    assert [kept.peek(key) for key in "abc"] == ["1", None, "3"]


def test_addresses_are_decoded() -> None:
    serve = serving(cluster.ClusterQuery())

    page, item = serve.find("/ui/jobs/k8s%3Ax%20y")

    assert (page.name, item) == ("job", "k8s:x y")
    assert serve.find("/ui/nonsense")[0].name == "missing"
    assert serve.find(None)[0].name == "fleet"


def test_a_range_that_is_asked_reaches_the_query() -> None:
    asked: list[Range] = []

    class Asking(cluster.ClusterQuery):
        def fleet(self, asked_now: Range) -> Fleet:
            asked.append(asked_now)
            return super().fleet(asked_now)

    live.answer(serving(Asking()), fleet.PAGE, "", View(range_name="30d", width=1_376), {})

    assert asked == [Range(seconds=2_592_000.0, cluster=None, points=1_376)]
