"""Every setting of the collector, once."""

import re
import typing
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from flopwatch import accelerators, tls
from flopwatch.accelerators import Accelerator
from flopwatch.settings import SettingError, section
from flopwatch_collector import config_alerts, config_cluster
from flopwatch_collector.config_actions import ActionSettings, read_actions
from flopwatch_collector.config_budgets import BudgetSettings, read_budgets
from flopwatch_collector.config_cost_file import read_costs
from flopwatch_collector.config_costs import CostSettings as CostSettings  # noqa: PLC0414 - offered from here too
from flopwatch_collector.config_reports import ReportSettings, read_reports
from flopwatch_collector.config_schedulers import SiteSettings, read_site
from flopwatch_collector.config_sign_in import SignInSettings, read_sign_in

ALERT_RULES = config_alerts.ALERT_RULES
AlertSettings = config_alerts.AlertSettings
NotifySettings = config_alerts.NotifySettings
RouteSettings = config_alerts.RouteSettings
CONTROL_FILE = "control.sqlite"
"""In the data folder: tokens, identities, alerts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CollectorSettings:
    """``[collector]``."""

    host: str = "127.0.0.1"
    port: int = 8095
    data_dir: Path | None = None
    """Default: ``flopwatch/collector`` in the user's state directory."""
    store: Literal["embedded", "clickhouse"] = "embedded"
    clickhouse_url: str | None = None
    """HTTP address of a ClickHouse server, or of a balancer before several."""
    clickhouse_database: str = "flopwatch"
    clickhouse_cluster: str | None = None
    """Name of the cluster in the server's configuration: tables are then replicated and sharded."""
    clickhouse_user: str | None = None
    clickhouse_password: str | None = field(default=None, repr=False)
    clickhouse_password_file: Path | None = None
    clickhouse_ca_file: Path | None = None
    """Certificates (PEM) that the server's is checked with; default: the system's."""
    control_url: str | None = field(default=None, repr=False)
    """PostgreSQL's address, for several collectors over one ClickHouse; default: a file in ``data_dir``."""
    control_url_file: Path | None = None
    lease_seconds: float = 15.0
    """A collector that stops renewing is relieved of accounting and alerts after this long."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    time_zone: str = "UTC"
    elastic_nodes: tuple[str, ...] = ()
    """Names of nodes that come and go, ``*`` for any text: while they are silent they are no capacity."""
    rack_pattern: str | None = None
    """Regular expression whose first group takes the rack out of a node's name."""
    public_url: str | None = None
    """Where people reach the dashboard, for links in alerts; default: this host and port."""
    insecure: bool = False
    """Serve beyond loopback without a token."""
    max_body_bytes: int = 16 * 1024 * 1024
    """Largest batch accepted, after decompression."""
    ingest_requests_per_second: float = 50.0
    """Per sender, with bursts of ten seconds' worth."""
    raw_days: float = 14.0
    rollup_days: float = 90.0
    raw_bytes: float | None = None
    """Most that closed raw hours may take; the oldest go first. None: as long as ``raw_days`` says."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise SettingError("collector.port", self.port, "0 to 65535")
        if self.time_zone not in zoneinfo.available_timezones():
            raise SettingError("collector.time_zone", self.time_zone, "an IANA zone such as Europe/Berlin")
        tls.require_both("collector", self.tls_cert, self.tls_key)
        for name in ("max_body_bytes", "ingest_requests_per_second", "raw_days", "rollup_days", "raw_bytes"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise SettingError(f"collector.{name}", getattr(self, name), "above 0")
        config_cluster.check(self)
        config_cluster.check_rack_pattern(self.rack_pattern)


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetSettings:
    """``[targets]``: MFU targets as ratios; a job's own beats its team's beats its class's."""

    default: float | None = None
    job: dict[str, float] = field(default_factory=dict)
    """By job name; ``*`` matches any text."""
    team: dict[str, float] = field(default_factory=dict)
    """By account."""
    job_class: dict[str, float] = field(default_factory=dict)
    """By kind of job: pretrain, finetune, …"""

    def __post_init__(self) -> None:
        tables: dict[str, dict[str, float]] = {
            "job": self.job,
            "team": self.team,
            "job_class": self.job_class,
        }
        pairs = [
            (f"targets.{table}.{key}", value) for table, rows in tables.items() for key, value in rows.items()
        ]
        for name, value in [*pairs, ("targets.default", self.default)]:
            if value is not None and not (isinstance(value, (int, float)) and 0.0 < value <= 1.0):
                raise SettingError(name, value, "a ratio above 0, at most 1 (0.45 for 45 %)")


RESERVED_LABELS = frozenset(
    ("__name__", "cluster", "job_id", "node", "ledger_class", "bucket", "reason", "alertname", "simulated")
)


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteWriteSettings:
    """One ``[[remote_write]]``: a receiver of Prometheus's remote write."""

    name: str = "prometheus"
    url: str | None = field(default=None, repr=False)
    url_file: Path | None = None
    token_file: Path | None = None
    username: str | None = None
    password_file: Path | None = None
    headers: dict[str, str] = field(default_factory=dict)
    """Such as the tenant: ``{ "X-Scope-OrgID" = "training" }``."""
    ca_file: Path | None = None
    interval_seconds: float = 60.0
    timeout_seconds: float = 10.0
    labels: dict[str, str] = field(default_factory=dict)
    """Added to every series."""
    queue_requests: int = 2_000
    """What waits while the receiver does not answer; the oldest is dropped beyond it."""

    def __post_init__(self) -> None:
        name = f"remote_write.{self.name}"
        if (self.url is None) == (self.url_file is None):
            raise SettingError(f"{name}.url", None, "either url or url_file")
        if not 5.0 <= self.interval_seconds <= 3_600.0:
            raise SettingError(f"{name}.interval_seconds", self.interval_seconds, "5 to 3600")
        if not 0.1 <= self.timeout_seconds <= 300.0:
            raise SettingError(f"{name}.timeout_seconds", self.timeout_seconds, "0.1 to 300")
        if self.queue_requests < 1:
            raise SettingError(f"{name}.queue_requests", self.queue_requests, "1 or more")
        _require_labels(name, self.labels)


def _require_labels(name: str, labels: Mapping[str, object]) -> None:
    for label, value in labels.items():
        if not LABEL_NAME.fullmatch(label) or label.startswith("__") or label in RESERVED_LABELS:
            raise SettingError(f"{name}.labels.{label}", value, "a label's name that flopwatch does not use")
        if not isinstance(value, str) or not value:
            raise SettingError(f"{name}.labels.{label}", value, "a text")


LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class PeakOverride:
    """One ``[[accelerators.override]]``: the site's own dense peaks of one GPU model."""

    name: str = ""
    """The exact NVML name, without a MIG profile."""
    dense_tflops: dict[str, float] = field(default_factory=dict)
    """Dense TFLOP/s by number format; formats that are left out keep the table's peak."""
    source: str = ""
    """Where the numbers are from: shown beside every figure made with them."""

    def __post_init__(self) -> None:
        if not self.name.strip() or " MIG " in self.name:
            raise SettingError(
                "accelerators.override.name", self.name, "a GPU's exact NVML name, without a MIG profile"
            )
        if not self.source.strip():
            raise SettingError(
                "accelerators.override.source", self.source, "where the peaks are from, in words"
            )
        if not self.dense_tflops:
            raise SettingError(
                "accelerators.override.dense_tflops", {}, "TFLOP/s by number format, such as { bf16 = 989.4 }"
            )
        for word, value in self.dense_tflops.items():
            _require_peak(word, value)

    def accelerator(self) -> Accelerator:
        """The GPU model with these peaks."""
        return accelerators.overridden(self.name.strip(), self.dense_tflops, self.source.strip())


def _require_peak(word: str, value: object) -> None:
    name = f"accelerators.override.dense_tflops.{word}"
    if accelerators.dtype_of(word) is None:
        raise SettingError(name, value, "a number format: " + ", ".join(accelerators.DTYPES))
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 < typing.cast(float, value) < MOST_TFLOPS:
        raise SettingError(name, value, f"dense TFLOP/s of one GPU, above 0 and below {MOST_TFLOPS:.0f}")


MOST_TFLOPS = 1e6
"""A larger peak is FLOP/s or GFLOP/s taken for TFLOP/s."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """All tables the collector reads."""

    collector: CollectorSettings = field(default_factory=CollectorSettings)
    targets: TargetSettings = field(default_factory=TargetSettings)
    costs: CostSettings = field(default_factory=CostSettings)
    alerts: AlertSettings = field(default_factory=AlertSettings)
    notify: tuple[NotifySettings, ...] = ()
    routes: tuple[RouteSettings, ...] = ()
    peak_overrides: tuple[PeakOverride, ...] = ()
    remote_write: tuple[RemoteWriteSettings, ...] = ()
    actions: tuple[ActionSettings, ...] = ()
    budgets: tuple[BudgetSettings, ...] = ()
    reports: tuple[ReportSettings, ...] = ()
    site: SiteSettings = field(default_factory=SiteSettings)
    """Schedulers, and what is declared of nodes."""
    sign_in: SignInSettings = field(default_factory=SignInSettings)
    """How people sign in besides with a token."""

    def site_accelerators(self) -> tuple[Accelerator, ...]:
        """GPU models with the site's own peaks; they win over the table."""
        return tuple(override.accelerator() for override in self.peak_overrides)


def read(tables: Mapping[str, Any], environ: Mapping[str, str]) -> Settings:
    """The settings of a loaded file and the environment.

    Raises:
        SettingError: an unknown setting, a wrong type, or a value that is not allowed.
    """
    notify = config_alerts.read_notify(tables)
    return Settings(
        collector=section(CollectorSettings, "collector", tables, environ),
        targets=section(TargetSettings, "targets", tables, environ),
        costs=read_costs(tables, environ),
        alerts=config_alerts.read_alerts(tables, environ),
        notify=notify,
        routes=config_alerts.read_routes(tables, notify),
        peak_overrides=_peak_overrides(tables),
        remote_write=_remote_write(tables),
        actions=read_actions(tables),
        budgets=read_budgets(tables),
        reports=read_reports(tables),
        site=read_site(tables),
        sign_in=read_sign_in(tables, environ),
    )


def _remote_write(tables: Mapping[str, Any]) -> tuple[RemoteWriteSettings, ...]:
    receivers = tables.get("remote_write", [])
    if not isinstance(receivers, list):
        raise SettingError("remote_write", receivers, "an array of tables, [[remote_write]]")
    return tuple(
        section(RemoteWriteSettings, "remote_write", {"remote_write": table}, {}) for table in receivers
    )


def _peak_overrides(tables: Mapping[str, Any]) -> tuple[PeakOverride, ...]:
    table = tables.get("accelerators", {})
    if not isinstance(table, Mapping):
        raise SettingError("accelerators", table, "a table, [[accelerators.override]]")
    unknown = sorted(set(table) - {"override"})
    if unknown:
        raise SettingError(f"accelerators.{unknown[0]}", table[unknown[0]], "one of override")
    entries = table.get("override", [])
    if not isinstance(entries, list):
        raise SettingError("accelerators.override", entries, "an array of tables, [[accelerators.override]]")
    name = "accelerators.override"
    made = tuple(section(PeakOverride, name, {name: entry}, {}) for entry in entries)
    names = [override.name.strip() for override in made]
    twice = next((each for each in names if names.count(each) > 1), None)
    if twice is not None:
        raise SettingError(f"{name}.name", twice, "each GPU model once")
    return made


def public_address(settings: CollectorSettings, machine_name: str) -> str:
    """Where people reach the dashboard: as set, else this host and port."""
    if settings.public_url is not None:
        return settings.public_url.rstrip("/")
    scheme = "http" if settings.tls_cert is None else "https"
    host = machine_name if settings.host in ("", "0.0.0.0", "::") else settings.host  # noqa: S104 - compared, not bound
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings.port}"


def data_folder(settings: CollectorSettings, environ: Mapping[str, str]) -> Path:
    """The folder of the store: the setting, ``FLOPWATCH_DATA_DIR``, else below the user's state directory."""
    if settings.data_dir is not None:
        return settings.data_dir
    if environ.get("FLOPWATCH_DATA_DIR"):
        return Path(environ["FLOPWATCH_DATA_DIR"]) / "collector"
    state = environ.get("XDG_STATE_HOME") or str(Path(environ.get("HOME", "/")) / ".local" / "state")
    return Path(state) / "flopwatch" / "collector"
