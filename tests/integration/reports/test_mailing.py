"""Scheduled reports and digests through a real mail server and a real webhook."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.integration.reports.mail_server import MailBox, mail_server
from tests.integration.views.site import MIDNIGHT, Site

from flopwatch.settings import SettingError
from flopwatch_collector.config_reports import ReportSettings
from flopwatch_collector.duty import SoleDuty
from flopwatch_collector.reports.mailing import Mailing
from flopwatch_collector.reports.wiring import mailing_of

DAY = 86_400.0
MORNING = MIDNIGHT + DAY + 8.5 * 3_600
"""Half an hour after the report of the site's only day was due."""
OpenSite = Callable[..., Site]


@pytest.fixture
def box() -> Iterator[MailBox]:
    with mail_server() as made:
        yield made


def daily(box: MailBox, **changes: Any) -> ReportSettings:
    values: dict[str, Any] = {
        "name": "ops",
        "period": "daily",
        "server": f"mailto://127.0.0.1:{box.port}?from=flopwatch@example.com",
        "to": ("ops@example.com", "boss@example.com"),
        **changes,
    }
    return ReportSettings(**values)


def trained(open_site: OpenSite) -> Site:
    site = open_site()
    site.train(900.0)
    site.hang(1800.0)
    site.settle()
    return site


def mailing(site: Site, *reports: ReportSettings, simulated: bool = False) -> Mailing:
    settings = replace(site.settings, reports=reports)
    return mailing_of(settings, site.running.reports, site.running.control, SoleDuty(), lambda: simulated)


def test_a_report_goes_to_each_receiver_once(open_site: OpenSite, box: MailBox) -> None:
    site = trained(open_site)
    site.now = MORNING
    sender = mailing(site, daily(box))

    assert sender.send_due(MORNING) == 2
    assert sender.send_due(MORNING + 3_600) == 0
    assert mailing(site, daily(box)).send_due(MORNING + 7_200) == 0
    assert sorted(receivers for receivers, _ in box.mails) == [["boss@example.com"], ["ops@example.com"]]
    _, letter = box.mails[0]
    assert letter["Subject"] == "GPU report, 2026-03-03 to 2026-03-03"
    assert "flopwatch@example.com" in letter["From"]
    (attached,) = letter.iter_attachments()
    assert attached.get_filename() == "flopwatch-2026-03-03-to-2026-03-03.html"
    content = attached.get_content()
    assert "llama-8b" in (content if isinstance(content, str) else content.decode())


def test_what_was_refused_goes_out_later_and_only_that(
    open_site: OpenSite, box: MailBox, caplog: pytest.LogCaptureFixture
) -> None:
    site = trained(open_site)
    site.now = MORNING
    secret = daily(
        box, server=f"mailto://user:hunter2@127.0.0.1:{box.port}?from=flopwatch@example.com&mode=insecure"
    )
    sender = mailing(site, secret)
    box.refusing = True
    with caplog.at_level(logging.DEBUG):
        assert sender.send_due(MORNING) == 0
    box.refusing = False

    assert "hunter2" not in caplog.text
    assert "hunter2" not in repr(sender)
    assert sender.send_due(MORNING + 60) == 0
    assert mailing(site, daily(box)).send_due(MORNING + 1_200) == 2


def test_a_day_late_it_does_not_go_out_any_more(open_site: OpenSite, box: MailBox) -> None:
    site = trained(open_site)
    weekly = daily(box, period="weekly", weekday="wednesday", at="06:00")

    # 2026-03-04 is a Wednesday.
    assert mailing(site, weekly).send_due(MIDNIGHT + DAY + 30.5 * 3_600) == 0
    assert mailing(site, weekly).send_due(MIDNIGHT + DAY + 6 * 3_600) == 2


def test_a_simulated_cluster_mails_nobody(open_site: OpenSite, box: MailBox) -> None:
    site = trained(open_site)

    assert mailing(site, daily(box), simulated=True).send_due(MORNING) == 0
    assert box.mails == []


def test_who_holds_much_and_uses_little_gets_a_digest_of_their_own_jobs(
    open_site: OpenSite, box: MailBox
) -> None:
    site = open_site()
    site.train(900.0, user="ann")
    site.push("n1", site.now, 3_600.0, job=None)
    site.settle()
    site.now = MORNING
    told = {"kind": "digest", "to": (), "domain": "example.com", "least_gpu_hours": 1.0}
    busy = daily(box, **told, most_utilisation_ratio=0.25)
    idle = daily(box, **told, most_utilisation_ratio=1.0)

    assert mailing(site, busy).send_due(MORNING) == 0
    assert mailing(site, replace(idle, name="other")).send_due(MORNING) == 1
    ((receivers, letter),) = box.mails
    assert receivers == ["ann@example.com"]
    body = letter.get_body(("html",))
    assert body is not None
    assert "Your jobs held" in body.get_content()


@pytest.mark.parametrize(
    ("change", "setting"),
    [
        ({"server": "slack://token/a/b"}, "reports.ops.server"),
        ({"server": None, "server_file": Path("nowhere")}, "reports.ops.server_file"),
        ({"webhook": "oncall"}, "reports.ops.webhook"),
    ],
)
def test_a_server_or_webhook_that_is_none_stops_the_start(
    open_site: OpenSite, box: MailBox, change: dict[str, Any], setting: str
) -> None:
    with pytest.raises(SettingError) as caught:
        mailing(open_site(), daily(box, **change))

    assert caught.value.name == setting
    assert "token" not in str(caught.value)
