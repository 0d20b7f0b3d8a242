import json
from dataclasses import replace

import pytest

from flopwatch_collector.alerting.delivery.message import group_key, webhook_body
from flopwatch_collector.alerting.inhibition import inhibited
from flopwatch_collector.alerting.notices import Cost, Wording, due, grouped, marked_sent
from flopwatch_collector.alerting.state import AlertRecord, fingerprint

HERE = Wording(external_url="http://127.0.0.1:8095")
NEXT = {
    "next": "Open the job's page: its likely cause says where the time goes.",
    "next_zh": "打开任务页，查看可能原因与时间去向。",  # noqa: RUF001 - Chinese punctuation
}


def record(rule: str = "MfuLow", **labels: str) -> AlertRecord:
    identity = {"cluster": "a", **(labels or {"job_id": "j1"})}
    return AlertRecord(
        fingerprint=fingerprint(rule, identity),
        rule=rule,
        severity="warning",
        labels=identity,
        state="firing",
        event_seconds=1_000.0,
        active_since_seconds=400.0,
        fired_seconds=1_000.0,
        values={"job": "llama", "mfu": 0.31, "target": 0.45},
        summary="llama: MFU 31.0 % below target 45.0 %",
    )


def test_a_firing_alert_is_said_once_and_again_when_its_severity_changes() -> None:
    new = record()
    said = marked_sent(new, "firing", 1_000.0)

    assert due(new) == "firing"
    assert due(said) is None
    assert due(replace(said, severity="critical")) == "firing"
    assert due(replace(said, state="clearing")) is None


def test_an_end_is_said_once_and_only_of_what_was_said_to_fire() -> None:
    ended = replace(record(), state="resolved", resolved_seconds=2_000.0)
    said = replace(ended, sent_severity="warning")

    assert due(ended) is None
    assert due(said) == "resolved"
    assert due(marked_sent(said, "resolved", 2_000.0)) is None


def test_a_hang_explains_what_follows_from_it_in_its_own_job_only() -> None:
    hang, low, other = record("JobHang"), record("MfuLow"), record("MfuLow", job_id="j2")

    assert inhibited([hang, low, other], {}) == {low.fingerprint: "JobHang"}


def test_a_node_that_is_down_explains_all_of_it_and_jobs_that_run_nowhere_else() -> None:
    down, silent = record("NodeDown", node="n1"), record("NoData", node="n1")
    small, large = record("MfuLow", job_id="small"), record("MfuLow", job_id="large")
    nodes = {"small": frozenset({("a", "n1")}), "large": frozenset({("a", "n1"), ("a", "n2")})}

    assert inhibited([down, silent, small, large], nodes) == {
        silent.fingerprint: "NodeDown",
        small.fingerprint: "NodeDown",
    }


def test_an_alert_that_does_not_fire_yet_inhibits_nothing() -> None:
    hang = replace(record("JobHang"), state="pending")

    assert inhibited([hang, record("MfuLow")], {}) == {}


def test_the_body_is_alertmanagers_version_4() -> None:
    (notice,) = grouped([("firing", record())], HERE)

    body = webhook_body([notice], "oncall", HERE.external_url)

    assert body == {
        "version": "4",
        "groupKey": '{}:{alertname="MfuLow", cluster="a", job_id="j1"}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "oncall",
        "groupLabels": {"alertname": "MfuLow", "cluster": "a", "job_id": "j1"},
        "commonLabels": {"alertname": "MfuLow", "severity": "warning", "cluster": "a", "job_id": "j1"},
        "commonAnnotations": {
            "summary": "llama: MFU 31.0 % below target 45.0 %",
            "job": "llama",
            "mfu": "0.31",
            "target": "0.45",
            **NEXT,
        },
        "externalURL": "http://127.0.0.1:8095",
        "alerts": [
            {
                "status": "firing",
                "labels": {"alertname": "MfuLow", "severity": "warning", "cluster": "a", "job_id": "j1"},
                "annotations": {
                    "summary": "llama: MFU 31.0 % below target 45.0 %",
                    "job": "llama",
                    "mfu": "0.31",
                    "target": "0.45",
                    **NEXT,
                },
                "startsAt": "1970-01-01T00:16:40.000Z",
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": "http://127.0.0.1:8095/ui/jobs/j1",
                "fingerprint": record().fingerprint,
            }
        ],
    }
    assert json.loads(json.dumps(body)) == body


@pytest.mark.parametrize(
    ("labels", "page"),
    [
        ({"job_id": "a/17 b"}, "jobs/a%2F17%20b"),
        ({"node": "n1"}, "nodes/n1"),
        ({"node": "n1", "gpu": "GPU-7"}, "gpus/GPU-7"),
        ({"budget": "nlp"}, "alerts"),
    ],
)
def test_a_message_leads_to_the_page_of_what_it_is_about(labels: dict[str, str], page: str) -> None:
    (notice,) = grouped([("firing", record("GpuErrors", **labels))], HERE)

    assert notice.alerts[0].generator_url == f"http://127.0.0.1:8095/ui/{page}"


def test_what_a_job_holds_and_wasted_is_told_and_an_end_needs_no_advice() -> None:
    costs = {"j1": Cost(gpus=512, wasted_gpu_hours=1_305.26), "j2": Cost(gpus=None, wasted_gpu_hours=0.0)}
    (notice,) = grouped([("firing", record())], replace(HERE, costs=costs))

    told = notice.alerts[0].annotations
    assert told["cost"] == "512 GPUs; wasted today: 1,305.3 GPU-hours"
    assert told["cost_zh"] == "512 卡；今日浪费 1,305.3 卡时"  # noqa: RUF001 - Chinese punctuation
    assert costs["j2"].english == "? GPUs; wasted today: 0.0 GPU-hours"
    over = replace(record(), state="resolved", resolved_seconds=1_500.0)
    (ended,) = grouped([("resolved", over)], HERE)
    assert "next" not in ended.alerts[0].annotations


def test_a_resolved_message_has_its_end_and_its_reason() -> None:
    ended = replace(record(), state="resolved", resolved_seconds=2_000.5, resolved_reason="ended")
    (notice,) = grouped([("resolved", ended)], HERE)

    (alert,) = webhook_body([notice], "oncall", "")["alerts"]

    assert alert["status"] == "resolved"
    assert alert["endsAt"] == "1970-01-01T00:33:20.500Z"
    assert alert["annotations"]["resolved_reason"] == "ended"


def test_nodes_of_a_cluster_go_in_one_message_that_names_ten_and_holds_all() -> None:
    nodes = [replace(record("NodeDown", node=f"n{i:02}"), summary=f"Node n{i:02} is down") for i in range(12)]

    (notice,) = grouped([("firing", one) for one in nodes], HERE)
    body = webhook_body([notice], "oncall", "")

    assert body["groupLabels"] == {"alertname": "NodeDown", "cluster": "a"}
    assert len(body["alerts"]) == 12
    assert body["commonAnnotations"]["summary"].count("is down") == 10
    assert body["commonAnnotations"]["summary"].endswith("; and 2 more")


def test_jobs_rules_and_states_have_messages_of_their_own() -> None:
    changes = [("firing", record()), ("firing", record(job_id="j2")), ("firing", record("JobHang"))]
    ended = replace(record(job_id="j3"), state="resolved", resolved_seconds=2_000.0)

    assert len(grouped([*changes, ("resolved", ended)], HERE)) == 4  # type: ignore[list-item]


def test_a_simulated_cluster_says_so_in_labels_and_words() -> None:
    (notice,) = grouped([("firing", record())], replace(HERE, simulated=True))

    body = webhook_body([notice], "oncall", "")

    assert body["commonLabels"]["simulated"] == "true"
    assert body["commonAnnotations"]["summary"].startswith("SIMULATED: ")


def test_a_group_key_escapes_quotes() -> None:
    assert group_key({"job_id": 'a"b\\'}) == '{}:{job_id="a\\"b\\\\"}'
