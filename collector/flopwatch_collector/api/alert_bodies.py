"""What people send to and read from ``/api/v1/alerts``."""

from typing import Annotated, Literal

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StringConstraints

LONGEST_REHEARSAL_SECONDS = 31 * 86_400.0
Text = Annotated[
    str, StringConstraints(min_length=1, max_length=2_000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]+$")
]
Who = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")]
Lasting = (
    Annotated[float, Field(ge=0.0, le=LONGEST_REHEARSAL_SECONDS)]
    | Annotated[str, StringConstraints(max_length=32, pattern=r"^([0-9]+(\.[0-9]+)?[smhdw])+$")]
)
"""Seconds, or ``"90s"``, ``"1h30m"``, ``"7d"``."""
Level = Annotated[float, Field(gt=0.0, lt=1e6)]
Fingerprint = Annotated[
    str, Path(pattern=r"^[0-9a-f]{64}$", description="The alert's fingerprint, as the query answers it.")
]
SilenceId = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$", description="Id of the silence.")]


class MatcherBody(BaseModel):
    """One condition on one label, as Alertmanager has it."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: Annotated[str, StringConstraints(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]{0,63}$")]
    """``alertname``, ``severity``, ``cluster``, ``job_id``, ``node``, ``team``, ``job`` …"""
    value: Annotated[str, StringConstraints(max_length=500)]
    is_regex: StrictBool = Field(default=False, alias="isRegex")
    is_equal: StrictBool = Field(default=True, alias="isEqual")


class SilenceBody(BaseModel):
    """A silence to make: alerts that all matchers fit are shown and not sent."""

    model_config = ConfigDict(extra="forbid")

    matchers: Annotated[list[MatcherBody], Field(min_length=1, max_length=20)]
    start_seconds: float | None = None
    """Default: now."""
    end_seconds: float
    created_by: Who | None = None
    """Default: the name of the token."""
    comment: Text


class WordBody(BaseModel):
    """A word on an alert."""

    model_config = ConfigDict(extra="forbid")

    comment: Text
    by: Who | None = None
    """Default: the name of the token."""


class SilenceAnswer(BaseModel):
    """A silence."""

    silence_id: str
    matchers: list[str]
    start_seconds: float
    end_seconds: float
    created_by: str
    comment: str
    created_seconds: float


class SilencesAnswer(BaseModel):
    """Silences, the first to end first."""

    silences: list[SilenceAnswer]


class WordAnswer(BaseModel):
    """What was said of an alert."""

    fingerprint: str
    by: str
    comment: str
    seconds: float


class AuditLine(BaseModel):
    """Who did what."""

    seconds: float
    by: str
    action: str
    subject: str


class AuditAnswer(BaseModel):
    """Changes, newest first."""

    entries: list[AuditLine]


class MatchersBody(BaseModel):
    """Whom would these matchers fit?"""

    model_config = ConfigDict(extra="forbid")

    matchers: Annotated[list[MatcherBody], Field(min_length=1, max_length=20)]


class FittingAnswer(BaseModel):
    """Fingerprints of the active alerts that all matchers fit, worst first."""

    fingerprints: list[str]


class RuleChange(BaseModel):
    """What is to be tried of a rule, as `[alerts.rules.NAME]` has it; what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    enabled: StrictBool | None = None
    lasting: Lasting | None = Field(default=None, alias="for")
    keep: Lasting | None = None
    level: Level | None = None
    clear_level: Level | None = None
    severity: Literal["critical", "warning", "info"] | None = None


class TrialBody(BaseModel):
    """Rules to try on the past; nothing is changed by it."""

    model_config = ConfigDict(extra="forbid")

    seconds: Annotated[float, Field(gt=0.0, le=LONGEST_REHEARSAL_SECONDS)] = 604_800.0
    """How far back."""
    rules: dict[str, RuleChange] = {}
    """By name of the rule."""
