"""``flopwatch alerts test``: send a test alert through the configured channels."""

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
from flopwatch_collector import config
from flopwatch_collector.alerting import notices
from flopwatch_collector.alerting.delivery.channels import channels
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
    """Run ``alerts``; 0 when every channel took the test alert, 1 when one did not, 2 for wrong use.

    Raises:
        SettingError: a setting is wrong.
    """
    arguments = _parser().parse_args(argv)
    path = arguments.config or settings_file.default_file(os.environ)
    settings = config.read(settings_file.load(path), os.environ)
    receivers = channels(settings.notify)
    if not receivers:
        sys.stderr.write(NO_CHANNELS)
        return 2
    results = [_send(receiver, settings.collector, time.time()) for receiver in receivers]
    sys.stdout.write(_report(results, as_json=arguments.json))
    return 0 if all(result["delivered"] for result in results) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flopwatch alerts", description="Alerts from the command line.")
    commands = parser.add_subparsers(dest="command", required=True)
    test = commands.add_parser("test", help="send a test alert through the configured channels")
    test.add_argument(
        "--config", type=Path, help="the settings file (default: the system's, then the user's)"
    )
    test.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _send(receiver: Channel, collector: config.CollectorSettings, now: float) -> dict[str, Any]:
    """What became of one attempt; nothing in it is secret."""
    result = {"channel": receiver.name, "address": receiver.privacy_form, "delivered": True, "problem": None}
    try:
        receiver.send(
            test_body(receiver.name, config.public_address(collector, socket.gethostname()), now),
            f"test-{now:.3f}",
        )
    except DeliveryFailed as error:
        result.update(delivered=False, problem=str(error))
    return result


def test_body(receiver: str, external_url: str, now: float) -> Mapping[str, Any]:
    """A firing alert that says of itself that it is a test."""
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
    return webhook_body(notices.grouped([("firing", record)], wording), receiver, external_url)


def _report(results: list[dict[str, Any]], *, as_json: bool) -> str:
    if as_json:
        return json.dumps({"results": results}, indent=2) + "\n"
    return "".join(
        f"{result['channel']} ({result['address']}): {result['problem'] or 'delivered'}\n"
        for result in results
    )
