"""The channels of ``[[notify]]``, by kind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from flopwatch.settings import SettingError
from flopwatch_collector.alerting.delivery import (
    alertmanager,
    bots,
    heartbeat,
    mail,
    through_apprise,
    webhook,
)
from flopwatch_collector.alerting.delivery.alertmanager import Alertmanager
from flopwatch_collector.alerting.delivery.heartbeat import Heartbeat
from flopwatch_collector.alerting.delivery.outbox import MESSAGES_PER_MINUTE, Channel
from flopwatch_collector.config import NotifySettings, RouteSettings, Settings

_MAKERS: Mapping[str, Callable[[NotifySettings], Channel]] = {
    "webhook": webhook.from_settings,
    "feishu": bots.from_settings,
    "lark": bots.from_settings,
    "dingtalk": bots.from_settings,
    "smtp": mail.from_settings,
    "apprise": through_apprise.from_settings,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Wiring:
    """Who hears of alerts, and how."""

    channels: tuple[Channel, ...] = ()
    """Messages go there."""
    alertmanagers: tuple[Alertmanager, ...] = ()
    """They are told of states."""
    heartbeat: Heartbeat | None = None
    routes: Sequence[RouteSettings] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    """Messages a minute, by channel."""
    to_owners: frozenset[str] = frozenset()
    """Channels that also write to a job's owner."""
    only_to_owners: frozenset[str] = frozenset()

    def limit(self, name: str) -> int:
        """Messages a minute of a channel."""
        return self.limits.get(name, MESSAGES_PER_MINUTE)


def channels(settings: Sequence[NotifySettings]) -> tuple[Channel, ...]:
    """The channels that messages go to.

    Raises:
        SettingError: one is wrong, or two have the same name.
    """
    names = [one.name for one in settings]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SettingError("notify.name", twice[0], "a name for each [[notify]] of its own")
    return tuple(_MAKERS[one.kind](one) for one in settings if one.kind in _MAKERS)


def wiring(settings: Settings) -> Wiring:
    """Everything that the settings say of delivery.

    Raises:
        SettingError: something is wrong or cannot be read.
    """
    owners = [one for one in settings.notify if one.owners]
    wrong = [one for one in owners if one.kind != "smtp"]
    if wrong:
        raise SettingError(f"notify.{wrong[0].name}.owners", True, "false: only smtp writes to owners")
    return Wiring(
        channels=channels(settings.notify),
        alertmanagers=tuple(
            alertmanager.from_settings(one) for one in settings.notify if one.kind == "alertmanager"
        ),
        heartbeat=heartbeat.from_settings(settings.alerts),
        routes=settings.routes,
        limits={one.name: one.messages_per_minute for one in settings.notify},
        to_owners=frozenset(one.name for one in owners),
        only_to_owners=frozenset(one.name for one in owners if not one.to),
    )
