"""From steps on the wire to a webhook: a run falls below its target and recovers."""

from collections.abc import Callable
from typing import Any

from tests.integration.alerting.conftest import receiver  # noqa: F401
from tests.integration.views.site import Site, webhook

from flopwatch_collector.config import AlertSettings


def test_a_run_that_falls_and_recovers_gives_two_messages_across_restarts(
    open_site: Callable[..., Site],
    receiver: Any,  # noqa: F811
) -> None:
    site = open_site(
        notify=webhook(receiver.url), alerts=AlertSettings(mfu_low_for_seconds=300.0, observe_days=0.0)
    )

    for _ in range(10):
        site.train(40.0, mfu=0.40)
    assert receiver.received == []
    for _ in range(25):
        site.train(40.0, mfu=0.20)
    receiver.wait_for(1)
    site.restart()
    for _ in range(25):
        site.train(40.0, mfu=0.60)
    first, second = receiver.wait_for(2)
    site.restart()
    for _ in range(3):
        site.train(40.0, mfu=0.60)

    assert len(receiver.settle()) == 2
    assert (first.body["status"], second.body["status"]) == ("firing", "resolved")
    assert first.body["commonLabels"]["alertname"] == "MfuLow"
    assert first.body["commonAnnotations"]["target"] == "0.35"
    assert second.body["alerts"][0]["fingerprint"] == first.body["alerts"][0]["fingerprint"]
