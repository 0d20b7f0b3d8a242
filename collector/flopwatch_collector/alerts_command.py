"""``flopwatch alerts``: try the channels, check the settings, silence, acknowledge and comment."""

import argparse
import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flopwatch import settings as settings_file
from flopwatch_collector import alerts_check, alerts_words, config
from flopwatch_collector.alerting import notices
from flopwatch_collector.alerting.delivery.alertmanager import Alertmanager, posted
from flopwatch_collector.alerting.delivery.channels import Wiring, wiring
from flopwatch_collector.alerting.delivery.heartbeat import Heartbeat
from flopwatch_collector.alerting.delivery.mail import Mail
from flopwatch_collector.alerting.delivery.message import webhook_body
from flopwatch_collector.alerting.delivery.outbox import Channel
from flopwatch_collector.alerting.delivery.posting import DeliveryFailed
from flopwatch_collector.alerting.state import AlertRecord, fingerprint

NO_CHANNELS = """flopwatch: no channel is configured. Add one to the settings file:

    [[notify]]
    kind = "webhook"
    name = "oncall"
    url = "https://hooks.example.com/alerts"      # or url_file = "/etc/flopwatch/webhook_url"
"""
RULE = "TestAlert"


def main(argv: list[str]) -> int:
    """Run ``alerts``; 0 when it was done, 1 when a channel or the collector did not take it, 2 for wrong use.

    Raises:
        SettingError: a setting is wrong.
    """
    arguments = _parser().parse_args(argv)
    if arguments.command == "check":
        return alerts_check.run(arguments)
    if arguments.command in alerts_words.COMMANDS:
        return alerts_words.run(arguments)
    return _test(arguments)


def _test(arguments: argparse.Namespace) -> int:
    path = arguments.config or settings_file.default_file(os.environ)
    settings = config.read(settings_file.load(path), os.environ)
    receivers = _receivers(wiring(settings))
    if not receivers:
        sys.stderr.write(NO_CHANNELS)
        return 2
    if arguments.channel is not None:
        known = ", ".join(receivers)
        receivers = {name: each for name, each in receivers.items() if name == arguments.channel}
        if not receivers:
            sys.stderr.write(f"flopwatch: --channel is {arguments.channel!r}; allowed: {known}\n")
            return 2
    results = [
        _attempt(name, receiver, settings.collector, time.time()) for name, receiver in receivers.items()
    ]
    sys.stdout.write(_report(results, as_json=arguments.json))
    return 0 if all(result["delivered"] for result in results) else 1


Receiver = Channel | Alertmanager | Heartbeat


def _receivers(wired: Wiring) -> dict[str, Receiver]:
    """Everything that can be tried, by name."""
    named: list[Channel | Alertmanager] = [*wired.channels, *wired.alertmanagers]
    found: dict[str, Receiver] = {one.name: one for one in named}
    if wired.heartbeat is not None:
        found.setdefault("heartbeat", wired.heartbeat)
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flopwatch alerts", description="Alerts from the command line.")
    commands = parser.add_subparsers(dest="command", required=True)
    test = commands.add_parser("test", help="send a test alert through the configured channels")
    test.add_argument(
        "--config", type=Path, help="the settings file (default: the system's, then the user's)"
    )
    test.add_argument("--channel", metavar="NAME", help="only this one (`heartbeat`: the heartbeat)")
    test.add_argument("--json", action="store_true", help="print JSON")
    alerts_check.add_parser(commands)
    alerts_words.add_parsers(commands)
    return parser


def _attempt(
    name: str, receiver: Receiver, collector: config.CollectorSettings, now: float
) -> dict[str, Any]:
    """What became of one attempt; nothing in it is secret."""
    result = {"channel": name, "address": receiver.privacy_form, "delivered": True, "problem": None}
    try:
        _send(receiver, config.public_address(collector, socket.gethostname()), now)
    except DeliveryFailed as error:
        result.update(delivered=False, problem=str(error))
    return result


def _send(receiver: Receiver, external_url: str, now: float) -> None:
    if isinstance(receiver, Heartbeat):
        receiver.ask()
    elif isinstance(receiver, Alertmanager):
        alerts = [alert for notice in _notices(external_url, now) for alert in notice.alerts]
        receiver.tell([posted(alert, now) for alert in alerts])
    elif isinstance(receiver, Mail) and not receiver.to:
        raise DeliveryFailed("writes to owners of jobs only: there is nobody to test with")
    else:
        receiver.send(test_body(receiver.name, external_url, now), f"test-{now:.3f}")


def test_body(receiver: str, external_url: str, now: float) -> Mapping[str, Any]:
    """A firing alert that says of itself that it is a test."""
    return webhook_body(_notices(external_url, now), receiver, external_url)


def _notices(external_url: str, now: float) -> tuple[notices.Notice, ...]:
    record = AlertRecord(
        fingerprint=fingerprint(RULE, {"cluster": "test"}),
        rule=RULE,
        severity="info",
        labels={"cluster": "test"},
        state="firing",
        event_seconds=now,
        active_since_seconds=now,
        fired_seconds=now,
        summary="Test alert from flopwatch: this channel works, nothing is wrong",
    )
    wording = notices.Wording(external_url=external_url)
    return notices.grouped([("firing", record)], wording)


def _report(results: list[dict[str, Any]], *, as_json: bool) -> str:
    if as_json:
        return json.dumps({"results": results}, indent=2) + "\n"
    return "".join(
        f"{result['channel']} ({result['address']}): {result['problem'] or 'delivered'}\n"
        for result in results
    )
