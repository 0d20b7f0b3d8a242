"""Every setting of the dashboard as its own process: table ``[dashboard]``, overridden by ``FLOPWATCH_DASHBOARD_…``."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flopwatch.settings import SettingError, section


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
    collector_url: str = "http://127.0.0.1:8095"
    """The collector that is asked."""
    token: str | None = field(default=None, repr=False)
    """Bearer token of role ``viewer``."""
    token_file: Path | None = None
    """File that holds the token."""
    timeout_seconds: float = 10.0
    """How long an answer of the collector is waited for."""

    def __post_init__(self) -> None:
        if not 1 <= self.port <= 65_535:
            raise SettingError("dashboard.port", self.port, "1 to 65535")
        if not 0.1 <= self.timeout_seconds <= 300:
            raise SettingError("dashboard.timeout_seconds", self.timeout_seconds, "0.1 to 300")
        if self.token is not None and self.token_file is not None:
            raise SettingError(
                "dashboard.token_file", str(self.token_file), "absent when dashboard.token is given"
            )
        _check_url(self.collector_url)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the dashboard."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

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
