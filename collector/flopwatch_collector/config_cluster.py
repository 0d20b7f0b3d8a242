"""Settings of a store on ClickHouse and of several collectors over it: where they are, and who asks."""

import re
import urllib.parse
from pathlib import Path
from typing import Protocol

from flopwatch.settings import SettingError

CLICKHOUSE_URL = "an address that begins with http:// or https:// and names a host, without user and password"
CONTROL_URL = "an address that begins with postgresql:// and names a database"
ONLY_CLICKHOUSE = 'unset, unless store = "clickhouse"'


class ClusterSettings(Protocol):
    """The settings of ``[collector]`` that are looked at here."""

    @property
    def store(self) -> str:
        """The engine."""
        ...

    @property
    def clickhouse_url(self) -> str | None:
        """ClickHouse's HTTP address."""
        ...

    @property
    def clickhouse_database(self) -> str:
        """The database of the tables."""
        ...

    @property
    def clickhouse_ca_file(self) -> Path | None:
        """Certificates that the server's is checked with."""
        ...

    @property
    def raw_bytes(self) -> float | None:
        """The embedded store's limit of size."""
        ...

    @property
    def control_url(self) -> str | None:
        """PostgreSQL's address."""
        ...

    @property
    def lease_seconds(self) -> float:
        """How long the periodic work is held without renewal."""
        ...


def check_rack_pattern(pattern: str | None) -> None:
    """Refuse a pattern that is none, or takes nothing.

    Raises:
        SettingError: it is wrong.
    """
    if pattern is None:
        return
    allowed = (
        "a regular expression with one group that takes the rack out of a node's name, such as ^(r\\d+)-"
    )
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise SettingError("collector.rack_pattern", pattern, f"{allowed} ({error})") from error
    if groups != 1 or len(pattern) > 200:
        raise SettingError("collector.rack_pattern", pattern, allowed)


def check(settings: ClusterSettings) -> None:
    """Refuse settings that do not go together.

    Raises:
        SettingError: one is wrong.
    """
    if settings.store != "clickhouse":
        for name in ("clickhouse_url", "control_url"):
            if getattr(settings, name) is not None:
                raise SettingError(f"collector.{name}", "set", ONLY_CLICKHOUSE)
        return
    parts = urllib.parse.urlsplit(settings.clickhouse_url or "")
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.password:
        shown = None if settings.clickhouse_url is None else _without_user(parts)
        raise SettingError("collector.clickhouse_url", shown, CLICKHOUSE_URL)
    if settings.raw_bytes is not None:
        raise SettingError("collector.raw_bytes", settings.raw_bytes, 'unset with store = "clickhouse"')
    if not settings.clickhouse_database.strip():
        raise SettingError("collector.clickhouse_database", settings.clickhouse_database, "a name")
    if settings.clickhouse_ca_file is not None and not settings.clickhouse_ca_file.is_file():
        raise SettingError(
            "collector.clickhouse_ca_file", str(settings.clickhouse_ca_file), "a readable file"
        )
    _check_control(settings)


def _check_control(settings: ClusterSettings) -> None:
    if settings.control_url is not None:
        parts = urllib.parse.urlsplit(settings.control_url)
        if parts.scheme not in {"postgresql", "postgres"}:
            raise SettingError("collector.control_url", _without_user(parts), CONTROL_URL)
    if not 1.0 <= settings.lease_seconds <= 600.0:
        raise SettingError("collector.lease_seconds", settings.lease_seconds, "1 to 600")


def _without_user(parts: urllib.parse.SplitResult) -> str:
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
