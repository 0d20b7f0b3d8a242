"""What is shown and not sent: silences, acknowledgements, maintenance; overrides and switched-off rules."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.integration.alerting.test_engine import START, Site, job, open_site  # noqa: F401

from flopwatch_collector.alerting.desk import AlertDesk, Silence, Words
from flopwatch_collector.alerting.hushing import hushed
from flopwatch_collector.alerting.matchers import parsed
from flopwatch_collector.alerting.state import AlertRecord
from flopwatch_collector.config_alerts import read_alerts
from flopwatch_collector.facts import Facts, NodeFacts


def silence(*matchers: str, end: float, start: float = START) -> Silence:
    return Silence(
        silence_id="",
        matchers=tuple(parsed(text) for text in matchers),
        start_seconds=start,
        end_seconds=end,
        created_by="ann",
        comment="tuning",
        created_seconds=START,
    )


def test_a_silenced_alert_is_shown_and_sent_when_the_silence_ends_and_it_still_fires(
    receiver: Any,
    open_site: Callable[..., Site],  # noqa: F811
) -> None:
    site = open_site()
    made = site.engine.desk.silence(silence("alertname=MfuLow", "job=~lla.*", end=START + 600.0))

    site.run(500, 0.31)
    assert receiver.settle(0.1) == []
    (row,) = site.engine.active()
    assert (row.state, row.silenced_by) == ("firing", made.silence_id)
    assert [one.matchers for one in site.engine.silences()] == [("alertname=MfuLow", "job=~lla.*")]
    site.restart()
    site.run(75, 0.31)
    assert receiver.settle(0.1) == []
    site.run(30, 0.31)

    assert receiver.wait_for(1)[0].body["status"] == "firing"
    assert site.engine.silences() == ()


def test_a_silence_of_something_else_hides_nothing(
    receiver: Any,
    open_site: Callable[..., Site],  # noqa: F811
) -> None:
    site = open_site()
    site.engine.desk.silence(silence("alertname=MfuLow", "job=gpt", end=START + 1e6))

    site.run(300, 0.31)

    receiver.wait_for(1)


def test_an_acknowledged_alert_is_not_repeated_and_its_end_is_sent(
    receiver: Any,
    open_site: Callable[..., Site],  # noqa: F811
) -> None:
    site = open_site(group_interval_seconds=0.0, repeat_interval_seconds=600.0)
    site.run(300, 0.31)
    receiver.wait_for(1)
    site.run(600, 0.31)
    receiver.wait_for(2)
    key = site.engine.active()[0].fingerprint
    AlertDesk(site.control, lambda: site.now).acknowledge(key, "bo", "on it")
    AlertDesk(site.control, lambda: site.now).comment(key, "bo", "a slow disk")
    site.restart()
    site.run(3_000, 0.31)
    (row,) = site.engine.active()
    site.run(300, 0.50)
    receiver.wait_for(3)

    assert (row.acknowledged_by, [word.text for word in row.comments]) == ("bo", ["a slow disk"])
    assert [one.body["status"] for one in receiver.settle()] == ["firing", "firing", "resolved"]


def test_a_node_in_maintenance_is_silenced_by_itself_with_jobs_that_run_nowhere_else(
    receiver: Any,
    open_site: Callable[..., Site],  # noqa: F811
) -> None:
    site = open_site()
    node = NodeFacts(
        cluster="a", node="n1", last_seen_seconds=START + 1e6, interval_seconds=10.0, bucket="MAINT", gpus=8
    )

    for _ in range(30):
        site.evaluate(job(site.now, 0.31), nodes=(node,))
    assert receiver.settle(0.1) == []
    assert site.engine.active()[0].silenced_by == "maintenance"
    (made,) = site.engine.silences()
    assert (made.matchers, made.end_seconds) == (("cluster=a", "node=n1"), None)
    for _ in range(2):
        site.evaluate(job(site.now, 0.31), nodes=(replace(node, bucket="STEP"),))

    receiver.wait_for(1)


def test_rules_are_changed_for_a_team_a_job_and_switched_off(
    receiver: Any,
    open_site: Callable[..., Site],  # noqa: F811
) -> None:
    site = open_site()
    site.settings = read_alerts(
        {
            "alerts": {
                "group_wait_seconds": 0,
                "send": ["MfuLow"],
                "rules": {"MfuLow": {"for": "2m"}, "HighUtilLowMfu": {"enabled": False}},
                "override": [
                    {"team": "quiet", "rules": {"MfuLow": {"enabled": False}}},
                    {"job": "llama*", "rules": {"MfuLow": {"severity": "critical", "for": "4m"}}},
                ],
            }
        },
        {},
    )
    site.restart()

    def named(name: str, team: str) -> Any:
        made = job(site.now, 0.31)
        return replace(made, row=replace(made.row, job_id=name, name=name, account=team))

    fired: dict[str, float] = {}
    for _ in range(40):
        site.evaluate(named("llama-1", "nlp"), named("gpt-1", "nlp"), named("gpt-2", "quiet"))
        for row in site.engine.active():
            if row.state == "firing":
                fired.setdefault(row.labels["job_id"], site.now - START)

    # One evaluation in 15 s: the condition has held for 120 s at the ninth, for 240 s at the seventeenth.
    assert fired == {"gpt-1": 9 * 15.0, "llama-1": 17 * 15.0}
    rows = {row.labels["job_id"]: row for row in site.engine.active()}
    assert (rows["llama-1"].severity, rows["gpt-1"].severity) == ("critical", "warning")
    info = {rule.rule: rule for rule in site.engine.rules(START)}
    assert (info["MfuLow"].firing, info["MfuLow"].fired, info["MfuLow"].for_seconds) == (2, 2, 120.0)
    assert (info["HighUtilLowMfu"].enabled, info["HighUtilLowMfu"].sends) == (False, False)


def test_an_end_that_was_not_said_yet_is_said_before_the_alert_begins_anew(
    receiver: Any,
    open_site: Callable[..., Site],  # noqa: F811
) -> None:
    site = open_site(group_interval_seconds=3_600.0)
    site.run(300, 0.31)
    receiver.wait_for(1)
    site.run(200, 0.50)
    assert len(receiver.settle(0.1)) == 1
    site.run(15, 0.31)

    assert [one.body["status"] for one in receiver.wait_for(2)] == ["firing", "resolved"]


@pytest.mark.parametrize(
    ("declared", "node_hushed", "job_hushed"),
    [
        ({"standing": "out", "maintenance": True}, True, True),
        ({"standing": "out"}, True, False),
        ({"standing": "down"}, False, False),
        ({}, False, False),
    ],
)
def test_a_drained_node_is_silenced_and_not_the_job_that_still_runs_on_it(
    declared: dict[str, Any], node_hushed: bool, job_hushed: bool
) -> None:
    node = NodeFacts(
        cluster="a",
        node="n1",
        last_seen_seconds=START,
        interval_seconds=10.0,
        bucket="STEP",
        gpus=8,
        **declared,
    )
    records = [
        AlertRecord(
            fingerprint=rule, rule=rule, severity="warning", labels=labels, state="firing", event_seconds=START,
            active_since_seconds=START, fired_seconds=START,
        )
        for rule, labels in (
            ("HwThrottle", {"cluster": "a", "node": "n1", "gpu": "g"}), ("MfuLow", {"cluster": "a", "job_id": "j1"})
        )
    ]  # fmt: skip
    facts = Facts(now=START, jobs=(job(START, 0.3),), nodes=(node,), verdict=None, cluster="a")

    quiet = hushed(records, facts, Words())

    assert ("HwThrottle" in quiet.silenced, "MfuLow" in quiet.silenced) == (node_hushed, job_hushed)
