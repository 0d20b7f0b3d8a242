"""Opens the store on ClickHouse that the settings name, and the control state that goes with it."""

import contextlib
import fcntl
import os
import socket
import ssl
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flopwatch.settings import SettingError
from flopwatch_collector.config import CONTROL_FILE, CollectorSettings
from flopwatch_collector.store.clickhouse import arrivals
from flopwatch_collector.store.clickhouse.arrivals import Arrivals
from flopwatch_collector.store.clickhouse.http import Address, Client
from flopwatch_collector.store.clickhouse.store import ClickHouseSettings, ClickHouseStore
from flopwatch_collector.store.clickhouse.tables import Layout
from flopwatch_collector.store.control_sqlite import SqliteControl
from flopwatch_collector.store.port import Control, StoreLocked
from flopwatch_collector.store.transactions import SqliteTransactions, Transactions

ARRIVALS_FILE = "arrivals.sqlite"
LOCK_FILE = "clickhouse.lock"


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """A store and its control state; ``holder`` is this process's name among the collectors that share them."""

    store: ClickHouseStore
    client: Client
    arrivals: Arrivals
    control: Control
    holder: str


def clickhouse(
    settings: CollectorSettings, folder: Path, clock: Callable[[], float], parts: contextlib.ExitStack
) -> Opened:
    """The store and the control state, closed by ``parts``, the control state last.

    Raises:
        StoreLocked: another collector keeps its control state in the same folder.
        Unavailable: ClickHouse or PostgreSQL cannot be reached.
        SettingError: a secret cannot be read, or the packages for PostgreSQL are not installed.
    """
    holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
    control = control_of(settings, folder, parts)
    database = _transactions(settings, folder, clock, parts)
    parts.callback(database.close)
    days = settings.raw_days, settings.rollup_days
    layout = Layout(
        database=settings.clickhouse_database, cluster=settings.clickhouse_cluster, raw_days=days[0]
    )
    made = ClickHouseSettings(layout=layout, raw_days=days[0], rollup_days=days[1])
    client = _client(settings)
    parts.callback(client.close)
    record = Arrivals(database, holder)
    store = ClickHouseStore(made, client, record, clock)
    parts.callback(store.close)
    return Opened(store=store, client=client, arrivals=record, control=control, holder=holder)


def _client(settings: CollectorSettings) -> Client:
    try:
        return Client(address(settings))
    except ssl.SSLError as error:
        raise SettingError(
            "collector.clickhouse_ca_file",
            str(settings.clickhouse_ca_file),
            f"certificates as PEM ({error.reason})",
        ) from error


def control_of(settings: CollectorSettings, folder: Path, parts: contextlib.ExitStack) -> Control:
    """The control state alone: in PostgreSQL where the settings name it, else in the folder.

    Raises:
        Unavailable: PostgreSQL cannot be reached.
        SettingError: a secret cannot be read, or the packages for PostgreSQL are not installed.
    """
    url = control_url(settings)
    control: Control = SqliteControl(folder / CONTROL_FILE) if url is None else _postgres_control(url)
    parts.callback(control.close)
    return control


def _transactions(
    settings: CollectorSettings, folder: Path, clock: Callable[[], float], parts: contextlib.ExitStack
) -> Transactions:
    url = control_url(settings)
    if url is None:
        _lock(folder, parts)
        return SqliteTransactions(folder / ARRIVALS_FILE, clock)
    from flopwatch_collector.store.postgres import PostgresTransactions  # noqa: PLC0415 - an optional package

    return PostgresTransactions(url, arrivals.AREA, arrivals.SCHEMA)


def _postgres_control(url: str) -> Control:
    try:
        from flopwatch_collector.store.control_postgres import PostgresControl  # noqa: PLC0415
    except ImportError as error:
        raise SettingError(
            "collector.control_url",
            "set",
            f"unset, or install 'flopwatch[cluster]' ({error.name} is missing)",
        ) from error
    return PostgresControl(url)


def _lock(folder: Path, parts: contextlib.ExitStack) -> None:
    """Have the folder for this process alone."""
    folder.mkdir(parents=True, exist_ok=True)
    file = parts.enter_context((folder / LOCK_FILE).open("w"))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise StoreLocked(
            f"{folder} is in use by another collector; several collectors need collector.control_url"
        ) from error


def address(settings: CollectorSettings) -> Address:
    """Where ClickHouse is and who asks.

    Raises:
        SettingError: the password's file cannot be read.
    """
    file = settings.clickhouse_password_file
    password = settings.clickhouse_password if file is None else _secret("clickhouse_password_file", file)
    return Address(
        url=settings.clickhouse_url or "",
        database=settings.clickhouse_database,
        user=settings.clickhouse_user,
        password=password,
        ca_file=settings.clickhouse_ca_file,
    )


def control_url(settings: CollectorSettings) -> str | None:
    """PostgreSQL's address; None where the control state is a file.

    Raises:
        SettingError: the file that holds it cannot be read.
    """
    file = settings.control_url_file
    return settings.control_url if file is None else _secret("control_url_file", file)


def _secret(name: str, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingError(f"collector.{name}", str(file), f"a readable file ({error.strerror})") from error
