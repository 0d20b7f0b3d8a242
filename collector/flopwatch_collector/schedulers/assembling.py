"""Schedulers put together from their settings."""

import datetime
import os
import zoneinfo
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flopwatch.settings import SettingError
from flopwatch.wire import Batch
from flopwatch_collector.compute.demand import QUEUE_EVENT
from flopwatch_collector.config_schedulers import SchedulerSettings, SiteSettings
from flopwatch_collector.model import FleetState
from flopwatch_collector.schedulers.asking import Server
from flopwatch_collector.schedulers.delivery import Delivery
from flopwatch_collector.schedulers.kubernetes import Kubernetes
from flopwatch_collector.schedulers.kubernetes_objects import Labels
from flopwatch_collector.schedulers.node_states import NodeStates
from flopwatch_collector.schedulers.polling import Poll, Polls, Scheduler
from flopwatch_collector.schedulers.slurm import Slurm
from flopwatch_collector.schedulers.slurm_commands import SlurmCommands
from flopwatch_collector.schedulers.slurm_rest import SlurmRest
from flopwatch_collector.schedulers.slurm_values import node_names
from flopwatch_collector.schedulers.telling import About
from flopwatch_collector.store.port import Control, Store

QUEUE_LOOK_SECONDS = 3600.0
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
WATCH_SECONDS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """What of the collector they work with."""

    site: SiteSettings
    time_zone: str
    state: Callable[[], FleetState]
    accept: "Callable[[Batch], Future[Any]]"
    store: Store
    control: Control
    clock: Callable[[], float]
    on_duty: Callable[[], bool] = lambda: True
    again: Callable[[float, float], None] = lambda _start, _end: None
    simulated: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)


@dataclass(frozen=True, kw_only=True, slots=True)
class Assembled:
    """What runs, and what the API works with."""

    polls: Polls
    nodes: NodeStates
    delivery: Delivery


def assemble(parts: Parts) -> Assembled:
    """Everything, not started yet.

    Raises:
        SettingError: a node list of the inventory is none, or a Kubernetes API is not named.
    """
    delivery = Delivery(accept=parts.accept, simulated=parts.simulated, clock=parts.clock, again=parts.again)
    nodes = NodeStates(
        control=parts.control,
        state=parts.state,
        tell=delivery.events,
        settings=parts.site,
        zone=_zone(parts.time_zone),
    )
    polls = tuple(_poll(settings, parts, delivery, nodes) for settings in parts.site.schedulers)
    inventory = Inventory(site=parts.site, delivery=delivery)
    return Assembled(
        polls=Polls(
            polls=polls, nodes=nodes, prepare=inventory.tell, on_duty=parts.on_duty, clock=parts.clock
        ),
        nodes=nodes,
        delivery=delivery,
    )


def _zone(name: str) -> datetime.tzinfo:
    return zoneinfo.ZoneInfo(name)


def _poll(settings: SchedulerSettings, parts: Parts, delivery: Delivery, nodes: NodeStates) -> Poll:
    now = parts.clock()
    events = parts.store.events(now - QUEUE_LOOK_SECONDS, now, [QUEUE_EVENT])
    return Poll(
        settings=settings,
        scheduler=scheduler_of(settings, parts.environ),
        delivery=delivery,
        nodes=nodes,
        state=parts.state,
        control=parts.control,
        partitions=frozenset(str(name) for name in events["value"]),
    )


def scheduler_of(settings: SchedulerSettings, environ: Mapping[str, str]) -> Scheduler:
    """The reader of one scheduler.

    Raises:
        SettingError: the Kubernetes API is not named, and the collector runs in no cluster.
    """
    if settings.kind == "kubernetes":
        labels = Labels(
            user=settings.user_label, account=settings.account_label, resources=settings.gpu_resources
        )
        watch = min(WATCH_SECONDS, max(1, int(settings.interval_seconds / 2)))
        return Kubernetes(server=_kubernetes_server(settings, environ), labels=labels, watch_seconds=watch)
    if settings.url is None:
        commands = SlurmCommands(
            folder=settings.commands, timeout_seconds=settings.timeout_seconds, environ=environ
        )
        return Slurm(door=commands, accounting=settings.accounting)
    secrets = {} if settings.token_file is None else {"X-SLURM-USER-TOKEN": ("", settings.token_file)}
    server = Server(
        url=settings.url,
        timeout_seconds=settings.timeout_seconds,
        headers={"X-SLURM-USER-NAME": settings.user_name} if settings.user_name else {},
        secret_files=secrets,
        ca_file=settings.ca_file,
    )
    return Slurm(door=SlurmRest(server=server, version=settings.api_version), accounting=settings.accounting)


def _kubernetes_server(settings: SchedulerSettings, environ: Mapping[str, str]) -> Server:
    """The API that is named, else that of the cluster in which the collector runs."""
    url, token, certificates = settings.url, settings.token_file, settings.ca_file
    if url is None:
        host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host:
            raise SettingError("scheduler.url", None, "the address of the Kubernetes API, outside a cluster")
        url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        token = token or SERVICE_ACCOUNT / "token"
        certificates = certificates or SERVICE_ACCOUNT / "ca.crt"
    return Server(
        url=url,
        timeout_seconds=settings.timeout_seconds,
        secret_files={} if token is None else {"Authorization": ("Bearer ", token)},
        ca_file=certificates,
    )


@dataclass(kw_only=True)
class Inventory:
    """The nodes that the settings expect: capacity also while nobody reports them."""

    site: SiteSettings
    delivery: Delivery

    def __post_init__(self) -> None:
        self._waiting: dict[str, dict[str, About]] = {}
        for entry in self.site.inventory:
            try:
                names = node_names(entry.nodes)
            except ValueError as error:
                raise SettingError(
                    "inventory.nodes", entry.nodes, f"names such as gpu[001-064] ({error})"
                ) from error
            nodes = self._waiting.setdefault(entry.cluster, {})
            nodes.update({name: About(gpu_count=entry.gpus) for name in names})

    def tell(self, now: float) -> None:
        """Tell it once.

        Raises:
            Unavailable: the store or the control state cannot be reached.
            Overloaded: too much waits.
        """
        for cluster in list(self._waiting):
            self.delivery.deliver(cluster, self._waiting[cluster], now)
            del self._waiting[cluster]
