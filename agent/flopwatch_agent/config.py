"""Every setting of the agent: table ``[agent]``, overridden by ``FLOPWATCH_AGENT_…``."""

import dataclasses
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flopwatch.settings import SettingError, section
from flopwatch.wire import MAX_NAME_LENGTH

DEFAULT_SPOOL_BYTES = 1 << 30
DEFAULT_MEMORY_BYTES = 200 << 20
COLLECTOR_URLS = "an address such as http://collector:8095 or https://collector.example.com"
TOKEN_FILE_VARIABLE = "FLOPWATCH_AGENT_TOKEN_FILE"  # noqa: S105 - a variable's name


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentSettings:
    """The settings of one agent; checked when made.

    Raises:
        SettingError: a value is out of range.
    """

    collector_url: str | None = None
    """Where batches go, such as ``http://collector:8095``; without it the agent only serves ``/metrics``."""
    token: str | None = field(default=None, repr=False)
    """Bearer token of role ``agent``."""
    token_file: Path | None = None
    """File that holds the token; read again when the collector refuses it."""
    ca_file: Path | None = None
    """Certificates that the collector's is checked against, when they are not the system's."""
    host: str = "0.0.0.0"  # noqa: S104 - Prometheus scrapes from another machine
    """Address that ``/metrics`` listens on."""
    port: int = 9095
    """Port of ``/metrics``; 0 takes a free one."""
    cluster: str = "default"
    """Name of the cluster that this node belongs to."""
    node: str | None = None
    """Name of this node; the host name when left out. In Kubernetes give ``spec.nodeName``."""
    interval_seconds: float = 10.0
    """Time between two hardware samples, and between two batches."""
    data_dir: Path | None = None
    """Folder of the spool and of the log positions."""
    spool_max_bytes: int = DEFAULT_SPOOL_BYTES
    """Size of the spool on disk; the oldest batches are dropped, and counted, beyond it."""
    sdk_socket: Path | None = None
    """Unix socket that ``StepReporter`` sends to; the word ``off`` for none."""
    log_globs: tuple[str, ...] = ()
    """Log files to follow beside those found by themselves, such as ``/scratch/*/train.log``."""
    trainer_endpoints: tuple[str, ...] = ()
    """Prometheus pages of trainers, such as ``http://127.0.0.1:8000/metrics``, beside those that arguments name."""
    log_format: tuple[Any, ...] = ()
    """Step lines of in-house trainers: tables with ``name``, ``expression``, ``units`` and ``literal``."""
    pod_logs: Path = Path("/var/log/pods")
    """Where the kubelet keeps the output of pods; differs in containers that mount the host's elsewhere."""
    kernel_log: Path = Path("/dev/kmsg")
    """The kernel's log, in which XIDs stand; needs CAP_SYSLOG."""
    job_files: Path = Path("/run/flopwatch/jobs")
    """Folder in which a prolog says which job has which GPU: one file a GPU, one job id a line."""
    pod_resources: Path = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
    """The kubelet's socket that tells which pod was given which GPU; asked with ``flopwatch[kubernetes]``."""
    dcgm_endpoint: str | None = None
    """Page of a ``dcgm-exporter`` on this node, read while NVML cannot be used: ``http://127.0.0.1:9400/metrics``."""
    node_exporter_endpoint: str | None = None
    """Page of a ``node_exporter`` on this node, read instead of sysfs and procfs: ``http://127.0.0.1:9100/metrics``."""
    max_memory_bytes: int = DEFAULT_MEMORY_BYTES
    """Memory that the agent may use; beyond it a new process takes its place, and the spool goes on."""
    gpm: bool = True
    """Whether to read GPM (tensor, SM and memory activity) where the GPU has it."""
    proc_root: Path = Path("/proc")
    """Where procfs is; differs in containers that mount the host's elsewhere."""
    sys_root: Path = Path("/sys")
    """Where sysfs is."""
    simulated: bool = False
    """Marks every batch as simulated data."""

    def __post_init__(self) -> None:
        _check_range("interval_seconds", self.interval_seconds, 0.2, 60.0)
        _check_range("port", self.port, 0, 65_535)
        _check_range("spool_max_bytes", self.spool_max_bytes, 1 << 20, 1 << 50)
        _check_range("max_memory_bytes", self.max_memory_bytes, 16 << 20, 1 << 40)
        _check_name("cluster", self.cluster)
        if self.node is not None:
            _check_name("node", self.node)
        if self.collector_url is not None:
            _check_url(self.collector_url, "collector_url", COLLECTOR_URLS)
        if self.token is not None and self.token_file is not None:
            raise SettingError("agent.token_file", str(self.token_file), "absent when agent.token is given")
        self._check_pages()
        for pattern in self.log_globs:
            if not pattern.startswith("/"):
                raise SettingError("agent.log_globs", pattern, "absolute paths, * and ? in them")

    def _check_pages(self) -> None:
        for url in self.trainer_endpoints:
            _check_url(url, "trainer_endpoints", "addresses such as http://127.0.0.1:8000/metrics")
        for name, port in (("dcgm_endpoint", 9400), ("node_exporter_endpoint", 9100)):
            url = getattr(self, name)
            if url is not None:
                _check_url(url, name, f"an address such as http://127.0.0.1:{port}/metrics")

    @property
    def node_name(self) -> str:
        """The configured name, else the host's."""
        return self.node or socket.gethostname()

    def bearer(self) -> str | None:
        """The token now.

        Raises:
            SettingError: ``token_file`` cannot be read or is empty.
        """
        if self.token_file is None:
            return self.token
        try:
            text = self.token_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise SettingError(
                "agent.token_file", str(self.token_file), f"a readable file ({error.strerror})"
            ) from error
        if not text:
            raise SettingError(
                "agent.token_file", str(self.token_file), "a file that holds a token; it is empty"
            )
        return text


def _check_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise SettingError(f"agent.{name}", value, f"{low:g} to {high:g}")


def _check_name(name: str, value: str) -> None:
    if not 0 < len(value) <= MAX_NAME_LENGTH or not value.isprintable():
        raise SettingError(f"agent.{name}", value, f"1 to {MAX_NAME_LENGTH} printable characters")


def _check_url(url: str, name: str, allowed: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError as error:
        raise SettingError(f"agent.{name}", url, allowed) from error
    if not usable or parts.query or parts.fragment or parts.username:
        raise SettingError(f"agent.{name}", url, allowed)


def data_folder(settings: AgentSettings, environ: Mapping[str, str]) -> Path:
    """``agent.data_dir``, else the system's folder for root, else one below the user's state folder."""
    if settings.data_dir is not None:
        return settings.data_dir
    if os.geteuid() == 0:
        return Path("/var/lib/flopwatch/agent")
    state = environ.get("XDG_STATE_HOME") or str(Path(environ.get("HOME", "/")) / ".local" / "state")
    return Path(state) / "flopwatch" / "agent"


def socket_path(settings: AgentSettings, environ: Mapping[str, str]) -> Path | None:
    """``agent.sdk_socket`` or where ``StepReporter`` looks by itself; None when it is switched off."""
    if settings.sdk_socket is not None:
        return None if str(settings.sdk_socket) == "off" else settings.sdk_socket
    runtime = environ.get("XDG_RUNTIME_DIR")
    if os.geteuid() == 0 or not runtime:
        return Path("/run/flopwatch/steps.sock")
    return Path(runtime) / "flopwatch" / "steps.sock"


def settings_from(tables: Mapping[str, Any], environ: Mapping[str, str]) -> AgentSettings:
    """The agent's settings from the tables of the file and the environment."""
    # The variable means the setting of that name, not "a file that holds agent.token": a file may be renewed.
    file = environ.get(TOKEN_FILE_VARIABLE)
    others = {name: value for name, value in environ.items() if name != TOKEN_FILE_VARIABLE}
    chosen = section(AgentSettings, "agent", tables, others)
    return chosen if file is None else dataclasses.replace(chosen, token_file=Path(file))
