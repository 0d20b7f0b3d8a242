from pathlib import Path
from typing import Any

from flopwatch_collector.alerting.delivery.notifier import Notifier
from flopwatch_collector.alerting.delivery.outbox import OUTBOX_KIND, Entry, Worker
from flopwatch_collector.alerting.delivery.webhook import Webhook
from flopwatch_collector.alerting.notices import Notice, NoticeAlert
from flopwatch_collector.store.control_sqlite import SqliteControl


def entry(number: int, *, created: float = 0.0, channel: str = "w") -> Entry:
    alert = NoticeAlert(
        status="firing",
        labels={"alertname": "MfuLow", "job_id": f"j{number}"},
        annotations={"summary": f"j{number} is low"},
        starts_at="2026-01-01T00:00:00.000Z",
        ends_at="0001-01-01T00:00:00Z",
        generator_url="",
        fingerprint=f"f{number}",
    )
    notice = Notice(status="firing", group_labels={"job_id": f"j{number}"}, alerts=(alert,))
    return Entry(
        delivery_id=f"d{number}",
        channel=channel,
        order=number,
        created_seconds=created,
        external_url="",
        notice=notice,
    )


def opened(tmp_path: Path, receiver: Any, **changes: Any) -> Worker:
    control = SqliteControl(tmp_path / "control.db")
    values: dict[str, Any] = {"clock": lambda: 10.0, "first_retry_seconds": 0.02, **changes}
    return Worker(channel=Webhook(name="w", url=receiver.url), control=control, **values)


def test_messages_go_out_in_order_and_leave_the_outbox(receiver: Any, tmp_path: Path) -> None:
    worker = opened(tmp_path, receiver)
    entries = [entry(number) for number in range(5)]
    worker.control.save(OUTBOX_KIND, {one.delivery_id: one for one in entries})

    worker.put(entries)
    worker.start()
    requests = receiver.wait_for(5)
    worker.stop()

    assert [one.headers["Flopwatch-Delivery"] for one in requests] == ["d0", "d1", "d2", "d3", "d4"]
    assert worker.control.load(OUTBOX_KIND, Entry) == {}
    assert worker.stats().delivered == 5
    worker.control.close()


def test_a_failing_receiver_is_tried_again_and_order_is_kept(receiver: Any, tmp_path: Path) -> None:
    receiver.statuses = [500, 429]
    worker = opened(tmp_path, receiver)

    worker.put([entry(1), entry(2)])
    worker.start()
    requests = receiver.wait_for(4)
    worker.stop()

    assert [one.headers["Flopwatch-Delivery"] for one in requests] == ["d1", "d1", "d1", "d2"]
    assert (worker.stats().failed_attempts, worker.stats().delivered) == (2, 2)
    worker.control.close()


def test_a_message_that_is_refused_for_good_does_not_block_the_next(receiver: Any, tmp_path: Path) -> None:
    receiver.statuses = [422]
    worker = opened(tmp_path, receiver)

    worker.put([entry(1), entry(2)])
    worker.start()
    receiver.wait_for(2)
    worker.stop()

    assert (worker.stats().given_up, worker.stats().delivered) == (1, 1)
    worker.control.close()


def test_after_a_day_a_message_is_given_up(receiver: Any, tmp_path: Path) -> None:
    receiver.statuses = [500]
    worker = opened(tmp_path, receiver, clock=lambda: 86_401.0)

    worker.put([entry(1, created=0.0), entry(2, created=86_400.0)])
    worker.start()
    receiver.wait_for(2)
    worker.stop()

    assert worker.stats().given_up == 1
    worker.control.close()


def test_beyond_the_limit_what_waits_is_one_digest(receiver: Any, tmp_path: Path) -> None:
    worker = opened(tmp_path, receiver, messages_per_minute=2)
    worker.put([entry(number) for number in range(5)])
    worker.start()
    receiver.wait_for(2)
    assert len(receiver.settle(0.1)) == 2

    with worker._changed:
        worker._sent.clear()
        worker._changed.notify_all()
    digest = receiver.wait_for(3)[2]
    worker.stop()

    assert [alert["fingerprint"] for alert in digest.body["alerts"]] == ["f2", "f3", "f4"]
    assert digest.body["groupLabels"] == {}
    assert digest.body["commonAnnotations"]["summary"] == "j2 is low; j3 is low; j4 is low"
    assert len(receiver.settle(0.1)) == 3
    worker.control.close()


def test_one_slow_channel_does_not_hold_another(receiver: Any, tmp_path: Path) -> None:
    control = SqliteControl(tmp_path / "control.db")
    silent = Webhook(name="silent", url="http://127.0.0.1:1/")
    notifier = Notifier([silent, Webhook(name="w", url=receiver.url)], control, clock=lambda: 10.0)
    control.save(OUTBOX_KIND, {f"d{n}": entry(n, channel=name) for n, name in ((1, "silent"), (2, "w"))})

    notifier.start()
    requests = receiver.wait_for(1)
    notifier.stop()

    assert requests[0].headers["Flopwatch-Delivery"] == "d2"
    assert list(control.load(OUTBOX_KIND, Entry)) == ["d1"]
    control.close()


def test_what_waits_for_a_channel_that_was_removed_is_dropped(receiver: Any, tmp_path: Path) -> None:
    control = SqliteControl(tmp_path / "control.db")
    control.save(OUTBOX_KIND, {"d1": entry(1, channel="gone")})

    notifier = Notifier([Webhook(name="w", url=receiver.url)], control)
    notifier.start()
    notifier.stop()

    assert control.load(OUTBOX_KIND, Entry) == {}
    assert receiver.received == []
    control.close()


def test_stopping_waits_for_the_attempt_in_progress_and_not_for_a_pause(
    receiver: Any, tmp_path: Path
) -> None:
    receiver.statuses = [500]
    worker = opened(tmp_path, receiver, first_retry_seconds=600.0)
    worker.put([entry(1)])
    worker.start()
    receiver.wait_for(1)

    worker.stop(timeout_seconds=5.0)

    assert not worker._thread.is_alive()
    worker.control.close()
