"""Alerts as the pages show them."""

from dataclasses import dataclass, field
from typing import Any, Literal

from flopwatch.answers.frame import Status

Severity = Literal["critical", "warning", "info"]
AlertState = Literal["pending", "firing", "clearing", "resolved", "no_data"]


ACTIVE_STATES: frozenset[AlertState] = frozenset(("firing", "clearing"))
"""States in which an alert counts as active."""


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
    silenced_by: str | None = None
    """Id of the silence, or ``maintenance``; it is shown and not sent."""
    inhibited_by: str | None = None
    """The rule of the alert that already explains it; it is shown and not sent."""
    observed: bool = False
    """The install still watches this rule; it is shown and not sent."""
    acknowledged_by: str | None = None
    comments: tuple["AlertComment", ...] = ()
    """Oldest first."""
    context: dict[str, str] = field(default_factory=dict)
    """What matchers may ask for besides the labels: ``job`` (its name) and ``team`` of a job's alert."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertComment:
    """A word on an alert."""

    by: str
    text: str
    time_seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SilenceInfo:
    """A silence that holds, or will."""

    silence_id: str
    matchers: tuple[str, ...]
    """As Alertmanager writes them: ``job_id=~"llama.*"``."""
    start_seconds: float
    end_seconds: float | None
    """``None``: until the maintenance ends."""
    created_by: str
    comment: str


RuleSubject = Literal["job", "node", "gpu", "link", "fleet", "budget"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleTerms:
    """What holds of a rule here: what the site sets, else the rule's own."""

    subject: RuleSubject
    """What one alert of it is about."""
    fires: str
    """When it fires, in English; the surface has its own words by the rule's name."""
    severity: Severity
    """The first one; some rules rise to critical by themselves."""
    for_seconds: float | None
    """``None``: it depends on the run's own pace."""
    keep_seconds: float | None
    level: float | None
    """``None``: the rule has no level that can be set."""
    clear_level: float | None
    """Of MfuLow: share of the job's target."""
    level_unit: Literal["ratio", "factor", "count"] | None
    """``ratio``: a share, 0.3 is 30 %; ``factor``: so many times the usual; ``count``: so many."""
    below: bool | None
    """Whether it fires below its level; ``None`` without one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleInfo:
    """A rule as it is set here, and how often it fired."""

    rule: str
    enabled: bool
    sends: bool
    """Whether its alerts go to the channels yet."""
    for_seconds: float | None
    """What the site sets; ``None``: the rule's own, as below."""
    keep_seconds: float | None
    level: float | None
    clear_level: float | None
    severity: Severity | None
    firing: int
    """Alerts of it that fire now."""
    fired: int
    """Alerts of it that fired within the range, the present ones too."""
    terms: RuleTerms | None = None
    """``None`` from a source older than this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alerts:
    """Active alerts and the newest history."""

    status: Status
    active: tuple[AlertRow, ...]
    history: tuple[AlertRow, ...]
    silences: tuple[SilenceInfo, ...] = ()
    rules: tuple[RuleInfo, ...] = ()
    """Every rule; none where the source of the data evaluates none."""
