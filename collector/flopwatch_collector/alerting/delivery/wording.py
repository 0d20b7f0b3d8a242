"""Messages as people read them in chats and mail, in English or Chinese. Pure."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from flopwatch_collector.alerting.notices import MAX_LISTED

Language = Literal["en", "zh"]
_RULES_ZH = {
    "MfuLow": "MFU 低于目标", "MfuDrop": "MFU 下降", "MfuBelowNorm": "MFU 低于同类水平", "JobHang": "训练无进展",
    "HangSuspect": "疑似训练无进展", "IdleHeld": "占用 GPU 但无任务", "HighUtilLowMfu": "利用率高但 MFU 低",
    "Straggler": "慢节点", "StepSpikes": "步时尖峰", "HwThrottle": "硬件降频", "ThermalSlow": "温度降频",
    "ThermalThrottle": "温度降频", "RestartStorm": "频繁重启", "NoProgress": "多次重启无进展", "CkptSlow": "检查点过慢",
    "GpuLost": "GPU 丢失", "NodeDown": "节点故障", "NoData": "节点无数据", "AgentUnhealthy": "采集端异常",
    "BelowBreakeven": "利用率低于平衡线", "BudgetBurn": "预算超支", "DeadMan": "心跳", "TestAlert": "测试告警",
    "LowUtilUser": "用户利用率低", "GpuErrors": "GPU 错误", "LinkDegraded": "链路降级", "LemonNode": "反复出问题的节点",
}  # fmt: skip
_STATES_ZH = {"firing": "告警", "resolved": "已恢复"}
_SEVERITIES_ZH = {"critical": "严重", "warning": "警告", "info": "提示"}
_LABELS_ZH = {"cluster": "集群", "job_id": "任务编号", "node": "节点", "gpu": "GPU", "rank": "rank"}
_VALUES_ZH = {
    "job": "任务", "mfu": "MFU", "target": "目标", "gpus": "卡数", "user": "用户", "kernel_active": "kernel 活跃率",
    "tensor_active": "Tensor Core 活跃率", "hours": "小时", "last_step": "最后一步", "mean": "平均利用率",
    "line": "平衡线", "baseline": "此前", "norm": "同类水平", "share": "占比", "overdue_seconds": "无步时长",
    "node": "节点",
    "also": "另有节点", "hardware": "硬件", "launches": "启动次数", "incidents": "故障次数", "link": "链路",
    "budget": "预算", "problems": "缺失", "index": "卡号",
    "resolved_reason": "原因", "flapping": "反复触发", "stale": "数据已过时",
}  # fmt: skip
_GIVEN: Mapping[Language, Mapping[str, str]] = {
    "en": {"since": "Since", "cost": "Cost", "cause": "Likely cause", "explains": "Explains", "next": "Next"},
    "zh": {"since": "时间", "cost": "影响", "cause": "可能原因", "explains": "因此", "next": "处理"},
}
MAX_WHOLE = 3
"""So many alerts in a message are told with everything that is known of them."""
_NOT_SHOWN = frozenset(("summary",))
SIMULATED_ZH = "模拟数据"


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """A title of one line, and the text under it."""

    title: str
    text: str


def words_of(body: Mapping[str, Any], language: Language) -> Words:
    """A message of one or several alerts; at most ten are told one by one."""
    alerts: Sequence[Mapping[str, Any]] = body["alerts"]
    whole = len(alerts) <= MAX_WHOLE
    lines = [line for alert in alerts[:MAX_LISTED] for line in _alert(alert, language, whole=whole)]
    more = len(alerts) - MAX_LISTED
    if more > 0:
        lines.append(f"以及另外 {more} 条" if language == "zh" else f"and {more} more")
    return Words(title=_title(alerts, language), text="\n".join(lines))


def of_alert(alert: Mapping[str, Any], language: Language) -> Words:
    """A message of one alert."""
    return Words(title=_title([alert], language), text="\n".join(_alert(alert, language, whole=True)))


def _title(alerts: Sequence[Mapping[str, Any]], language: Language) -> str:
    """State, severity, rule and how many; a simulated cluster's says so first."""
    first = alerts[0]
    state = "firing" if any(alert["status"] == "firing" for alert in alerts) else "resolved"
    names = {_rule(alert, language) for alert in alerts}
    name = names.pop() if len(names) == 1 else ("多条规则" if language == "zh" else "several rules")
    simulated = any(alert["labels"].get("simulated") == "true" for alert in alerts)
    count = f" (x{len(alerts)})" if len(alerts) > 1 else ""
    severity = min((alert["labels"].get("severity", "info") for alert in alerts), key=_rank)
    if language == "zh":
        mark = f"【{SIMULATED_ZH}】" if simulated else ""
        return f"{mark}【{_STATES_ZH[state]}】{_SEVERITIES_ZH.get(severity, severity)} {name}{count}"
    mark = "SIMULATED " if simulated else ""
    cluster = first["labels"].get("cluster")
    return f"{mark}[{state.upper()}] {severity} {name}{count}" + (f" on {cluster}" if cluster else "")


def _rank(severity: str) -> int:
    return {"critical": 0, "warning": 1, "info": 2}.get(severity, 3)


def _rule(alert: Mapping[str, Any], language: Language) -> str:
    name = str(alert["labels"].get("alertname", ""))
    return _RULES_ZH.get(name, name) if language == "zh" else name


def _alert(alert: Mapping[str, Any], language: Language, *, whole: bool) -> list[str]:
    """What and where; since when, what it costs, why and what to do; and the page. Of many together not all of it."""
    annotations: Mapping[str, str] = alert["annotations"]
    if language == "zh":
        head = _alert_zh(alert)
    else:
        ended = "resolved: " if alert["status"] == "resolved" else ""
        head = [
            f"{ended}{annotations.get('summary', alert['labels'].get('alertname', ''))}",
        ]
    head += _more(alert, language) if whole else _given(annotations, language, ("cause", "explains"))
    link = alert.get("generatorURL")
    return [*head, str(link)] if link else head


def _more(alert: Mapping[str, Any], language: Language) -> list[str]:
    """When, at what cost, why, and what to do, each in a line of its own."""
    annotations: Mapping[str, str] = alert["annotations"]
    when = _when(alert)
    lines = [] if when is None else [f"{_GIVEN[language]['since']}: {when}"]
    return lines + _given(annotations, language, ("cost", "cause", "explains", "next"))


def _given(annotations: Mapping[str, str], language: Language, keys: Sequence[str]) -> list[str]:
    found = []
    for key in keys:
        told = f"{key}_zh" if language == "zh" and f"{key}_zh" in annotations else key
        if told in annotations:
            found.append(f"{_GIVEN[language][key]}: {annotations[told]}")
    return found


def _when(alert: Mapping[str, Any]) -> str | None:
    """When it began, and, where it is over, when it ended, in UTC; None where the message does not say."""
    start, end = (_moment(alert.get(name)) for name in ("startsAt", "endsAt"))
    if start is None:
        return None
    if alert["status"] != "resolved" or end is None:
        return f"{start:%Y-%m-%d %H:%M} UTC"
    day = "" if start.date() == end.date() else "%Y-%m-%d "
    return f"{start:%Y-%m-%d %H:%M} - {end:{day}%H:%M} UTC"


def _moment(text: object) -> datetime.datetime | None:
    """A time of a message; None of none, and of the year 1, which stands for one that is still to come."""
    if not isinstance(text, str) or not text or text.startswith("0001-"):
        return None
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(datetime.timezone.utc)


def _alert_zh(alert: Mapping[str, Any]) -> list[str]:
    annotations: Mapping[str, str] = alert["annotations"]
    labels: Mapping[str, str] = alert["labels"]
    where = [f"{_LABELS_ZH[key]} {labels[key]}" for key in _LABELS_ZH if key in labels]
    what = [
        f"{_VALUES_ZH[key]} {_value_zh(key, value)}"
        for key, value in annotations.items()
        if key in _VALUES_ZH and key not in _NOT_SHOWN and key not in labels
    ]
    head = f"{_rule(alert, 'zh')}({_STATES_ZH[alert['status']]}): " + ",".join([*what, *where])
    return [head]


_RATIOS = frozenset(
    ("mfu", "target", "kernel_active", "tensor_active", "mean", "line", "baseline", "norm", "share")
)


def _value_zh(key: str, value: str) -> str:
    if key in _RATIOS:
        try:
            return f"{float(value) * 100:.1f} %"
        except ValueError:
            return value
    if key == "overdue_seconds":
        return f"{float(value) / 60.0:.0f} 分钟"
    reasons = {"recovered": "已恢复", "ended": "任务已结束", "not_watched": "不再监测", "true": "是"}
    return reasons.get(value, value)
