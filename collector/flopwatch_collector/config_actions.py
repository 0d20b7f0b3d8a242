"""``[[action]]``: what may be done when an alert stands; nothing is unless a site writes one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flopwatch.settings import SettingError, section
from flopwatch_collector.config_alerts import ALERT_RULES


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionSettings:
    """One ``[[action]]``: a command or a webhook, for alerts of some rules that go on firing."""

    name: str = ""
    rule: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    """Program and arguments, run without a shell; the alert is in ``FLOPWATCH_…`` variables and on its input."""
    url: str | None = field(default=None, repr=False)
    """Instead of a command: gets the alert as JSON in a POST."""
    confirmations: int = 3
    """So many evaluations in a row must find the alert firing."""
    cooldown_seconds: float = 3_600.0
    """Between two actions on the same node or job."""
    most_per_day: int = 3
    """Of this action over all subjects: a fault of the watcher must not empty a cluster."""
    dry_run: bool = True
    """Only the audit line is written."""
    timeout_seconds: float = 30.0
    audit_file: Path | None = None
    """One JSON line an action, besides the log."""

    def __post_init__(self) -> None:
        prefix = f"action.{self.name}"
        if not self.name.strip():
            raise SettingError("action.name", self.name, "a name for each [[action]]")
        if not self.rule or not set(self.rule) <= set(ALERT_RULES):
            raise SettingError(f"{prefix}.rule", self.rule, "names of rules: " + ", ".join(ALERT_RULES))
        if bool(self.command) == (self.url is not None):
            raise SettingError(f"{prefix}.command", self.command, "either command or url")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise SettingError(
                f"{prefix}.url", "(not shown)", "an address that begins with http:// or https://"
            )
        for field_, value, least in (
            ("confirmations", self.confirmations, 1), ("most_per_day", self.most_per_day, 1),
            ("cooldown_seconds", self.cooldown_seconds, 0), ("timeout_seconds", self.timeout_seconds, 0.1),
        ):  # fmt: skip
            if value < least:
                raise SettingError(f"{prefix}.{field_}", value, f"{least} or more")


def read_actions(tables: Mapping[str, Any]) -> tuple[ActionSettings, ...]:
    """All ``[[action]]`` of a loaded settings file.

    Raises:
        SettingError: an unknown setting, a value that is not allowed, or a name given twice.
    """
    entries = tables.get("action", [])
    if not isinstance(entries, list):
        raise SettingError("action", entries, "an array of tables, [[action]]")
    made = tuple(section(ActionSettings, "action", {"action": entry}, {}) for entry in entries)
    names = [one.name for one in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingError("action.name", twice, "a name for each [[action]] of its own")
    return made
