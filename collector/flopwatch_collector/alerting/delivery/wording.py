"""Messages as people read them in chats and mail, in English or Chinese. Pure."""

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
    "line": "平衡线", "resolved_reason": "原因", "flapping": "反复触发", "stale": "数据已过时",
}  # fmt: skip
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
    lines = [line for alert in alerts[:MAX_LISTED] for line in _alert(alert, language)]
    more = len(alerts) - MAX_LISTED
    if more > 0:
        lines.append(f"以及另外 {more} 条" if language == "zh" else f"and {more} more")
    return Words(title=_title(alerts, language), text="\n".join(lines))


def of_alert(alert: Mapping[str, Any], language: Language) -> Words:
    """A message of one alert."""
    return Words(title=_title([alert], language), text="\n".join(_alert(alert, language)))


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


def _alert(alert: Mapping[str, Any], language: Language) -> list[str]:
    annotations: Mapping[str, str] = alert["annotations"]
    if language == "zh":
        head = _alert_zh(alert)
    else:
        ended = "resolved: " if alert["status"] == "resolved" else ""
        head = [
            f"{ended}{annotations.get('summary', alert['labels'].get('alertname', ''))}",
            *_more(annotations),
        ]
    link = alert.get("generatorURL")
    return [*head, str(link)] if link else head


def _more(annotations: Mapping[str, str]) -> list[str]:
    """Why, and what it explains, each in a line of its own."""
    given = (("Likely cause", "cause"), ("Explains", "explains"))
    return [f"{words}: {annotations[key]}" for words, key in given if key in annotations]


def _alert_zh(alert: Mapping[str, Any]) -> list[str]:
    annotations: Mapping[str, str] = alert["annotations"]
    labels: Mapping[str, str] = alert["labels"]
    where = [f"{_LABELS_ZH[key]} {labels[key]}" for key in _LABELS_ZH if key in labels]
    what = [
        f"{_VALUES_ZH[key]} {_value_zh(key, value)}"
        for key, value in annotations.items()
        if key in _VALUES_ZH and key not in _NOT_SHOWN
    ]
    head = f"{_rule(alert, 'zh')}({_STATES_ZH[alert['status']]}): " + ",".join([*what, *where])
    given = (("可能原因", "cause_zh"), ("因此", "explains"))
    return [head, *(f"{words}: {annotations[key]}" for words, key in given if key in annotations)]


_RATIOS = frozenset(("mfu", "target", "kernel_active", "tensor_active", "mean", "line"))


def _value_zh(key: str, value: str) -> str:
    if key in _RATIOS:
        try:
            return f"{float(value) * 100:.1f} %"
        except ValueError:
            return value
    reasons = {"recovered": "已恢复", "ended": "任务已结束", "not_watched": "不再监测", "true": "是"}
    return reasons.get(value, value)
