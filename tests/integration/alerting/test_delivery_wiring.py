"""Routes, owners and the heartbeat as the settings say."""

import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.integration.alerting.test_channels import alert
from tests.integration.alerting.test_engine import START, job

from flopwatch.settings import SettingError
from flopwatch_collector import config
from flopwatch_collector.alerting.delivery.channels import wiring
from flopwatch_collector.alerting.delivery.notifier import Notifier
from flopwatch_collector.alerting.delivery.outbox import Entry
from flopwatch_collector.alerting.engine import AlertEngine
from flopwatch_collector.alerting.notices import Notice
from flopwatch_collector.facts import Facts
from flopwatch_collector.store.control_sqlite import SqliteControl

HOOKS = [{"name": name, "url": f"https://{name}.example.org/x"} for name in ("all", "nlp", "night")]


def entries(
    tmp_path: Path, tables: dict[str, Any], *alerts: Any, simulated: bool = False
) -> tuple[Entry, ...]:
    wired = wiring(config.read(tables, {}))
    control = SqliteControl(tmp_path / "control.db")
    notifier = Notifier(wired.channels, control, wiring=wired)
    notice = Notice(status="firing", group_labels={}, alerts=alerts)
    pending = notifier.prepare([notice], 1_000.0, simulated=simulated)
    control.close()
    return pending.entries


def routed(tmp_path: Path, routes: list[dict[str, Any]], *alerts: Any) -> dict[str, list[str]]:
    found = entries(tmp_path, {"notify": HOOKS, "route": routes}, *alerts)
    return {one.channel: [each.fingerprint[-1] for each in one.notice.alerts] for one in found}


def test_without_routes_every_channel_gets_everything(tmp_path: Path) -> None:
    assert routed(tmp_path, [], alert(1)) == {"all": ["1"], "nlp": ["1"], "night": ["1"]}


def test_the_first_route_that_matches_counts_and_others_only_where_it_goes_on(tmp_path: Path) -> None:
    routes = [
        {"severity": "critical", "channels": ["night"], "continue": True},
        {"team": ["nlp*"], "channels": ["nlp"]},
        {"rule": "MfuLow", "cluster": "a", "channels": ["a*"]},
    ]
    critical = replace(alert(1, severity="critical"), team="nlp-1")
    team, other = replace(alert(2), team="nlp-2"), replace(alert(3), team="vision")
    elsewhere = alert(4, cluster="b")

    assert routed(tmp_path, routes, critical, team, other, elsewhere) == {
        "night": ["1"],
        "nlp": ["1", "2"],
        "all": ["3"],
    }


@pytest.mark.parametrize(
    ("route", "name"),
    [
        ({"channels": ["nosuch"]}, "route.channels"),
        ({"severity": "bad", "channels": ["all"]}, "route.severity"),
        ({"rule": "MfuLo", "channels": ["all"]}, "route.rule"),
        ({"continu": True}, "route.continu"),
        ({"continue": 1}, "route.continue"),
    ],
)
def test_a_wrong_route_stops_the_start_with_its_name(route: dict[str, Any], name: str) -> None:
    with pytest.raises(SettingError) as caught:
        config.read({"notify": HOOKS, "route": [route]}, {})

    assert caught.value.name == name


MAIL = {"kind": "smtp", "name": "mail", "host": "mail.example.org", "sender": "f@example.org"}


def test_owners_get_mail_about_their_own_jobs_only_where_it_is_switched_on(tmp_path: Path) -> None:
    mine, hers = replace(alert(1), owner="me@example.org"), replace(alert(2), owner="ann@example.org")
    none, wrong = alert(3), replace(alert(4), owner="not an address, x@y")
    on = {"notify": [{**MAIL, "to": ["ops@example.org"], "owners": True}]}
    off = {"notify": [{**MAIL, "to": ["ops@example.org"]}]}

    found = entries(tmp_path, on, mine, hers, none, wrong)

    assert [(one.owner, len(one.notice.alerts)) for one in found] == [
        ("", 4),
        ("ann@example.org", 1),
        ("me@example.org", 1),
    ]
    assert [one.owner for one in entries(tmp_path, off, mine)] == [""]
    local = {"notify": [{**MAIL, "host": "127.0.0.1", "owners": True}]}
    assert entries(tmp_path, local, mine, simulated=True) == ()


@pytest.fixture
def heart() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/ping/t0ken", asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_heartbeat_is_asked_while_rules_are_evaluated(
    tmp_path: Path, heart: tuple[str, list[str]]
) -> None:
    url, asked = heart
    wired = wiring(config.read({"alerts": {"heartbeat_url": url, "heartbeat_seconds": 60}}, {}))
    control = SqliteControl(tmp_path / "control.db")
    engine = AlertEngine(control, Notifier([], control, wiring=wired), config.AlertSettings())

    for number in range(3):
        engine.evaluate(
            Facts(now=START + number, jobs=(job(START, 0.4),), nodes=(), verdict=None, cluster="a")
        )
    end = time.monotonic() + 10.0
    while not asked and time.monotonic() < end:
        time.sleep(0.01)
    engine.stop()
    control.close()

    assert asked == ["/ping/t0ken"]
