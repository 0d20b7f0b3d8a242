"""The schedule of reports, put together from the settings."""

from collections.abc import Callable

from flopwatch_collector.alerting.delivery import webhook
from flopwatch_collector.alerting.delivery.posting import DeliveryFailed
from flopwatch_collector.config import Settings
from flopwatch_collector.duty import Duty, FencedChannel
from flopwatch_collector.reports.mailing import Mailing
from flopwatch_collector.reports.service import Reports
from flopwatch_collector.store.port import Control


def mailing_of(
    settings: Settings, reports: Reports, control: Control, duty: Duty, simulated: Callable[[], bool]
) -> Mailing:
    """The schedule; its webhooks are those of ``[[notify]]``.

    Raises:
        SettingError: a mail server's address is none, a file cannot be read, or a webhook is not there.
    """
    hooks = [webhook.from_settings(each) for each in settings.notify if each.kind == "webhook"]
    return Mailing(
        reports=reports,
        control=control,
        settings=settings.reports,
        webhooks=[FencedChannel(channel=hook, duty=duty) for hook in hooks],
        failed=DeliveryFailed,
        simulated=simulated,
    )
