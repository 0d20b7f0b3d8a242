"""Alerts that the site's own rules raise: Prometheus keeps them as the series ``ALERTS``."""

import hashlib
from collections.abc import Mapping

from flopwatch.query import AlertRow, AlertState, Severity
from flopwatch_collector.prometheus.dialect import quoted
from flopwatch_collector.prometheus.site import Site

SEVERITIES: Mapping[str, Severity] = {
    "critical": "critical", "page": "critical", "error": "critical", "warning": "warning", "info": "info",
    "none": "info",
}  # fmt: skip
"""What sites call the severity; any other word is a warning."""
ORDER: tuple[Severity, ...] = ("critical", "warning", "info")
NOT_LABELS = frozenset(("__name__", "alertname", "alertstate", "severity"))


def active_alerts(site: Site, cluster: str | None) -> tuple[AlertRow, ...]:
    """Alerts that are pending or firing, worst first."""
    if "ALERTS" not in site.dialect.present:
        return ()
    wanted = site.scope(cluster).cluster
    matcher = "" if wanted is None else f"{{{site.cluster_label}={quoted(wanted)}}}"
    since = {_key(row.labels): row.value for row in site.ask(f"ALERTS_FOR_STATE{matcher}")}
    rows = [_row(row.labels, since.get(_key(row.labels))) for row in site.ask(f"ALERTS{matcher}")]
    return tuple(sorted(rows, key=lambda row: (ORDER.index(row.severity), row.rule, row.fingerprint)))


def _row(labels: Mapping[str, str], since: float | None) -> AlertRow:
    own = {name: value for name, value in labels.items() if name not in NOT_LABELS}
    name = labels.get("alertname", "")
    state: AlertState = "firing" if labels.get("alertstate") == "firing" else "pending"
    told = ", ".join(f"{key}={value}" for key, value in sorted(own.items()))
    return AlertRow(
        fingerprint=hashlib.sha256(repr((name, sorted(own.items()))).encode()).hexdigest(),
        rule=name,
        severity=SEVERITIES.get(labels.get("severity", "").lower(), "warning"),
        state=state,
        labels=own,
        values={},
        active_since_seconds=since,
        fired_seconds=None,
        resolved_seconds=None,
        resolved_reason=None,
        stale=False,
        summary=f"{name}: {told}" if told else name,
    )


def _key(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((n, v) for n, v in labels.items() if n not in ("__name__", "alertstate")))
