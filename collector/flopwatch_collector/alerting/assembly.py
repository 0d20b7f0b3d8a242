"""The alert engine and its actions put together from settings."""

import socket
from collections.abc import Callable
from dataclasses import dataclass

from flopwatch_collector.alerting.actions import Actions
from flopwatch_collector.alerting.delivery.channels import wiring
from flopwatch_collector.alerting.delivery.notifier import Notifier
from flopwatch_collector.alerting.desk import AlertDesk
from flopwatch_collector.alerting.engine import AlertEngine
from flopwatch_collector.config import Settings, public_address
from flopwatch_collector.duty import Duty, FencedChannel
from flopwatch_collector.store.port import Control


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """What alerts stand on: the control state, the part of it for the collector on duty, and the time."""

    control: Control
    duty_control: Control
    duty: Duty
    clock: Callable[[], float]


def engine_of(settings: Settings, ground: Ground) -> AlertEngine:
    """The engine with its channels."""
    wired = wiring(settings)
    notifier = Notifier(
        [FencedChannel(channel=channel, duty=ground.duty) for channel in wired.channels],
        ground.duty_control,
        external_url=public_address(settings.collector, socket.gethostname()),
        clock=ground.clock,
        wiring=wired,
    )
    return AlertEngine(
        ground.duty_control, notifier, settings.alerts, AlertDesk(ground.control, ground.clock)
    )


def acting(
    settings: Settings, engine: AlertEngine, control: Control, simulated: Callable[[], bool]
) -> dict[str, tuple[Callable[[float], object], float]]:
    """The periodic work of actions; none where the site wrote none."""
    if not settings.actions:
        return {}
    actions = Actions(settings=settings.actions, active=engine.active, control=control, simulated=simulated)
    return {"actions": (actions.consider, settings.alerts.evaluate_seconds)}
