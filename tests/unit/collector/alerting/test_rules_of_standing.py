"""Which nodes may be faulty or silent without an alert, and which may not."""

import pytest
from tests.unit.collector.alerting.facts_of_runs import NOW, job, node, of_job, of_node, row

from flopwatch_collector.alerting.state import advance
from flopwatch_collector.facts import NodeFacts
from flopwatch_collector.watched import NodeHealth, Spending, WatchedRun

LONG_AGO = NOW - 900.0


def both(one: NodeFacts) -> tuple[str, str]:
    """What NodeDown and NoData say."""
    (down,), (quiet,) = of_node("NodeDown", one), of_node("NoData", one)
    return down.condition, quiet.condition


@pytest.mark.parametrize(
    ("facts", "down", "quiet"),
    [
        # drained, its agent alive: the ledger has it FAULT
        ({"standing": "out", "bucket": "FAULT"}, "gone", "gone"),
        # drained, then switched off
        ({"standing": "out", "bucket": "FAULT", "last_seen_seconds": LONG_AGO}, "gone", "gone"),
        # maintenance while a job still holds the silent node: its bucket is unknown
        ({"standing": "out", "bucket": "UNKNOWN", "last_seen_seconds": LONG_AGO}, "gone", "gone"),
        # the window is over, and it is still silent
        ({"standing": None, "bucket": "UNKNOWN", "last_seen_seconds": LONG_AGO}, "missing", "bad"),
        # its scheduler says that it does not answer: with and without a sample of late
        ({"standing": "down", "bucket": "UNKNOWN", "last_seen_seconds": LONG_AGO}, "bad", "bad"),
        ({"standing": "down", "bucket": "STEP"}, "bad", "good"),
        # only an inventory lists it
        ({"reported": False, "bucket": "UNKNOWN", "last_seen_seconds": LONG_AGO}, "good", "gone"),
        ({"reported": False, "standing": "down", "last_seen_seconds": LONG_AGO}, "bad", "gone"),
        ({"reported": False, "standing": "out", "bucket": "FAULT", "last_seen_seconds": 0.0}, "gone", "gone"),
        # a spare may be switched off, but not broken
        ({"standing": "spare", "bucket": "UNKNOWN", "last_seen_seconds": LONG_AGO}, "missing", "gone"),
        ({"standing": "spare", "bucket": "FAULT"}, "bad", "gone"),
        # nobody said anything, and all its GPUs are lost
        ({"bucket": "FAULT"}, "bad", "good"),
    ],
)  # fmt: skip
def test_a_node_that_was_taken_out_of_service_is_neither_down_nor_silent(
    facts: dict[str, object], down: str, quiet: str
) -> None:
    assert both(node(NodeHealth(), **facts)) == (down, quiet)


def test_an_alert_about_a_node_ends_when_the_node_is_drained() -> None:
    (bad,) = of_node("NodeDown", node(NodeHealth(), bucket="FAULT"))
    pending = advance(None, bad, NOW)
    assert pending is not None
    (drained,) = of_node("NodeDown", node(NodeHealth(), bucket="FAULT", standing="out"))

    assert drained.gone_reason == "declared"
    assert advance(pending, drained, NOW) is None


def test_the_budget_of_a_job_that_ended_burns_no_more() -> None:
    spending = Spending(used_gpu_hours=200.0, declared_gpu_hours=100.0)
    running = job(WatchedRun(spending=spending))
    ended = job(WatchedRun(), row=row(state="ended"))

    assert of_job("BudgetBurn", running).condition == "bad"
    assert of_job("BudgetBurn", ended).condition == "gone"
