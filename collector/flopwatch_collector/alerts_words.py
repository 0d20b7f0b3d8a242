"""``flopwatch alerts silence|unsilence|silences|ack|comment``: asks the collector."""

import argparse
import datetime
import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from flopwatch.collector_client import Address, AskError, add_address, address_from, ask
from flopwatch_collector import durations
from flopwatch_collector.alerting.matchers import ALLOWED, MatcherError, parsed

COMMANDS = ("silence", "unsilence", "silences", "ack", "comment")
SHORTEST_FINGERPRINT = 6


class WrongUse(Exception):
    """An argument cannot be used; the message has its name, its value and what is allowed."""


def add_parsers(commands: Any) -> None:
    """The commands' options."""
    silence = commands.add_parser("silence", help="show alerts that fit, and do not send them for a time")
    silence.add_argument("matchers", nargs="+", metavar="MATCHER", help=ALLOWED)
    silence.add_argument(
        "--for", dest="lasting", required=True, metavar="TIME", help='how long: "2h", "30m", "3d"'
    )
    silence.add_argument("--start", metavar="TIME", help='begin so much later: "1h" (default: now)')
    silence.add_argument("--comment", required=True, help="why")
    silence.add_argument("--author", help="who (default: the token's name)")
    unsilence = commands.add_parser("unsilence", help="end a silence now")
    unsilence.add_argument("silence_id", metavar="ID")
    listed = commands.add_parser("silences", help="silences that hold, or will")
    listed.add_argument("--expired", action="store_true", help="also those that have ended")
    for name, words in (("ack", "take an alert: it is not repeated"), ("comment", "say a word on an alert")):
        word = commands.add_parser(name, help=words)
        word.add_argument(
            "alert", metavar="ALERT", help="the alert's fingerprint, or its beginning (6 or more characters)"
        )
        word.add_argument("text", metavar="TEXT")
        word.add_argument("--author", help="who (default: the token's name)")
    for name in COMMANDS:
        _add_common(commands.choices[name])


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_address(parser)


def run(options: argparse.Namespace) -> int:
    """0, 1 when the collector cannot be asked or refuses, 2 for wrong use.

    Raises:
        SettingError: the collector's address is none.
    """
    try:
        address = address_from(options.url, options.token_file, os.environ)
        document = _RUN[options.command](options, address)
    except WrongUse as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 2
    except AskError as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 1
    text = json.dumps(document, indent=1) + "\n" if options.json else _text(options.command, document)
    sys.stdout.write(text)
    return 0


def _silence(options: argparse.Namespace, address: Address) -> Mapping[str, Any]:
    try:
        matchers = [parsed(text) for text in options.matchers]
    except MatcherError as error:
        raise WrongUse(str(error)) from error
    start = time.time() + (_seconds("--start", options.start) if options.start else 0.0)
    body = {
        "matchers": [
            {"name": one.name, "value": one.value, "is_regex": one.is_regex, "is_equal": one.is_equal}
            for one in matchers
        ],
        "start_seconds": start,
        "end_seconds": start + _seconds("--for", options.lasting),
        "comment": options.comment,
        "created_by": options.author,
    }
    return dict(ask(address, "POST", "/api/v1/alerts/silences", body))


def _seconds(name: str, text: str) -> float:
    seconds = durations.seconds_of(text)
    if not seconds:
        raise WrongUse(f"{name} is {text!r}; allowed: {durations.ALLOWED}, above 0")
    return seconds


def _unsilence(options: argparse.Namespace, address: Address) -> Mapping[str, Any]:
    if not options.silence_id.isalnum():
        raise WrongUse(f"ID is {options.silence_id!r}; allowed: an id as `alerts silences` shows it")
    return dict(ask(address, "DELETE", f"/api/v1/alerts/silences/{options.silence_id}"))


def _silences(options: argparse.Namespace, address: Address) -> Mapping[str, Any]:
    more = "?expired=true" if options.expired else ""
    return dict(ask(address, "GET", f"/api/v1/alerts/silences{more}"))


def _word(options: argparse.Namespace, address: Address) -> Mapping[str, Any]:
    kind = "ack" if options.command == "ack" else "comments"
    fingerprint = _fingerprint(options.alert, address)
    body = {"comment": options.text, "by": options.author}
    return dict(ask(address, "POST", f"/api/v1/alerts/{fingerprint}/{kind}", body))


def _fingerprint(text: str, address: Address) -> str:
    """The one active alert whose fingerprint begins so."""
    if len(text) < SHORTEST_FINGERPRINT:
        raise WrongUse(
            f"ALERT is {text!r}; allowed: {SHORTEST_FINGERPRINT} or more characters of a fingerprint"
        )
    rows = ask(address, "GET", "/api/v1/query/alerts?seconds=86400")
    known = {str(row["fingerprint"]) for row in (*rows["active"], *rows["history"])}
    fitting = sorted(each for each in known if each.startswith(text))
    if len(fitting) != 1:
        raise AskError(f"{len(fitting)} alerts have a fingerprint that begins with {text!r}")
    return fitting[0]


_RUN = {"silence": _silence, "unsilence": _unsilence, "silences": _silences, "ack": _word, "comment": _word}


def _text(command: str, document: Mapping[str, Any]) -> str:
    if command == "silences":
        lines = [_silence_line(one) for one in document["silences"]]
        return "\n".join(lines or ["no silences"]) + "\n"
    if command in ("silence", "unsilence"):
        return _silence_line(document) + "\n"
    done = "taken" if command == "ack" else "noted"
    return f"{done} by {document['by']}: {document['comment']}\n"


def _silence_line(one: Mapping[str, Any]) -> str:
    times = " – ".join(_moment(one[key]) for key in ("start_seconds", "end_seconds"))  # noqa: RUF001 - a range
    return (
        f"{one['silence_id']}  {times}  {', '.join(one['matchers'])}  {one['created_by']}: {one['comment']}"
    )


def _moment(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%d %H:%M UTC")
