"""``[alerts]``, ``[[notify]]`` and ``[[route]]``: the rules, their levels and times, and who hears of them."""

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from flopwatch.settings import SettingError, section
from flopwatch_collector import durations

ALERT_RULES = (
    "MfuLow", "MfuDrop", "MfuBelowNorm", "HighUtilLowMfu", "StepSpikes", "JobHang", "HangSuspect", "IdleHeld",
    "RestartStorm", "NoProgress", "CkptSlow", "Straggler", "HwThrottle", "ThermalThrottle", "NodeDown", "GpuLost",
    "GpuErrors", "LinkDegraded", "LemonNode", "NoData", "AgentUnhealthy", "BelowBreakeven", "BudgetBurn",
)  # fmt: skip
SEVERITIES = ("critical", "warning", "info")
LEVEL_FIELDS: dict[str, tuple[str | None, str | None]] = {"MfuLow": (None, "mfu_low_clear_factor")}
"""Rule, and the fields of ``AlertSettings`` that ``level`` and ``clear_level`` of its table set."""
LEVELLED = frozenset((
    "MfuDrop", "MfuBelowNorm", "HighUtilLowMfu", "StepSpikes", "RestartStorm", "NoProgress", "CkptSlow", "GpuErrors",
    "LinkDegraded", "LemonNode", "BudgetBurn",
))  # fmt: skip
"""Rules that read ``level`` and ``clear_level`` themselves."""
_NOT_NEGATIVE = (
    "mfu_low_for_seconds", "mfu_low_keep_seconds", "idle_held_for_seconds", "no_data_for_seconds", "warmup_steps",
    "observe_days", "group_wait_seconds", "group_interval_seconds",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleSettings:
    """``[alerts.rules.NAME]``: what a site changes of a rule; None keeps the rule's own."""

    enabled: bool | None = None
    for_seconds: float | None = None
    keep_seconds: float | None = None
    level: float | None = None
    clear_level: float | None = None
    severity: Literal["critical", "warning", "info"] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleOverride:
    """One ``[[alerts.override]]``: rules changed for a cluster, a team or a job; ``*`` stands for any text."""

    cluster: str = "*"
    team: str = "*"
    job: str = "*"
    rules: Mapping[str, RuleSettings] = field(default_factory=dict)

    def matches(self, cluster: str, team: str, job: str) -> bool:
        """Whether it is meant for this subject."""
        pairs = ((self.cluster, cluster), (self.team, team), (self.job, job))
        return all(fnmatch.fnmatchcase(value, pattern) for pattern, value in pairs)


@dataclass(frozen=True, kw_only=True, slots=True)
class AlertSettings:
    """``[alerts]``: levels and times of the rules."""

    mfu_low_for_seconds: float = 1800.0
    mfu_low_keep_seconds: float | None = None
    """How long MFU must stay above the clear level; default: as long as ``for``."""
    mfu_low_clear_factor: float = 1.1
    """Clears at target x factor."""
    warmup_steps: int = 5
    evaluate_seconds: float = 15.0
    idle_held_for_seconds: float = 1800.0
    no_data_for_seconds: float = 300.0
    observe_days: float = 7.0
    """New installs only show alerts for this long, before they send them."""
    send: tuple[str, ...] = ("MfuLow",)
    """Rules that send from the first day."""
    group_wait_seconds: float = 30.0
    """How long the first message of a group waits for more alerts of it."""
    group_interval_seconds: float = 300.0
    """Between two messages of a group in which something changed."""
    repeat_interval_seconds: float = 14_400.0
    """After this long a message about alerts that still fire is sent again; 0: never."""
    heartbeat_url: str | None = field(default=None, repr=False)
    """Asked while evaluation works, so that somebody else notices when it does not."""
    heartbeat_url_file: Path | None = None
    heartbeat_seconds: float = 60.0
    rules: Mapping[str, RuleSettings] = field(default_factory=dict)
    override: tuple[RuleOverride, ...] = ()

    def __post_init__(self) -> None:
        for name in _NOT_NEGATIVE:
            value = getattr(self, name)
            if value is not None and value < 0:
                raise SettingError(f"alerts.{name}", value, "0 or more")
        for rule in self.send:
            if rule not in ALERT_RULES:
                raise SettingError("alerts.send", rule, "names of rules: " + ", ".join(ALERT_RULES))
        if self.mfu_low_clear_factor < 1.0:
            raise SettingError("alerts.mfu_low_clear_factor", self.mfu_low_clear_factor, "1 or more")
        if not 1.0 <= self.evaluate_seconds <= 300.0:
            raise SettingError("alerts.evaluate_seconds", self.evaluate_seconds, "1 to 300")
        self._check_delivery()

    def _check_delivery(self) -> None:
        repeat = self.repeat_interval_seconds
        if repeat and repeat < max(60.0, self.group_interval_seconds):
            raise SettingError(
                "alerts.repeat_interval_seconds", repeat, "0, or at least 60 and group_interval_seconds"
            )
        if self.heartbeat_seconds < 1.0:
            raise SettingError("alerts.heartbeat_seconds", self.heartbeat_seconds, "1 or more")
        if self.heartbeat_url is not None and self.heartbeat_url_file is not None:
            raise SettingError(
                "alerts.heartbeat_url_file", str(self.heartbeat_url_file), "heartbeat_url or this"
            )

    def changed_by(self, changes: Mapping[str, RuleSettings]) -> "AlertSettings":
        """These settings with the levels of ``changes``, and ``rules`` merged field by field.

        Raises:
            SettingError: a level is not allowed.
        """
        levels = {
            name: value
            for rule, one in changes.items()
            for name, value in zip(
                LEVEL_FIELDS.get(rule, (None, None)), (one.level, one.clear_level), strict=True
            )
            if name is not None and value is not None
        }
        merged = {**self.rules, **{rule: _merged(self.rules.get(rule), one) for rule, one in changes.items()}}
        return replace(self, rules=merged, **levels)  # type: ignore[arg-type]  # names are those of fields


def _merged(base: RuleSettings | None, more: RuleSettings) -> RuleSettings:
    given = {each.name: getattr(more, each.name) for each in fields(more)}
    return replace(
        base or RuleSettings(), **{name: value for name, value in given.items() if value is not None}
    )


NotifyKind = Literal[
    "webhook", "alertmanager", "apprise", "feishu", "lark", "dingtalk", "smtp",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class NotifySettings:
    """One ``[[notify]]``: where alerts go."""

    kind: NotifyKind = "webhook"
    name: str = "webhook"
    url: str | None = field(default=None, repr=False)
    url_file: Path | None = None
    token_file: Path | None = None
    timeout_seconds: float = 10.0
    secret: str | None = field(default=None, repr=False)
    """Of Feishu, Lark and DingTalk bots with signature check."""
    secret_file: Path | None = None
    language: Literal["en", "zh"] = "en"
    messages_per_minute: int = 10
    host: str | None = None
    """SMTP server."""
    port: int | None = None
    tls: Literal["starttls", "tls", "none"] = "starttls"
    ca_file: Path | None = None
    """Authorities that the SMTP server's certificate is checked against; default: the system's."""
    username: str | None = None
    password_file: Path | None = None
    sender: str | None = None
    to: tuple[str, ...] = ()
    owners: bool = False
    """Mail also to the contact that the job declares of its owner."""

    def __post_init__(self) -> None:
        if not 1 <= self.messages_per_minute <= 600:
            raise SettingError(
                f"notify.{self.name}.messages_per_minute", self.messages_per_minute, "1 to 600"
            )
        if self.timeout_seconds <= 0:
            raise SettingError(f"notify.{self.name}.timeout_seconds", self.timeout_seconds, "above 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class RouteSettings:
    """One ``[[route]]``: which alerts go to which channels. Lists are alternatives, ``*`` stands for any text."""

    cluster: tuple[str, ...] = ()
    team: tuple[str, ...] = ()
    severity: tuple[str, ...] = ()
    rule: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    """Names of ``[[notify]]``; none: these alerts are shown and not sent."""
    go_on: bool = False
    """``continue``: look at the following routes too."""


def read_alerts(tables: Mapping[str, Any], environ: Mapping[str, str]) -> AlertSettings:
    """``[alerts]`` with its rules and overrides.

    Raises:
        SettingError: an unknown setting, a wrong type, or a value that is not allowed.
    """
    table = tables.get("alerts", {})
    if not isinstance(table, Mapping):
        raise SettingError("alerts", table, "a table")
    plain = {key: value for key, value in table.items() if key not in ("rules", "override")}
    times = {
        key: _seconds(f"alerts.{key}", value) for key, value in plain.items() if key.endswith("_seconds")
    }
    base = section(AlertSettings, "alerts", {"alerts": {**plain, **times}}, environ)
    made = base.changed_by(rules_of("alerts.rules", table.get("rules", {})))
    overrides = tuple(_override(entry) for entry in _array("alerts.override", table.get("override", [])))
    for one in overrides:
        made.changed_by(one.rules)
    return replace(made, override=overrides)


def _override(entry: Mapping[str, Any]) -> RuleOverride:
    allowed = {"cluster", "team", "job", "rules"}
    unknown = sorted(set(entry) - allowed)
    if unknown:
        raise SettingError(
            f"alerts.override.{unknown[0]}", entry[unknown[0]], "one of " + ", ".join(sorted(allowed))
        )
    words = {key: entry[key] for key in ("cluster", "team", "job") if key in entry}
    if not words:
        raise SettingError("alerts.override", dict(entry), "cluster, team or job: whom it is for")
    for key, value in words.items():
        if not isinstance(value, str) or not value:
            raise SettingError(f"alerts.override.{key}", value, "a name, * for any text")
    return RuleOverride(**words, rules=rules_of("alerts.override.rules", entry.get("rules", {})))


def rules_of(name: str, table: object) -> dict[str, RuleSettings]:
    """``[alerts.rules]`` or a table like it; ``name`` is said in errors.

    Raises:
        SettingError: an unknown rule or setting, a wrong type, or a value that is not allowed.
    """
    if not isinstance(table, Mapping):
        raise SettingError(name, table, "tables by name of rule")
    unknown = sorted(set(table) - set(ALERT_RULES))
    if unknown:
        raise SettingError(f"{name}.{unknown[0]}", table[unknown[0]], "one of " + ", ".join(ALERT_RULES))
    return {rule: _rule(f"{name}.{rule}", rule, values) for rule, values in table.items()}


MOST_LEVEL = 1e6
_RULE_KEYS = {
    "enabled": "enabled", "for": "for_seconds", "keep": "keep_seconds", "level": "level",
    "clear_level": "clear_level", "severity": "severity",
}  # fmt: skip


def _rule(name: str, rule: str, table: object) -> RuleSettings:
    if not isinstance(table, Mapping):
        raise SettingError(name, table, "a table")
    unknown = sorted(set(table) - set(_RULE_KEYS))
    if unknown:
        raise SettingError(f"{name}.{unknown[0]}", table[unknown[0]], "one of " + ", ".join(_RULE_KEYS))
    values = {_RULE_KEYS[key]: value for key, value in table.items()}
    for key in ("for", "keep"):
        if key in table:
            values[_RULE_KEYS[key]] = _seconds(f"{name}.{key}", table[key])
    made = section(RuleSettings, name, {name: values}, {})
    _check_levels(name, rule, made)
    return made


def _check_levels(name: str, rule: str, made: RuleSettings) -> None:
    fields_of = LEVEL_FIELDS.get(rule, (None, None))
    for key, target in zip(("level", "clear_level"), fields_of, strict=True):
        value = getattr(made, key)
        if value is None:
            continue
        if target is None and rule not in LEVELLED:
            raise SettingError(f"{name}.{key}", value, f"nothing: {rule} has no such level")
        if not 0.0 < value < MOST_LEVEL:
            raise SettingError(f"{name}.{key}", value, f"above 0 and below {MOST_LEVEL:.0f}")


def _seconds(name: str, value: object) -> float:
    seconds = durations.seconds_of(value)
    if seconds is None:
        raise SettingError(name, value, durations.ALLOWED)
    return seconds


def _array(name: str, value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(entry, Mapping) for entry in value):
        raise SettingError(name, value, f"an array of tables, [[{name}]]")
    return value


def read_notify(tables: Mapping[str, Any]) -> tuple[NotifySettings, ...]:
    """All ``[[notify]]``.

    Raises:
        SettingError: an unknown setting, a wrong type, or a value that is not allowed.
    """
    entries = tables.get("notify", [])
    if not isinstance(entries, list):
        raise SettingError("notify", entries, "an array of tables, [[notify]]")
    return tuple(section(NotifySettings, "notify", {"notify": entry}, {}) for entry in entries)


def read_routes(tables: Mapping[str, Any], notify: tuple[NotifySettings, ...]) -> tuple[RouteSettings, ...]:
    """All ``[[route]]``, in order.

    Raises:
        SettingError: an unknown setting, a wrong type, a severity or a rule or a channel that does not exist.
    """
    return tuple(_route(dict(entry), notify) for entry in _array("route", tables.get("route", [])))


def _route(entry: dict[str, Any], notify: tuple[NotifySettings, ...]) -> RouteSettings:
    if "go_on" in entry:
        raise SettingError("route.go_on", entry["go_on"], "continue = true")
    if "continue" in entry:
        if not isinstance(entry["continue"], bool):
            raise SettingError("route.continue", entry["continue"], "true or false")
        entry["go_on"] = entry.pop("continue")
    for key in ("cluster", "team", "severity", "rule"):
        if isinstance(entry.get(key), str):
            entry[key] = [entry[key]]
    return _with_known_words(section(RouteSettings, "route", {"route": entry}, {}), notify)


def _with_known_words(route: RouteSettings, notify: tuple[NotifySettings, ...]) -> RouteSettings:
    """The route, when every severity, rule and channel that it names exists."""
    names = tuple(channel.name for channel in notify)
    for key, given, known in (
        ("severity", route.severity, SEVERITIES),
        ("rule", route.rule, ALERT_RULES),
        ("channels", route.channels, names),
    ):
        for word in given:
            if not isinstance(word, str) or (word not in known and "*" not in word):
                raise SettingError(f"route.{key}", word, "one of " + (", ".join(known) or "no [[notify]]"))
    return route
