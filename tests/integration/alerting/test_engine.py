from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest

from flopwatch.query import JobRow, MfuFigure, Target
from flopwatch_collector.alerting.delivery.notifier import Notifier
from flopwatch_collector.alerting.delivery.outbox import OUTBOX_KIND, Entry
from flopwatch_collector.alerting.delivery.webhook import Webhook
from flopwatch_collector.alerting.desk import AlertDesk
from flopwatch_collector.alerting.engine import AlertEngine
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import Facts, JobFacts, NodeFacts
from flopwatch_collector.store.control_sqlite import SqliteControl

START = 1_000_000.0
STEP = 15.0


def figure(at: float, mfu: float | None) -> MfuFigure:
    unknown = dict.fromkeys(field.name for field in fields(MfuFigure))
    known = {
        "value_ratio": mfu,
        "convention": "causal",
        "basis": "steps+shape",
        "gpus": 64,
        "gpus_observed": 64,
        "steps": 50,
        "window_start_seconds": at - 200,
        "window_end_seconds": at - 2,
    }
    return MfuFigure(**{**unknown, **known})  # type: ignore[arg-type]


def row(at: float, mfu: float | None) -> JobRow:
    unknown = dict.fromkeys(field.name for field in fields(JobRow))
    known = {
        "job_id": "j1",
        "name": "llama",
        "cluster": "a",
        "kind": "pretrain",
        "state": "running",
        "scheduler": "slurm",
        "gpus": 64,
        "gpus_observed": 64,
        "mfu": figure(at, mfu),
        "target": Target(ratio=0.45, source="job"),
        "kernel_active_ratio": 0.5,
        "tensor_active_ratio": 0.5,
        "last_step": 100,
        "last_step_seconds": at - 2,
        "waste_gpu_milliseconds": 0,
    }
    return JobRow(**{**unknown, **known})  # type: ignore[arg-type]


def job(at: float, mfu: float | None, **changes: Any) -> JobFacts:
    made = JobFacts(
        row=row(at, mfu),
        bucket="STEP",
        bucket_since_seconds=START,
        steps_since_start=100,
        report_gap_seconds=4.0,
        data_seconds=at - 2,
        nodes=frozenset(("n1",)),
    )
    return replace(made, **changes)


@dataclass
class Site:
    """An engine over a folder's control state; ``restart`` is what a new process finds."""

    folder: Path
    url: str
    settings: AlertSettings
    now: float = START
    simulated: bool = False

    def __post_init__(self) -> None:
        self.open()

    def open(self) -> None:
        self.control = SqliteControl(self.folder / "control.db")
        channel = Webhook(name="oncall", url=self.url)
        notifier = Notifier(
            [channel], self.control, external_url="http://127.0.0.1:8095", clock=lambda: self.now
        )
        self.engine = AlertEngine(
            self.control, notifier, self.settings, AlertDesk(self.control, lambda: self.now)
        )
        self.engine.start()

    def close(self) -> None:
        self.engine.stop()
        self.control.close()

    def restart(self) -> None:
        self.close()
        self.open()

    def evaluate(self, *jobs: JobFacts, nodes: tuple[NodeFacts, ...] = ()) -> None:
        self.engine.evaluate(
            Facts(now=self.now, jobs=jobs, nodes=nodes, verdict=None, cluster="a", simulated=self.simulated)
        )
        self.now += STEP

    def run(self, seconds: float, mfu: float | None, **changes: Any) -> None:
        end = self.now + seconds
        while self.now <= end:
            self.evaluate(job(self.now, mfu, **changes))


@pytest.fixture
def open_site(tmp_path: Path, receiver: Any) -> Iterator[Callable[..., Site]]:
    sites: list[Site] = []

    def make(**changes: Any) -> Site:
        values: dict[str, Any] = {
            "mfu_low_for_seconds": 120.0,
            "group_wait_seconds": 0.0,
            "group_interval_seconds": 0.0,
            **changes,
        }
        sites.append(Site(folder=tmp_path, url=receiver.url, settings=AlertSettings(**values)))
        return sites[-1]

    yield make
    for site in sites:
        site.close()


def test_a_fall_and_a_recovery_give_exactly_two_messages(
    receiver: Any, open_site: Callable[..., Site]
) -> None:
    site = open_site()

    site.run(300, 0.48)
    site.run(300, 0.31)
    receiver.wait_for(1)
    site.run(300, 0.50)
    first, second = receiver.wait_for(2)
    site.run(600, 0.50)

    assert len(receiver.settle()) == 2
    assert [first.body["status"], second.body["status"]] == ["firing", "resolved"]
    assert first.body["commonLabels"]["alertname"] == "MfuLow"
    assert first.body["commonAnnotations"]["summary"] == "llama: MFU 31.0 % below target 45.0 %"
    assert first.body["alerts"][0]["fingerprint"] == second.body["alerts"][0]["fingerprint"]
    assert first.headers["Flopwatch-Delivery"] != second.headers["Flopwatch-Delivery"]


def test_it_is_still_two_messages_when_the_collector_restarts_at_any_point_between(
    receiver: Any, open_site: Callable[..., Site]
) -> None:
    site = open_site()

    for mfu in (0.48, 0.31, 0.50):
        for _ in range(14):
            site.evaluate(job(site.now, mfu))
            site.restart()
    receiver.wait_for(2)

    assert [one.body["status"] for one in receiver.settle()] == ["firing", "resolved"]


def test_it_fires_once_the_condition_has_held_for_its_time_and_not_before(
    receiver: Any, open_site: Callable[..., Site]
) -> None:
    site = open_site()

    for _ in range(8):
        site.evaluate(job(site.now, 0.31))
    assert [row.state for row in site.engine.active()] == ["pending"]
    assert receiver.settle(0.1) == []
    site.evaluate(job(site.now, 0.31))

    assert [row.state for row in site.engine.active()] == ["firing"]
    assert site.engine.active()[0].fired_seconds == START + 118.0


def test_a_message_that_could_not_be_delivered_is_sent_by_the_next_process(
    receiver: Any, open_site: Callable[..., Site]
) -> None:
    site = open_site()
    receiver.statuses = [503]

    site.run(300, 0.31)
    failed = receiver.wait_for(1)[0]
    site.restart()
    again = receiver.wait_for(2)[1]

    assert again.body == failed.body
    assert again.headers["Flopwatch-Delivery"] == failed.headers["Flopwatch-Delivery"]
    assert len(receiver.settle()) == 2
    assert site.control.load(OUTBOX_KIND, Entry) == {}


def test_a_message_saved_by_a_process_that_died_before_sending_is_sent_once(
    receiver: Any, open_site: Callable[..., Site], tmp_path: Path
) -> None:
    site = open_site()
    site.engine.stop()

    site.run(300, 0.31)
    assert receiver.settle(0.1) == []
    site.restart()
    site.run(300, 0.31)
    receiver.wait_for(1)

    assert receiver.settle()[0].body["status"] == "firing"
    assert len(receiver.received) == 1


def test_silence_does_not_resolve(receiver: Any, open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.run(300, 0.31)
    receiver.wait_for(1)

    site.run(3_600, None)
    site.restart()
    site.run(3_600, None)

    (row,) = site.engine.active()
    assert (row.state, row.stale) == ("firing", True)
    assert len(receiver.settle()) == 1


def test_the_end_of_the_job_resolves_with_that_reason(receiver: Any, open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.run(300, 0.31)

    ended = job(site.now, 0.31)
    site.evaluate(replace(ended, row=replace(ended.row, state="ended", end_seconds=site.now)))
    resolved = receiver.wait_for(2)[1]

    assert resolved.body["alerts"][0]["annotations"]["resolved_reason"] == "ended"
    assert [row.resolved_reason for row in site.engine.history(START)] == ["ended"]
    assert site.engine.active() == ()


def test_a_job_whose_record_vanished_keeps_its_alert_for_a_day(
    receiver: Any, open_site: Callable[..., Site]
) -> None:
    site = open_site(repeat_interval_seconds=0.0)
    site.run(300, 0.31)
    site.evaluate()
    site.now += 86_000
    site.evaluate()
    assert [row.state for row in site.engine.active()] == ["firing"]
    site.now += 500
    site.evaluate()

    assert site.engine.active() == ()
    assert receiver.wait_for(2)[1].body["alerts"][0]["annotations"]["resolved_reason"] == "not_watched"


def test_a_slow_receiver_does_not_delay_evaluation(receiver: Any, open_site: Callable[..., Site]) -> None:
    receiver.delay_seconds = 0.5
    site = open_site()

    site.run(300, 0.31)
    before = len(receiver.received)
    receiver.wait_for(1)

    assert before == 0


def test_a_hang_is_sent_and_what_follows_from_it_is_not(
    receiver: Any, open_site: Callable[..., Site]
) -> None:
    site = open_site(observe_days=0.0, idle_held_for_seconds=60.0)

    site.run(300, 0.31)
    receiver.wait_for(1)
    site.run(600, 0.31, bucket="HANG", bucket_since_seconds=site.now)
    receiver.wait_for(2)

    rules = [one.body["commonLabels"]["alertname"] for one in receiver.settle()]
    assert rules == ["MfuLow", "JobHang"]


def test_an_inhibited_alert_is_sent_when_it_outlives_its_reason(
    receiver: Any, open_site: Callable[..., Site]
) -> None:
    site = open_site(observe_days=0.0)
    down = NodeFacts(
        cluster="a", node="n1", last_seen_seconds=START + 1e6, interval_seconds=10.0, bucket="FAULT", gpus=8
    )

    for _ in range(60):
        site.evaluate(job(site.now, 0.31), nodes=(down,))
    receiver.wait_for(1)
    assert receiver.settle(0.1)[0].body["commonLabels"]["alertname"] == "NodeDown"
    for _ in range(60):
        site.evaluate(job(site.now, 0.31), nodes=(replace(down, bucket="STEP"),))

    sent = [(one.body["commonLabels"]["alertname"], one.body["status"]) for one in receiver.wait_for(3)]
    assert sent == [("NodeDown", "firing"), ("NodeDown", "resolved"), ("MfuLow", "firing")]


def test_a_new_install_shows_what_it_does_not_send_yet(receiver: Any, open_site: Callable[..., Site]) -> None:
    site = open_site()

    site.run(300, 0.48, bucket="HANG", bucket_since_seconds=START)
    assert [row.rule for row in site.engine.active()] == ["JobHang"]
    assert receiver.settle(0.1) == []
    site.now += 7 * 86_400
    site.run(30, 0.48, bucket="HANG", bucket_since_seconds=START)

    assert receiver.wait_for(1)[0].body["commonLabels"]["alertname"] == "JobHang"


def test_nodes_that_fail_together_are_one_message(receiver: Any, open_site: Callable[..., Site]) -> None:
    site = open_site(observe_days=0.0)
    nodes = tuple(
        NodeFacts(
            cluster="a",
            node=f"n{i}",
            last_seen_seconds=START - 100,
            interval_seconds=10.0,
            bucket=None,
            gpus=8,
        )
        for i in range(20)
    )

    for _ in range(30):
        site.evaluate(nodes=nodes)

    (message,) = receiver.settle()
    assert message.body["groupLabels"] == {"alertname": "NoData", "cluster": "a"}
    assert len(message.body["alerts"]) == 20


def test_a_simulated_cluster_reaches_only_this_machine_and_says_so(
    receiver: Any, open_site: Callable[..., Site]
) -> None:
    site = open_site()
    site.simulated = True
    elsewhere = Webhook(name="elsewhere", url="https://hooks.example.com/x")
    notifier = Notifier([elsewhere, Webhook(name="here", url=receiver.url)], site.control)
    site.engine = AlertEngine(site.control, notifier, site.settings)
    site.engine.start()

    site.run(300, 0.31)
    body = receiver.wait_for(1)[0].body

    assert body["commonLabels"]["simulated"] == "true"
    assert body["commonAnnotations"]["summary"].startswith("SIMULATED")
    assert [stats.waiting for stats in notifier.stats() if stats.channel == "elsewhere"] == [0]
    assert site.engine.active()[0].summary.startswith("SIMULATED")


def test_nothing_is_written_while_nothing_changes(receiver: Any, open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.run(60, 0.48)
    generation = site.engine.generation

    site.run(600, 0.48)

    assert site.engine.generation == generation


def test_old_history_is_forgotten(receiver: Any, open_site: Callable[..., Site]) -> None:
    site = open_site()
    site.run(300, 0.31)
    site.run(300, 0.50)

    assert site.engine.retain(site.now + 89 * 86_400) == 0
    assert site.engine.retain(site.now + 91 * 86_400) == 1
    assert site.engine.history(0.0) == ()
