"""What an Alertmanager is told when alerts change; the receiver stands for it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.integration.alerting.test_channels import alert

from flopwatch_collector.alerting.delivery.alertmanager import Alertmanager, Republisher

NOW = 1_796_000_000.0


@pytest.fixture
def told(receiver: Any) -> Iterator[Republisher]:
    url = receiver.url.rpartition("/hooks")[0]
    made = Republisher(
        receiver=Alertmanager(name="am", url=url, token="t0ken"), clock=lambda: NOW, retry_seconds=0.02
    )
    made.start()
    yield made
    made.stop()


def test_a_firing_alert_lives_four_minutes_and_is_told_again(receiver: Any, told: Republisher) -> None:
    told.again_seconds = 0.05
    told.publish([alert(1)])

    first, second = receiver.wait_for(2)[:2]

    assert first.body == second.body
    (one,) = first.body
    assert one["endsAt"] == "2026-11-30T00:57:20.000Z"
    assert one["startsAt"] == "2026-11-30T09:12:40.000Z"
    assert first.headers["Authorization"] == "Bearer t0ken"


def test_a_change_of_severity_ends_the_alert_under_its_old_labels(receiver: Any, told: Republisher) -> None:
    told.publish([alert(1)])
    receiver.wait_for(1)
    told.publish([alert(1, severity="critical")])

    second = receiver.wait_for(2)[1].body

    assert [one["labels"]["severity"] for one in second] == ["warning", "critical"]
    assert second[0]["endsAt"] < second[1]["endsAt"]


def test_an_end_is_told_with_its_own_time_and_then_nothing_is(receiver: Any, told: Republisher) -> None:
    told.publish([alert(1)])
    receiver.wait_for(1)
    told.publish([replace(alert(1, "resolved"), ends_at="2026-11-30T10:00:00.000Z")])
    (ended,) = receiver.wait_for(2)[1].body
    told.again_seconds = 0.02
    told.publish([])

    assert ended["endsAt"] == "2026-11-30T10:00:00.000Z"
    assert receiver.settle(0.2)[2:] == []


@pytest.mark.parametrize("status", [500, 429, 503])
def test_what_was_not_taken_is_told_again_soon(receiver: Any, told: Republisher, status: int) -> None:
    receiver.statuses = [status, status]
    told.publish([alert(1)])

    requests = receiver.wait_for(3)

    assert requests[2].body == requests[0].body
    assert told.stats().failed_attempts == 2
