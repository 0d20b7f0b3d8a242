"""The body of Alertmanager's webhook, version 4: what many bridges to chat, mail and paging already read. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flopwatch_collector.alerting.notices import MAX_LISTED, Notice, NoticeAlert


def webhook_body(notices: Sequence[Notice], receiver: str, external_url: str) -> dict[str, Any]:
    """One message of one notice, or of several that had to be sent together (a digest).

    A digest has no group labels, and is ``firing`` when any of its alerts is.
    """
    alerts = [alert for notice in notices for alert in notice.alerts]
    group_labels = dict(notices[0].group_labels) if len(notices) == 1 else {}
    common_annotations = _common(alert.annotations for alert in alerts)
    common_annotations["summary"] = summary(alerts)
    return {
        "version": "4",
        "groupKey": group_key(group_labels),
        "truncatedAlerts": 0,
        "status": "firing" if any(alert.status == "firing" for alert in alerts) else "resolved",
        "receiver": receiver,
        "groupLabels": group_labels,
        "commonLabels": _common(alert.labels for alert in alerts),
        "commonAnnotations": common_annotations,
        "externalURL": external_url,
        "alerts": [_alert(alert) for alert in alerts],
    }


def group_key(labels: Mapping[str, str]) -> str:
    """Alertmanager's text of a group: ``{}:{alertname="MfuLow", cluster="a"}``."""
    inside = ", ".join(f'{name}="{_escaped(labels[name])}"' for name in sorted(labels))
    return f"{{}}:{{{inside}}}"


def summary(alerts: Sequence[NoticeAlert]) -> str:
    """The alerts' own summaries, at most ten, and how many more there are."""
    named = [alert.annotations.get("summary", alert.labels["alertname"]) for alert in alerts[:MAX_LISTED]]
    resolved = all(alert.status == "resolved" for alert in alerts)
    more = [f"and {len(alerts) - MAX_LISTED} more"] if len(alerts) > MAX_LISTED else []
    return ("resolved: " if resolved else "") + "; ".join([*named, *more])


def _alert(alert: NoticeAlert) -> dict[str, Any]:
    return {
        "status": alert.status,
        "labels": alert.labels,
        "annotations": alert.annotations,
        "startsAt": alert.starts_at,
        "endsAt": alert.ends_at,
        "generatorURL": alert.generator_url,
        "fingerprint": alert.fingerprint,
    }


def _common(tables: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """What all tables say alike."""
    rows = list(tables)
    return {key: value for key, value in rows[0].items() if all(row.get(key) == value for row in rows[1:])}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
