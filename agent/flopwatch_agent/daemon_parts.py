"""What an agent's settings decide on: spool and pusher, socket, an exporter's page, and the folder's lock."""

import fcntl
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from flopwatch.settings import SettingError
from flopwatch_agent.config import AgentSettings, socket_path
from flopwatch_agent.counter_watch import CounterWatch
from flopwatch_agent.poller import Poller
from flopwatch_agent.positions import Positions
from flopwatch_agent.rounds import Rounds
from flopwatch_agent.sdk_socket import SdkSocket
from flopwatch_agent.sinks.push import Pusher, Target
from flopwatch_agent.source import Source
from flopwatch_agent.sources.dcgm import DcgmSource
from flopwatch_agent.sources.host import HostSource
from flopwatch_agent.sources.network import NetworkSource
from flopwatch_agent.sources.node_exporter import NodeExporterSource
from flopwatch_agent.spool import Spool
from flopwatch_agent.sysfs import KernelTree
from flopwatch_agent.trainers.reader import LogReader
from flopwatch_agent.trainers.userformat import UserFormat
from flopwatch_agent.xids import XidCounter

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Queue:
    """The spool with what belongs to it; only with a collector."""

    spool: Spool
    positions: Positions
    pusher: Pusher


@dataclass(frozen=True, kw_only=True, slots=True)
class DcgmPage:
    """A dcgm-exporter that is read."""

    source: DcgmSource
    poller: Poller


def new_reader(formats: tuple[UserFormat, ...]) -> LogReader:
    """A reader for a log whose times without a zone are of this node's clock."""
    return LogReader(utc_offset_seconds=float(time.localtime().tm_gmtoff), user_formats=formats)


def queue(settings: AgentSettings, folder: Path) -> Queue | None:
    """The spool and its pusher; None without a collector."""
    if settings.collector_url is None:
        return None
    settings.bearer()
    try:
        spool = Spool(folder / "spool", settings.spool_max_bytes)
        positions = Positions(folder, spool.next_sequence - 1)
    except OSError as error:
        raise SettingError(
            "agent.data_dir", str(folder), f"a folder that can be written ({error.strerror})"
        ) from error
    target = Target(url=settings.collector_url, bearer=settings.bearer, ca_file=settings.ca_file)
    return Queue(spool=spool, positions=positions, pusher=Pusher(target, spool))


def locked(folder: Path) -> int:
    """A lock on the data folder, held as long as the descriptor is open."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.truncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
    except BlockingIOError as error:
        raise SettingError("agent.data_dir", str(folder), "a folder that no other agent uses") from error
    except OSError as error:
        raise SettingError(
            "agent.data_dir", str(folder), f"a folder that can be written ({error.strerror})"
        ) from error
    return descriptor


def sdk_socket(settings: AgentSettings, environ: Mapping[str, str]) -> SdkSocket | None:
    """The SDK's socket; None when it is switched off, or cannot be made where nobody asked for it."""
    path = socket_path(settings, environ)
    if path is None:
        return None
    try:
        return SdkSocket(path)
    except OSError as error:
        if settings.sdk_socket is not None:
            allowed = f"a path where a socket can be made, or off ({error.strerror or error})"
            raise SettingError("agent.sdk_socket", str(path), allowed) from error
        logger.warning("no SDK socket at %s (%s); StepReporter prints to standard error instead", path, error)
        return None


def node_pollers(
    settings: AgentSettings, proc: KernelTree, sys: KernelTree, watch: CounterWatch, rounds: Rounds
) -> tuple[Poller, ...]:
    """What reads the host and its NICs: the kernel's files, or the exporter that the settings name, which may hang."""
    if settings.node_exporter_endpoint is not None:
        exporter = NodeExporterSource(settings.node_exporter_endpoint)
        return (Poller(exporter, Rounds(settings.interval_seconds)),)
    sources: tuple[Source, ...] = (HostSource(proc, sys), NetworkSource(sys, watch))
    return tuple(Poller(source, rounds) for source in sources)


def dcgm_page(settings: AgentSettings, xids: XidCounter) -> DcgmPage | None:
    """The exporter that the settings name."""
    if settings.dcgm_endpoint is None:
        return None
    source = DcgmSource(settings.dcgm_endpoint, xids)
    return DcgmPage(source=source, poller=Poller(source, Rounds(settings.interval_seconds)))
