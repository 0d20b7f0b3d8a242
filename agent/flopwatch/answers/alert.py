"""Alerts as the pages show them."""

from dataclasses import dataclass
from typing import Any, Literal

from flopwatch.answers.frame import Status

Severity = Literal["critical", "warning", "info"]
AlertState = Literal["pending", "firing", "clearing", "resolved", "no_data"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertRow:
    """One alert: its identity labels, where it stands, and what to say."""

    fingerprint: str
    rule: str
    severity: Severity
    state: AlertState
    labels: dict[str, str]
    values: dict[str, Any]
    """For the text table: ``alert.<rule>`` takes them."""
    active_since_seconds: float | None
    fired_seconds: float | None
    resolved_seconds: float | None
    resolved_reason: str | None
    stale: bool
    summary: str
    """English, as sent to the channels."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alerts:
    """Active alerts and the newest history."""

    status: Status
    active: tuple[AlertRow, ...]
    history: tuple[AlertRow, ...]
