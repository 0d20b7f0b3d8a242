"""Settings of schedulers and of what is declared of nodes: maintenance, spares, the nodes that are expected."""

import dataclasses
import datetime
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from flopwatch.settings import SettingError, section

T = TypeVar("T")
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKLY = re.compile(r"(?P<day>[a-z]{3}|daily) (?P<hour>\d\d):(?P<minute>\d\d)")
WEEKLY_ALLOWED = 'a day and a time: "sun 02:00" (mon … sun), or "daily 02:00"'
TIME_ALLOWED = 'an ISO time such as "2026-12-01T08:00", with a zone or in collector.time_zone'


@dataclass(frozen=True, kw_only=True, slots=True)
class SchedulerSettings:
    """One ``[[scheduler]]``: who says which job holds which GPUs, and what waits."""

    kind: Literal["slurm", "kubernetes"] = "slurm"
    name: str = ""
    """For messages; default: the kind."""
    cluster: str = "default"
    """The cluster's name, as its agents have it."""
    interval_seconds: float = 30.0
    timeout_seconds: float = 20.0
    url: str | None = None
    """slurmrestd or the Kubernetes API; default: Slurm's commands, the cluster that the collector runs in."""
    token_file: Path | None = None
    ca_file: Path | None = None
    user_name: str | None = None
    """Slurm: the user of the token; default: the one it was made for."""
    api_version: str | None = None
    """Slurm: version of slurmrestd's API; default: the newest that both know."""
    commands: Path | None = None
    """Slurm: folder of its commands; default: those on ``PATH``."""
    accounting: bool = True
    """Slurm: ask accounting how jobs ended that the controller has forgotten."""
    user_label: str | None = None
    account_label: str | None = None
    gpu_resources: tuple[str, ...] = ("nvidia.com/gpu", "nvidia.com/mig-*")

    def __post_init__(self) -> None:
        if not 5.0 <= self.interval_seconds <= 3600.0:
            raise SettingError("scheduler.interval_seconds", self.interval_seconds, "5 to 3600")
        if not 1.0 <= self.timeout_seconds <= 600.0:
            raise SettingError("scheduler.timeout_seconds", self.timeout_seconds, "1 to 600")
        parts = urllib.parse.urlsplit(self.url or "http://none")
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.password:
            raise SettingError(
                "scheduler.url",
                parts._replace(netloc=parts.hostname or "").geturl(),
                "http:// or https:// and a host",
            )
        if self.api_version is not None and not re.fullmatch(r"v0\.0\.\d+", self.api_version):
            raise SettingError("scheduler.api_version", self.api_version, "a version such as v0.0.42")
        if self.kind == "kubernetes" and self.commands is not None:
            raise SettingError("scheduler.commands", str(self.commands), 'unset with kind = "kubernetes"')
        if not self.gpu_resources:
            raise SettingError("scheduler.gpu_resources", [], "names of resources, * matches any text")

    @property
    def shown_name(self) -> str:
        """The name for messages."""
        return self.name or self.kind


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowSettings:
    """One ``[[maintenance]]`` or ``[[spare]]``: nodes, and from when to when."""

    nodes: tuple[str, ...] = ()
    """Names; ``*`` matches any text."""
    cluster: str = "*"
    gpus: tuple[str, ...] = ()
    """Slots or indices; default: all of the node."""
    begin: str | None = None
    end: str | None = None
    every: str | None = None
    """``sun 02:00`` or ``daily 02:00``, for ``hours``."""
    hours: float | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if not self.nodes:
            raise SettingError("maintenance.nodes", [], "names of nodes, * matches any text")
        for name in ("begin", "end"):
            text = getattr(self, name)
            if text is not None:
                parsed_time(f"maintenance.{name}", text, datetime.timezone.utc)
        if self.every is None:
            return
        parse_every(self.every)
        if self.hours is None or not 0.0 < self.hours <= 24.0:
            raise SettingError("maintenance.hours", self.hours, "with every: above 0, at most 24")


@dataclass(frozen=True, kw_only=True, slots=True)
class InventorySettings:
    """One ``[[inventory]]``: nodes that are capacity also while nobody reports them."""

    nodes: str = ""
    """``gpu[001-064],gpu100``."""
    cluster: str = "default"
    gpus: int = 8

    def __post_init__(self) -> None:
        if not self.nodes.strip():
            raise SettingError("inventory.nodes", self.nodes, "names such as gpu[001-064]")
        if not 1 <= self.gpus <= 1024:
            raise SettingError("inventory.gpus", self.gpus, "GPUs of each node, 1 to 1024")


@dataclass(frozen=True, kw_only=True, slots=True)
class SiteSettings:
    """All that schedulers and the site itself say of jobs and nodes."""

    schedulers: tuple[SchedulerSettings, ...] = ()
    maintenance: tuple[WindowSettings, ...] = ()
    spares: tuple[WindowSettings, ...] = ()
    inventory: tuple[InventorySettings, ...] = field(default_factory=tuple)


def parse_every(text: str) -> tuple[int | None, int]:
    """(weekday from Monday 0, None for every day; minute of the day).

    Raises:
        SettingError: it is none.
    """
    found = _WEEKLY.fullmatch(text.strip().lower())
    if found is None or (found["day"] != "daily" and found["day"] not in DAYS):
        raise SettingError("maintenance.every", text, WEEKLY_ALLOWED)
    minute = int(found["hour"]) * 60 + int(found["minute"])
    if minute >= 24 * 60 or int(found["minute"]) > 59:
        raise SettingError("maintenance.every", text, WEEKLY_ALLOWED)
    return (None if found["day"] == "daily" else DAYS.index(found["day"])), minute


def parsed_time(name: str, text: str, zone: datetime.tzinfo) -> float:
    """Epoch seconds of an ISO time; one without zone is in ``zone``.

    Raises:
        SettingError: it is none.
    """
    try:
        found = datetime.datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        raise SettingError(name, text, TIME_ALLOWED) from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=zone)).timestamp()


def read_site(tables: Mapping[str, Any]) -> SiteSettings:
    """The tables ``[[scheduler]]``, ``[[maintenance]]``, ``[[spare]]`` and ``[[inventory]]``.

    Raises:
        SettingError: an unknown setting, a wrong type, or a value that is not allowed.
    """
    schedulers = _each(SchedulerSettings, "scheduler", tables)
    seen: set[tuple[str, str]] = set()
    for each in schedulers:
        if (each.kind, each.cluster) in seen:
            raise SettingError(
                "scheduler.cluster", each.cluster, f"one scheduler of kind {each.kind} a cluster"
            )
        seen.add((each.kind, each.cluster))
    return SiteSettings(
        schedulers=schedulers,
        maintenance=_each(WindowSettings, "maintenance", tables),
        spares=_each(WindowSettings, "spare", tables),
        inventory=_each(InventorySettings, "inventory", tables),
    )


def _each(kind: type[T], name: str, tables: Mapping[str, Any]) -> tuple[T, ...]:
    entries = tables.get(name, [])
    if not isinstance(entries, list):
        raise SettingError(name, entries, f"an array of tables, [[{name}]]")
    times = {each.name for each in dataclasses.fields(kind) if each.name in ("begin", "end")}  # type: ignore[arg-type]
    made = []
    for entry in entries:
        if isinstance(entry, Mapping):
            plain = {key: _as_text(value) if key in times else value for key, value in entry.items()}
            try:
                made.append(section(kind, name, {name: plain}, {}))
            except SettingError as error:
                known = error.name.replace("maintenance.", f"{name}.", 1)
                raise SettingError(known, error.value, error.allowed) from error
        else:
            raise SettingError(name, entry, f"an array of tables, [[{name}]]")
    return tuple(made)


def _as_text(value: Any) -> Any:
    """TOML's own times as their text."""
    return value.isoformat() if isinstance(value, (datetime.datetime, datetime.date)) else value
