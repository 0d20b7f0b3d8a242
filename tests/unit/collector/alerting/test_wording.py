from typing import Any

import pytest

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
