"""From the states of alerts to what is to be said: who is due, who is inhibited, what goes together. Pure."""

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import quote

from flopwatch.query import Severity
from flopwatch_collector.alerting import advice
from flopwatch_collector.alerting.state import AlertRecord

NoticeStatus = Literal["firing", "resolved"]
STILL_FIRING = "0001-01-01T00:00:00Z"
"""``endsAt`` of an alert that has not ended, as Alertmanager writes it."""
SEVERITY_ORDER: Mapping[Severity, int] = {"critical": 0, "warning": 1, "info": 2}
CAUSED = frozenset(
    ("MfuLow", "MfuDrop", "MfuBelowNorm", "HighUtilLowMfu", "StepSpikes", "CkptSlow", "Straggler")
)
"""Rules that say that a job is slow, and not why."""
GROUP_LABELS = ("cluster", "job_id")
MAX_LISTED = 10
"""Members named in a message's summary; the alerts themselves are all in it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NoticeAlert:
    """One alert in a message, in the words of Alertmanager's webhook."""

    status: NoticeStatus
    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: str
    ends_at: str
    generator_url: str
    fingerprint: str
    team: str = ""
    """Account of the job, for routes; it is not in the message."""
    owner: str = ""
    """Contact of the job's owner; it is not in the message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """One message: alerts of one group that changed together."""

    status: NoticeStatus
    group_labels: dict[str, str]
    alerts: tuple[NoticeAlert, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wording:
    """What every message carries besides its alerts."""

    external_url: str
    simulated: bool = False
    costs: Mapping[str, "Cost"] = field(default_factory=dict)
    """Of running jobs, by id."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What a job holds, and what it has wasted today."""

    gpus: int | None
    wasted_gpu_hours: float

    @property
    def english(self) -> str:
        """In words."""
        return f"{_gpus(self.gpus)} GPUs; wasted today: {self.wasted_gpu_hours:,.1f} GPU-hours"

    @property
    def chinese(self) -> str:
        """In words."""
        return f"{_gpus(self.gpus)} 卡；今日浪费 {self.wasted_gpu_hours:,.1f} 卡时"  # noqa: RUF001 - Chinese punctuation


def _gpus(count: int | None) -> str:
    return "?" if count is None else str(count)


def due(record: AlertRecord) -> NoticeStatus | None:
    """What has to be said of this alert and has not been: each change of severity, and the end, once."""
    if record.state == "firing" and record.sent_severity != record.severity:
        return "firing"
    if record.state == "resolved" and record.sent_severity is not None and not record.resolved_sent:
        return "resolved"
    return None


def marked_sent(record: AlertRecord, status: NoticeStatus, now: float) -> AlertRecord:
    """The record once its notice is in the outbox."""
    if status == "resolved":
        return replace(record, resolved_sent=True, sent_seconds=now)
    return replace(record, sent_severity=record.severity, sent_seconds=now)


def grouped(changes: Iterable[tuple[NoticeStatus, AlertRecord]], wording: Wording) -> tuple[Notice, ...]:
    """Messages, one for each (status, rule, cluster, job), worst first."""
    groups: dict[tuple[str, ...], list[tuple[NoticeStatus, AlertRecord]]] = {}
    for status, record in sorted(changes, key=_worst_first):
        key = (status, record.rule, *(record.labels.get(name, "") for name in GROUP_LABELS))
        groups.setdefault(key, []).append((status, record))
    return tuple(_notice(members, wording) for members in groups.values())


def _worst_first(change: tuple[NoticeStatus, AlertRecord]) -> tuple[int, str, str]:
    record = change[1]
    return SEVERITY_ORDER[record.severity], record.rule, record.fingerprint


def _notice(members: list[tuple[NoticeStatus, AlertRecord]], wording: Wording) -> Notice:
    status, first = members[0]
    labels = {"alertname": first.rule}
    labels.update({name: first.labels[name] for name in GROUP_LABELS if name in first.labels})
    alerts = tuple(notice_alert(status, record, wording) for status, record in members)
    return Notice(status=status, group_labels=labels, alerts=alerts)


def notice_alert(status: NoticeStatus, record: AlertRecord, wording: Wording) -> NoticeAlert:
    """One alert as messages have it."""
    ended = record.resolved_seconds if status == "resolved" else None
    return NoticeAlert(
        status=status,
        labels=shown_labels(record, simulated=wording.simulated),
        annotations=_annotations(record, wording),
        starts_at=timestamp(record.fired_seconds or record.active_since_seconds),
        ends_at=STILL_FIRING if ended is None else timestamp(ended),
        generator_url=_page(record, wording.external_url),
        fingerprint=record.fingerprint,
        team=record.context.get("team", ""),
        owner=record.context.get("owner", ""),
    )


def shown_labels(record: AlertRecord, *, simulated: bool) -> dict[str, str]:
    """The labels of a message: name, severity and identity; marked where the cluster is a simulated one."""
    labels = {"alertname": record.rule, "severity": record.severity, **record.labels}
    if simulated:
        labels["simulated"] = "true"
    return labels


def _annotations(record: AlertRecord, wording: Wording) -> dict[str, str]:
    mark = "SIMULATED: " if wording.simulated else ""
    annotations = {"summary": f"{mark}{record.summary}"}
    annotations.update(
        {key: f"{value:.6g}" if isinstance(value, float) else str(value) for key, value in _known(record)}
    )
    annotations.update(more_of(record))
    cost = wording.costs.get(record.labels.get("job_id", ""))
    if cost is not None:
        annotations |= {"cost": cost.english, "cost_zh": cost.chinese}
    if record.rule in advice.ENGLISH and record.state != "resolved":
        annotations |= {"next": advice.ENGLISH[record.rule], "next_zh": advice.CHINESE[record.rule]}
    if record.resolved_reason is not None:
        annotations["resolved_reason"] = record.resolved_reason
    if record.flapping:
        annotations["flapping"] = "true"
    if record.stale:
        annotations["stale"] = "true"
    return annotations


def more_of(record: AlertRecord) -> dict[str, str]:
    """What is said under the summary: the job's likely cause, and the slow job that a throttled GPU explains."""
    wanted = ("cause", "cause_zh") if record.rule in CAUSED else ("explains",)
    return {key: record.context[key] for key in wanted if key in record.context}


def _known(record: AlertRecord) -> list[tuple[str, object]]:
    return [(key, value) for key, value in record.values.items() if value is not None and key != "summary"]


def _page(record: AlertRecord, external_url: str) -> str:
    base = external_url.rstrip("/")
    if "job_id" in record.labels:
        return f"{base}/ui/jobs/{quote(record.labels['job_id'], safe='')}"
    if "gpu" in record.labels:
        return f"{base}/ui/gpus/{quote(record.labels['gpu'], safe='')}"
    if "node" in record.labels:
        return f"{base}/ui/nodes/{quote(record.labels['node'], safe='')}"
    if record.rule == "BelowBreakeven":
        return f"{base}/ui/breakeven"
    return f"{base}/ui/alerts"


def timestamp(seconds: float) -> str:
    """RFC 3339 in UTC with milliseconds."""
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
