"""``flopwatch alerts check``: are the settings right, and what would the rules have said of the past."""

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from flopwatch import settings as settings_file
from flopwatch.collector_client import Address, AskError, address_from, ask
from flopwatch.query import Job, Range
from flopwatch_collector import app, config, durations
from flopwatch_collector.alerting.delivery.channels import Wiring, wiring
from flopwatch_collector.alerting.rehearsal import Episode, Rehearsal, largest, rehearse
from flopwatch_collector.past import Past
from flopwatch_collector.store.port import StoreLocked, Unavailable

POINT_SECONDS = 60.0
MOST_POINTS = 10_000
MOST_JOBS = 500


def add_parser(commands: Any) -> None:
    """The command's options."""
    check = commands.add_parser(
        "check", help="validate the settings, and see what the rules would have said of the past"
    )
    check.add_argument(
        "--config", type=Path, help="the settings file (default: the system's, then the user's)"
    )
    source = check.add_mutually_exclusive_group()
    source.add_argument("--collector", metavar="URL", help="rehearse on what this collector keeps")
    source.add_argument(
        "--data", type=Path, metavar="DIR", help="rehearse on a data folder that no collector uses"
    )
    check.add_argument("--last", default="7d", metavar="TIME", help="how far back (default: 7d)")
    check.add_argument("--token-file", type=Path, help="file with a token (default: FLOPWATCH_TOKEN[_FILE])")
    check.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """0 when the settings are right; 1 when the past cannot be read; 2 for wrong use.

    Raises:
        SettingError: a setting is wrong.
    """
    seconds = durations.seconds_of(options.last)
    if not seconds:
        sys.stderr.write(f"flopwatch: --last is {options.last!r}; allowed: {durations.ALLOWED}, above 0\n")
        return 2
    path = options.config or settings_file.default_file(os.environ)
    settings = config.read(settings_file.load(path), os.environ)
    wired = wiring(settings)
    rehearsal = None
    if options.collector or options.data:
        try:
            rehearsal = _rehearsed(options, settings, seconds)
        except (AskError, StoreLocked, Unavailable, OSError) as error:
            sys.stderr.write(f"flopwatch: the past cannot be read: {error}\n")
            return 1
    if options.json:
        sys.stdout.write(json.dumps(_document(wired, rehearsal, seconds), indent=1) + "\n")
    else:
        name = "the defaults" if path is None else str(path)
        sys.stdout.write("\n".join(_lines(name, wired, rehearsal, seconds)) + "\n")
    return 0


def _rehearsed(options: argparse.Namespace, settings: config.Settings, seconds: float) -> Rehearsal:
    """The rules over the past, of the largest jobs where there are more than can be looked at."""
    points = int(min(MOST_POINTS, max(1.0, seconds / POINT_SECONDS)))
    asked = Range(seconds=seconds, points=points)
    if options.data is not None:
        return _from_folder(options.data, settings, asked)
    address = address_from(options.collector, options.token_file, os.environ)
    document = ask(address, "GET", f"/api/v1/alerts/past?seconds={seconds:.0f}")
    past = msgspec.convert(document, Past, strict=False)
    return rehearse(list(_from_collector(address, asked)), settings.alerts, past)


def _from_collector(address: Address, asked: Range) -> Iterator[Job]:
    rows = ask(address, "GET", f"/api/v1/query/jobs?seconds={asked.seconds:.0f}")["rows"]
    rows.sort(key=lambda row: -(row["gpus"] or row["gpus_observed"] or 0))
    for row in rows[:MOST_JOBS]:
        path = f"/api/v1/query/jobs/{quote(row['job_id'], safe='')}"
        document = ask(address, "GET", f"{path}?seconds={asked.seconds:.0f}&points={asked.points}")
        yield msgspec.convert(document, Job, strict=False)


def _from_folder(folder: Path, settings: config.Settings, asked: Range) -> Rehearsal:
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder")
    collector = dataclasses.replace(settings.collector, data_dir=folder)
    quiet = dataclasses.replace(settings, collector=collector, notify=(), routes=(), remote_write=())
    running = app.build(quiet, environ={})
    with contextlib.closing(_Closing(running)):
        running.accounting.follow(time.time())
        jobs = list(largest(running.query, asked, MOST_JOBS))
        return rehearse(jobs, settings.alerts, running.reports.past(asked.seconds))


@dataclasses.dataclass(frozen=True, slots=True)
class _Closing:
    running: app.Running

    def close(self) -> None:
        self.running.stop()


def _document(wired: Wiring, rehearsal: Rehearsal | None, seconds: float) -> dict[str, Any]:
    return {
        "valid": True,
        "channels": _names(wired),
        "routes": len(wired.routes),
        "seconds": seconds,
        "rehearsal": None
        if rehearsal is None
        else {
            "episodes": [dataclasses.asdict(one) for one in rehearsal.episodes],
            "judged": list(rehearsal.judged),
            "not_judged": list(rehearsal.not_judged),
            "reasons": rehearsal.reasons,
            "judged_seconds": rehearsal.seconds,
        },
    }


def _names(wired: Wiring) -> list[str]:
    return [*(one.name for one in wired.channels), *(one.name for one in wired.alertmanagers)]


def _lines(name: str, wired: Wiring, rehearsal: Rehearsal | None, seconds: float) -> Iterator[str]:
    channels = ", ".join(_names(wired)) or "none"
    yield f"settings ({name}): valid; channels: {channels}; routes: {len(wired.routes)}"
    if rehearsal is None:
        yield "to see what the rules would have said of the past: --collector URL, or --data DIR"
        return
    for rule in rehearsal.judged:
        own = [one for one in rehearsal.episodes if one.rule == rule]
        times = "once" if len(own) == 1 else f"{len(own)} times"
        over = durations.text_of(rehearsal.seconds.get(rule, seconds))
        if own:
            yield f"{rule} would have fired {times} in {over}:"
            yield from (_line(one) for one in own)
        else:
            yield f"{rule} would not have fired in {over}"
    by_reason: dict[str, list[str]] = {}
    for rule in rehearsal.not_judged:
        by_reason.setdefault(rehearsal.reasons[rule], []).append(rule)
    for reason, rules in by_reason.items():
        yield f"not judged: {', '.join(rules)}: {reason}"


def _line(one: Episode) -> str:
    end = "still firing" if one.end_seconds is None else _moment(one.end_seconds)
    return f"  {_moment(one.start_seconds)} – {end}  {one.severity}  {one.summary or one.job}"  # noqa: RUF001 - a range


def _moment(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
