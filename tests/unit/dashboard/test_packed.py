import msgspec
from tests.fixtures import dashboard_cluster as cluster

from flopwatch_dashboard import live, packed
from flopwatch_dashboard.app import PAGES
from flopwatch_dashboard.pages import jobs, missing
from flopwatch_dashboard.view import View


def test_columns_say_what_is_the_same_in_all_rows_once_and_texts_by_their_pieces() -> None:
    found = packed.packed(
        [
            {"id": "a", "kind": "pretrain", "mfu": 0.5, "basis": "shape · causal"},
            {"id": "b", "kind": "pretrain", "mfu": None, "basis": "shape"},
            {"id": "c", "kind": "pretrain", "mfu": 0.25, "basis": "shape · causal"},
            {"id": "d", "kind": "pretrain", "mfu": 0.25, "basis": None},
            {"id": "e", "kind": "pretrain", "mfu": 0.25, "basis": None},
            {"id": "f", "kind": "pretrain", "mfu": 0.25, "basis": "causal"},
        ]
    )

    assert found == {
        "count": 6,
        "columns": {
            "id": ["a", "b", "c", "d", "e", "f"],
            "kind": {"one": "pretrain"},
            "mfu": [0.5, None, 0.25, 0.25, 0.25, 0.25],
            "basis": {"words": ["shape", "causal", None], "at": [[0, 1], 0, [0, 1], 2, 2, 1]},
        },
    }


def test_what_a_row_lacks_is_none_and_a_number_is_no_flag() -> None:
    found = packed.packed([{"id": "a", "short": True}, {"id": "b", "seen": 5.0, "short": 1}])

    assert found["columns"] == {"id": ["a", "b"], "short": [True, 1], "seen": [None, 5.0]}


def test_no_rows_are_no_columns() -> None:
    assert packed.packed([]) == {"count": 0, "columns": {}}


def test_a_page_without_a_table_is_sent_as_it_is() -> None:
    page = missing.PAGE

    assert live.as_sent(page, {"facts": 1}) == {"facts": 1}


def test_two_thousand_jobs_are_sent_in_less_than_a_megabyte_and_changes_name_the_rows_that_go() -> None:
    query = cluster.ClusterQuery()
    query.rows = cluster.many_rows(2_000)
    serve = live.Live(query=query, pages=PAGES, missing=missing.PAGE, prefix="/ui/")
    first, sent = live.answer(serve, jobs.PAGE, "", View(), {})
    query.advance()
    query.rows = query.rows[1:]

    second, _ = live.answer(serve, jobs.PAGE, "", View(), sent)

    assert len(msgspec.json.encode(live.as_sent(jobs.PAGE, first)["rows"])) < 500_000
    change = live.as_sent(jobs.PAGE, second)
    assert "transaction" not in change
    assert change["rows"]["remove"] == ["job-0"]
    assert (change["rows"]["add"]["count"], change["rows"]["update"]["count"]) == (0, 0)
