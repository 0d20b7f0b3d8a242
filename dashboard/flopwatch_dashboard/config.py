"""Every setting of the dashboard as its own process: table ``[dashboard]``, overridden by ``FLOPWATCH_DASHBOARD_…``."""

import ipaddress
import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from flopwatch import tls
from flopwatch.settings import SettingError, section

SignInWhen = Literal["auto", "on", "off"]
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class DashboardSettings:
    """The settings of one dashboard; checked when made.

    Raises:
        SettingError: a value is out of range.
    """

    host: str = "127.0.0.1"
    """Address that the dashboard listens on."""
    port: int = 8096
    """Port that the dashboard listens on."""
    tls_cert: Path | None = None
    """Certificate chain as PEM; with ``tls_key`` the dashboard speaks HTTPS."""
    tls_key: Path | None = None
    collector_url: str = "http://127.0.0.1:8095"
    """The collector that is asked."""
    sign_in: SignInWhen = "auto"
    """Whether people sign in, as at the collector; ``auto``: where other machines can reach the dashboard."""
    token: str | None = field(default=None, repr=False)
    """Bearer token of role ``viewer``, for where nobody signs in."""
    token_file: Path | None = None
    """File that holds the token."""
    timeout_seconds: float = 10.0
    """How long an answer of the collector is waited for."""

    prometheus_url: str | None = None
    """A Prometheus, VictoriaMetrics, Mimir or Thanos that is asked instead of a collector."""
    prometheus_token_file: Path | None = None
    """File that holds the bearer token to use there."""
    prometheus_username: str | None = None
    prometheus_password_file: Path | None = None
    prometheus_ca_file: Path | None = None
    """Authorities that its certificate is checked against; default: the system's."""
    prometheus_headers: dict[str, str] = field(default_factory=dict, repr=False)
    """Such as the tenant: ``{ "X-Scope-OrgID" = "training" }``."""
    prometheus_cluster_label: str = "cluster"
    """The label of its series that names a cluster."""
    time_zone: str = "UTC"
    """Of a dashboard over Prometheus; a collector says its own."""

    def __post_init__(self) -> None:
        if not 1 <= self.port <= 65_535:
            raise SettingError("dashboard.port", self.port, "1 to 65535")
        if not 0.1 <= self.timeout_seconds <= 300:
            raise SettingError("dashboard.timeout_seconds", self.timeout_seconds, "0.1 to 300")
        if self.token is not None and self.token_file is not None:
            raise SettingError(
                "dashboard.token_file", str(self.token_file), "absent when dashboard.token is given"
            )
        tls.require_both("dashboard", self.tls_cert, self.tls_key)
        _check_url(self.collector_url)
        if not LABEL_NAME.fullmatch(self.prometheus_cluster_label):
            raise SettingError(
                "dashboard.prometheus_cluster_label", self.prometheus_cluster_label, "a label's name"
            )
        if self.time_zone not in zoneinfo.available_timezones():
            raise SettingError("dashboard.time_zone", self.time_zone, "an IANA zone such as Europe/Berlin")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the dashboard."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def scheme(self) -> str:
        """``https`` with a certificate, else ``http``."""
        return "http" if self.tls_cert is None else "https"

    @property
    def signs_in(self) -> bool:
        """Whether people have to sign in."""
        return self.sign_in == "on" or (self.sign_in == "auto" and not self.loopback)

    def bearer(self) -> str | None:
        """The token.

        Raises:
            SettingError: ``token_file`` cannot be read or is empty.
        """
        if self.token_file is None:
            return self.token
        name = "dashboard.token_file"
        try:
            text = self.token_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise SettingError(name, str(self.token_file), f"a readable file ({error.strerror})") from error
        if not text:
            raise SettingError(name, str(self.token_file), "a file that holds a token; it is empty")
        return text


def _check_url(url: str) -> None:
    allowed = "an address such as http://collector:8095 or https://collector.example.com"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError as error:
        raise SettingError("dashboard.collector_url", url, allowed) from error
    if not usable or parts.query or parts.fragment or parts.username:
        raise SettingError("dashboard.collector_url", url, allowed)


def settings_from(tables: Mapping[str, Any], environ: Mapping[str, str]) -> DashboardSettings:
    """The dashboard's settings from the tables of the file and the environment."""
    return section(DashboardSettings, "dashboard", tables, environ)
