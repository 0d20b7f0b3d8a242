"""``flopwatch replay FILE``: recorded batches through ingest and accounting, in a scratch folder of its own."""

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from flopwatch import settings as settings_file
from flopwatch_collector import config
from flopwatch_collector.compute.buckets import WINDOW_SECONDS
from flopwatch_collector.replay.answer import Replayed, answer_of
from flopwatch_collector.replay.recording import Progress, Recording, read
from flopwatch_collector.replay.scratch import Fed, NotSettled, Scratch
from flopwatch_collector.replay.text import text_of
from flopwatch_collector.store.port import StoreLocked, Unavailable

COPY = "batches.jsonl"
_NUMBER = re.compile(r"\d+(\.\d+)?")
NOTHING = (
    "flopwatch: no batch in the input could be read; the format is one batch a line, as JSON, plain or gzip\n"
)


class WrongUse(Exception):
    """The command cannot do what it is asked; the message says why."""


def main(argv: list[str]) -> int:
    """Run ``replay``; 0 when it printed an answer, 1 when nothing could be read, 2 for wrong use.

    Raises:
        SettingError: a setting is wrong.
    """
    arguments = _parser().parse_args(argv)
    try:
        return _replay(arguments)
    except (WrongUse, StoreLocked) as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 2
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"flopwatch: {name}{error.strerror or error}\n")
        return 2
    except (Unavailable, NotSettled) as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flopwatch replay",
        description="Feed recorded batches through the collector's ingest and accounting, and print jobs, ledger "
        "and metrics. Nothing that runs is touched.",
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="FILE",
        help="JSON lines, one batch a line, plain or gzip; a folder of a spool; - for standard input",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--config", type=Path, help="the settings file: time zone, prices, targets, peaks (default: none)"
    )
    parser.add_argument(
        "--from",
        dest="since",
        help="begin of what is printed, cut to five minutes: epoch seconds or an ISO time (default: the data's)",
    )
    parser.add_argument(
        "--until", help="the time taken as now: epoch seconds or an ISO time (default: the end of the data)"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep the scratch folder here; it must be empty"
    )
    return parser


def _replay(arguments: argparse.Namespace) -> int:
    settings = config.read(settings_file.load(arguments.config), os.environ if arguments.config else {})
    zone = ZoneInfo(settings.collector.time_zone)
    since, until = (_time(name, getattr(arguments, name), zone) for name in ("since", "until"))
    with _folder(arguments.keep) as folder:
        recording = read(arguments.inputs, sys.stdin.buffer, folder / COPY, _progress())
        end = until if until is not None else recording.end_seconds
        if end is None or not recording.entries:
            _say_problems(recording)
            return 1
        with Scratch(folder, settings, now=end, simulated=recording.simulated) as scratch:
            fed = scratch.feed(recording, _progress())
            accounting = scratch.account(_progress())
            state = scratch.directory.state()
            begin = min((gpu.from_seconds for gpu in state.gpus.values()), default=end)
            replayed = Replayed(
                accounting=accounting,
                state=state,
                settings=settings,
                start_seconds=begin if since is None else max(_window(since), begin),
                end_seconds=end,
            )
            answer = {**answer_of(replayed), "input": _input(recording, fed)}
    sys.stdout.write(
        json.dumps(answer, indent=2, allow_nan=False) + "\n" if arguments.json else text_of(answer)
    )
    return 0


def _time(name: str, text: str | None, zone: ZoneInfo) -> float | None:
    """Epoch seconds of an option's value; a time without a zone is local."""
    if text is None:
        return None
    option = {"since": "--from", "until": "--until"}[name]
    if _NUMBER.fullmatch(text):
        return float(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        message = (
            f"{option} is {text!r}; allowed: epoch seconds, or an ISO time such as 2026-03-03T00:00:00+00:00"
        )
        raise WrongUse(message) from error
    return (found if found.tzinfo is not None else found.replace(tzinfo=zone)).timestamp()


def _window(seconds: float) -> float:
    """The begin of the five minutes that a time lies in: the ledger is kept by these."""
    return seconds // WINDOW_SECONDS * WINDOW_SECONDS


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """The scratch folder: a temporary one that is deleted after, or the one to keep."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="flopwatch-replay-") as name:
            yield Path(name)
        return
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise WrongUse(f"--keep is {str(keep)!r}; allowed: an empty folder, or one that does not exist yet")
    yield keep


def _progress() -> Progress:
    """Where progress is told: on the screen of standard error, or nowhere."""
    shown: Callable[[str], None] = _write if sys.stderr.isatty() else _silent
    return shown


def _write(text: str) -> None:
    sys.stderr.write(f"flopwatch replay: {text}\n")


def _silent(text: str) -> None:
    del text


def _say_problems(recording: Recording) -> None:
    sys.stderr.write(NOTHING)
    for problem in recording.problems:
        sys.stderr.write(f"  {problem.source}:{problem.line}: {problem.reason}\n")


def _input(recording: Recording, fed: Fed) -> dict[str, object]:
    return {
        "lines": recording.lines,
        "batches": fed.accepted,
        "duplicates": fed.duplicates,
        "set_aside": recording.set_aside,
        "problems": [
            {"source": each.source, "line": each.line, "reason": each.reason} for each in recording.problems
        ],
    }
