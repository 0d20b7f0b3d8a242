"""``[[reports]]``: which reports go out by themselves, when, and to whom."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from flopwatch.settings import SettingError, section

ReportPeriod = Literal["daily", "weekly", "monthly"]
ReportLanguage = Literal["en", "zh"]
MailFormat = Literal["html", "csv", "json", "parquet", "focus"]
ReportBy = Literal["team", "user", "job", "node", "cluster", "group"]
ReportKind = Literal["report", "digest"]
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_ADDRESS = re.compile(r"[^@\s<>,;]+@[^@\s<>,;]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportSettings:
    """One ``[[reports]]``. A ``digest`` goes to each user about their own jobs; nothing goes out without one."""

    name: str = ""
    kind: ReportKind = "report"
    period: ReportPeriod = "weekly"
    at: str = "08:00"
    """Local time of day."""
    weekday: Weekday = "monday"
    """Of weekly ones."""
    day: int = 1
    """Of the month, of monthly ones."""
    by: ReportBy = "team"
    cluster: str | None = None
    format: MailFormat = "html"
    language: ReportLanguage = "en"
    server: str | None = field(default=None, repr=False)
    """The mail server and who sends, as Apprise spells it: ``mailtos://user:password@smtp.example.com?from=…``."""
    server_file: Path | None = None
    to: tuple[Any, ...] = ()
    """Mail addresses."""
    webhook: str | None = None
    """Name of a ``[[notify]]`` that takes the report as JSON."""
    recipients: dict[str, str] = field(default_factory=dict)
    """Of a digest: mail addresses by user; others get theirs from their jobs' owner contact, or ``domain``."""
    domain: str | None = None
    """Of a digest: who is not in ``recipients`` is ``user@domain``."""
    least_gpu_hours: float = 50.0
    least_share_ratio: float = 0.02
    """A digest goes to users with so many leased GPU-hours, and such a share of all."""
    most_utilisation_ratio: float = 0.25
    """… whose GPUs were busy less than this on average."""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise SettingError("reports.name", self.name, "a name for each [[reports]]")
        prefix = f"reports.{self.name}"
        if not _TIME.fullmatch(self.at):
            raise SettingError(f"{prefix}.at", self.at, "a time of day such as 08:00")
        if not 1 <= self.day <= 28:
            raise SettingError(f"{prefix}.day", self.day, "1 to 28")
        if self.server is not None and self.server_file is not None:
            raise SettingError(f"{prefix}.server", "(not shown)", "either server or server_file")
        for address in (*self.to, *self.recipients.values()):
            if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
                raise SettingError(f"{prefix}.to", address, "mail addresses such as team@example.com")
        self._require_levels(prefix)
        self._require_way(prefix)

    def _require_levels(self, prefix: str) -> None:
        for name in ("least_gpu_hours", "least_share_ratio", "most_utilisation_ratio"):
            if getattr(self, name) < 0:
                raise SettingError(f"{prefix}.{name}", getattr(self, name), "0 or more")

    def _require_way(self, prefix: str) -> None:
        has_server = self.server is not None or self.server_file is not None
        if (self.to or self.kind == "digest") and not has_server:
            raise SettingError(f"{prefix}.server", None, "a mail server, or server_file")
        if self.kind == "report" and not self.to and self.webhook is None:
            raise SettingError(f"{prefix}.to", (), "mail addresses, or webhook")
        if self.kind == "digest" and (self.to or self.webhook is not None):
            wrong = "to" if self.to else "webhook"
            raise SettingError(
                f"{prefix}.{wrong}", getattr(self, wrong), "recipients or domain, for a digest"
            )


def read_reports(tables: Mapping[str, Any]) -> tuple[ReportSettings, ...]:
    """All ``[[reports]]`` of a loaded settings file.

    Raises:
        SettingError: an unknown setting, a value that is not allowed, or a name given twice.
    """
    entries = tables.get("reports", [])
    if not isinstance(entries, list):
        raise SettingError("reports", entries, "an array of tables, [[reports]]")
    made = tuple(section(ReportSettings, "reports", {"reports": entry}, {}) for entry in entries)
    names = [report.name for report in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingError("reports.name", twice, "a name for each [[reports]] of its own")
    return made
