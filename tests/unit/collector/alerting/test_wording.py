# ruff: noqa: RUF001 - Chinese punctuation
from typing import Any

import pytest

from flopwatch_collector.alerting import advice
from flopwatch_collector.alerting.delivery.wording import words_of
from flopwatch_collector.config import ALERT_RULES


def alert(rule: str = "MfuLow", **changes: Any) -> dict[str, Any]:
    return {
        "status": "firing",
        "labels": {"alertname": rule, "severity": "warning", "cluster": "a", "job_id": "j1"},
        "annotations": {"summary": "llama: MFU 31.0 % below target 45.0 %", "job": "llama", "mfu": "0.31"},
        "generatorURL": "",
        **changes,
    }


@pytest.mark.parametrize("rule", ALERT_RULES)
def test_every_rule_has_a_chinese_name(rule: str) -> None:
    title = words_of({"alerts": [alert(rule)]}, "zh").title

    assert rule not in title
    assert title.startswith("【告警】警告 ")


def test_a_message_of_several_rules_says_the_worst_severity_and_how_many() -> None:
    worst = alert("NodeDown", labels={"alertname": "NodeDown", "severity": "critical", "cluster": "a"})

    words = words_of({"alerts": [alert(), worst]}, "en")

    assert words.title == "[FIRING] critical several rules (x2) on a"
    assert words.text.splitlines() == ["llama: MFU 31.0 % below target 45.0 %"] * 2


def test_an_end_is_said_with_its_reason_and_a_value_that_is_no_number_stays() -> None:
    ended = alert(
        status="resolved", annotations={"summary": "x", "resolved_reason": "ended", "mfu": "unknown"}
    )

    words = words_of({"alerts": [ended]}, "zh")

    assert words.title == "【已恢复】警告 MFU 低于目标"
    assert words.text == "MFU 低于目标(已恢复): 原因 任务已结束,MFU unknown,集群 a,任务编号 j1"


@pytest.mark.parametrize(("language", "mark"), [("en", "SIMULATED ["), ("zh", "【模拟数据】")])
def test_a_simulated_cluster_says_so_first(language: Any, mark: str) -> None:
    labels = {"alertname": "MfuLow", "severity": "info", "simulated": "true"}

    assert words_of({"alerts": [alert(labels=labels)]}, language).title.startswith(mark)


WHOLE = {
    "startsAt": "2026-12-01T03:12:40.000Z",
    "endsAt": "0001-01-01T00:00:00Z",
    "generatorURL": "http://c:8095/ui/jobs/j1",
    "annotations": {
        "summary": "llama: no training progress, 512 GPUs wait", "job": "llama", "gpus": "512",
        "cost": "512 GPUs; wasted today: 130.5 GPU-hours", "cost_zh": "512 卡；今日浪费 130.5 卡时",
        "cause": "Hang", "cause_zh": "训练挂起", "next": "Take the stacks.", "next_zh": "抓取调用栈。",
    },
}  # fmt: skip


def test_a_message_says_what_since_when_at_what_cost_why_what_to_do_and_where_to_look() -> None:
    assert words_of({"alerts": [alert("JobHang", **WHOLE)]}, "en").text.splitlines() == [
        "llama: no training progress, 512 GPUs wait",
        "Since: 2026-12-01 03:12 UTC",
        "Cost: 512 GPUs; wasted today: 130.5 GPU-hours",
        "Likely cause: Hang",
        "Next: Take the stacks.",
        "http://c:8095/ui/jobs/j1",
    ]
    assert words_of({"alerts": [alert("JobHang", **WHOLE)]}, "zh").text.splitlines() == [
        "训练无进展(告警): 任务 llama,卡数 512,集群 a,任务编号 j1",
        "时间: 2026-12-01 03:12 UTC",
        "影响: 512 卡；今日浪费 130.5 卡时",
        "可能原因: 训练挂起",
        "处理: 抓取调用栈。",
        "http://c:8095/ui/jobs/j1",
    ]


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("2026-12-01T04:40:00.000Z", "Since: 2026-12-01 03:12 - 04:40 UTC"),
        ("2026-12-02T04:40:00.000Z", "Since: 2026-12-01 03:12 - 2026-12-02 04:40 UTC"),
    ],
)
def test_an_end_says_when_it_began_and_when_it_was_over(end: str, words: str) -> None:
    ended = alert("JobHang", **{**WHOLE, "endsAt": end, "status": "resolved"})

    assert words_of({"alerts": [ended]}, "en").text.splitlines()[1] == words


def test_many_alerts_together_are_told_briefly() -> None:
    text = words_of({"alerts": [alert("JobHang", **WHOLE)] * 4}, "en").text

    assert text.splitlines()[:3] == [
        "llama: no training progress, 512 GPUs wait",
        "Likely cause: Hang",
        "http://c:8095/ui/jobs/j1",
    ]


def test_a_chinese_message_names_the_node_that_no_label_has() -> None:
    slow = alert(
        "Straggler", annotations={"summary": "x", "job": "llama", "node": "n7", "also": "n9", "share": "0.25"}
    )

    assert words_of({"alerts": [slow]}, "zh").text == (
        "慢节点(告警): 任务 llama,节点 n7,另有节点 n9,占比 25.0 %,集群 a,任务编号 j1"
    )


def test_every_rule_says_what_to_do_in_both_languages() -> None:
    assert set(advice.ENGLISH) == set(advice.CHINESE) == set(ALERT_RULES)
