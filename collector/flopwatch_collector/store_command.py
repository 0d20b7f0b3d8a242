"""``flopwatch store``: check, measure, tidy, export, back up and restore what the collector keeps.

Where a collector holds the data folder it does the work, asked through the socket in that folder; else this process
opens the store itself.
"""

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from flopwatch import settings as settings_file
from flopwatch_collector import config
from flopwatch_collector.store import copy_target, copying, desk, engines, exporting, saving
from flopwatch_collector.store.control_sqlite import SqliteControl
from flopwatch_collector.store.embedded import EmbeddedStore
from flopwatch_collector.store.port import (
    NotSupported,
    Progress,
    StoreLocked,
    StoreSettings,
    TooSlow,
    Unavailable,
)
from flopwatch_collector.store.timespan import WrongUse, timespan
from flopwatch_collector.store.work import Answer, Work

TELL_SECONDS = 2.0
"""Progress is a line this often, where standard error is no terminal."""

_REFUSALS = (
    OSError, ValueError, StoreLocked, Unavailable, NotSupported, TooSlow, desk.Refused,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A subcommand's options and the collector's settings."""

    options: argparse.Namespace
    settings: config.CollectorSettings
    folder: Path
    progress: Progress


@dataclass(frozen=True, kw_only=True, slots=True)
class Action:
    """A subcommand: its options, what it does, and how its answer reads."""

    summary: str
    run: Callable[[Asked], Answer]
    text: Callable[[Answer], str]
    options: Callable[[argparse.ArgumentParser], None] = lambda _: None
    failed: Callable[[Answer], bool] = lambda _: False
    """Whether the answer is bad news: the command then ends with 1."""


def main(argv: list[str]) -> int:
    """Run ``store``; 0, 1 when it cannot be done or ``check`` found something, 2 for wrong use.

    Raises:
        SettingError: a setting is wrong.
    """
    options = _parser().parse_args(argv)
    action = ACTIONS[options.action]
    path = options.config or settings_file.default_file(os.environ)
    collector = config.read(settings_file.load(path), os.environ).collector
    if options.data_dir is not None:
        collector = dataclasses.replace(collector, data_dir=options.data_dir)
    folder = config.data_folder(collector, os.environ).absolute()
    progress = _on_terminal if sys.stderr.isatty() else _Lines()
    try:
        answer = action.run(Asked(options=options, settings=collector, folder=folder, progress=progress))
    except WrongUse as error:
        sys.stderr.write(f"flopwatch store {options.action}: {error}\n")
        return 2
    except _REFUSALS as error:
        sys.stderr.write(f"flopwatch store {options.action}: {error}\n")
        return 1
    sys.stdout.write(json.dumps(answer, indent=1) + "\n" if options.json else action.text(answer))
    return int(action.failed(answer))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flopwatch store", description="What the collector keeps; also while a collector runs."
    )
    actions = parser.add_subparsers(dest="action", required=True)
    for name, action in ACTIONS.items():
        made = actions.add_parser(name, help=action.summary, description=action.summary)
        made.add_argument(
            "--config", type=Path, help="the settings file (default: the system's, then the user's)"
        )
        made.add_argument("--data-dir", type=Path, help="folder of the collector's data (collector.data_dir)")
        made.add_argument("--json", action="store_true", help="print JSON")
        action.options(made)
    return parser


def work(asked: Asked, name: str, options: Mapping[str, Any]) -> Answer:
    """Have the work done by the collector that holds the folder, or here where none does.

    Raises:
        FileNotFoundError: the folder holds no store.
        desk.Refused: the collector did not do it.
    """
    if asked.settings.store == "clickhouse":
        return _on_clickhouse(asked, name, options)
    if not (asked.folder / "format").is_file():
        raise FileNotFoundError(
            f"{asked.folder} holds no store; name the folder with --data-dir or the setting collector.data_dir"
        )
    try:
        store = EmbeddedStore(StoreSettings(folder=asked.folder, free_disk_ratio=0.0))
    except StoreLocked:
        return desk.ask(asked.folder, name, options, asked.progress)
    with ExitStack() as opened:
        opened.callback(store.close)
        control = SqliteControl(asked.folder / config.CONTROL_FILE)
        opened.callback(control.close)
        copy = _copy(control)
        return Work(store, control, copy).do(name, options, asked.progress)


def _on_clickhouse(asked: Asked, name: str, options: Mapping[str, Any]) -> Answer:
    """Here, or by the collector whose control state is a file in the folder."""
    with ExitStack() as parts:
        try:
            made = engines.clickhouse(asked.settings, asked.folder, time.time, parts)
        except StoreLocked:
            return desk.ask(asked.folder, name, options, asked.progress)
        return Work(made.store, made.control).do(name, options, asked.progress)


def _copy(control: SqliteControl) -> Callable[[Path], None]:
    return lambda folder: control.copy_to(folder / config.CONTROL_FILE)


def _stats(asked: Asked) -> Answer:
    return work(asked, "stats", {}) | {"folder": str(asked.folder)}


def _stats_text(answer: Answer) -> str:
    first = answer["first_sample_seconds"]
    lines = [
        f"folder            {answer['folder']}",
        f"size              {_size(answer['bytes_on_disk'])}",
        f"oldest            {'nothing yet' if first is None else _time(first)}",
        f"waiting batches   {answer['pending_batches']}",
        f"reopened          {answer['reopened']} times since the start",
        f"missing batches   {answer['batches_missing']}",
    ]
    lines += [f"rows {name:<12} {count}" for name, count in answer["rows"].items()]
    lines += [f"problem: {text}" for text in answer["problems"]]
    return "\n".join(lines) + "\n"


def _check_text(answer: Answer) -> str:
    found = answer["problems"]
    if not found:
        return "everything can be read, and nothing is missing\n"
    lines = [f"{problem['code']}: {problem['text']}{_missing(problem)}\n" for problem in found]
    return "".join(lines)


def _missing(problem: Mapping[str, Any]) -> str:
    number = problem["batches_missing"]
    return "" if number is None else f" (acknowledged batches missing: {number})"


def _compact_text(answer: Answer) -> str:
    return f"{_size(answer['freed_bytes'])} freed\n"


def _backup_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("destination", type=Path, metavar="FOLDER", help="a new or empty folder")


def _backup(asked: Asked) -> Answer:
    return work(asked, "backup", {"destination": str(asked.options.destination.absolute())})


def _saved_text(answer: Answer) -> str:
    return (
        f"{answer['folder']}: {answer['files']} files, {_size(answer['bytes'])}, "
        f"as of {_time(answer['taken_seconds'])}\n"
    )


def _restore_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("backup", type=Path, metavar="FOLDER", help="a folder that backup made")


def _restore(asked: Asked) -> Answer:
    saved = saving.restore(asked.options.backup.absolute(), asked.folder, asked.progress)
    return dataclasses.asdict(saved) | {"folder": str(saved.folder)}


def _export_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "question", choices=exporting.QUESTIONS, metavar="QUESTION", help=", ".join(exporting.QUESTIONS)
    )
    parser.add_argument("output", type=Path, metavar="FILE", help="a new file, NAME.parquet or NAME.csv")
    parser.add_argument("--from", dest="start", metavar="TIME", help="ISO 8601 (UTC without an offset)")
    parser.add_argument("--to", dest="end", metavar="TIME", help="likewise; default: now")
    parser.add_argument(
        "--last", metavar="SPAN", help="instead of --from: the time until --to, as 90m, 24h, 7d"
    )
    parser.add_argument("--format", choices=exporting.FORMATS, help="default: by the file's name")
    parser.add_argument(
        "--step-seconds",
        type=float,
        default=60.0,
        help="bucket of gpu_series, job_series and node_series (default: 60)",
    )


def _export(asked: Asked) -> Answer:
    options = asked.options
    start, end = timespan(options.start, options.end, options.last, time.time())
    suffix = options.output.suffix.lstrip(".").lower()
    chosen = options.format or (suffix if suffix in exporting.FORMATS else None)
    if chosen is None:
        raise WrongUse(
            f"the file {options.output} does not say its format; name it NAME.parquet or NAME.csv, or give --format"
        )
    try:
        wanted = exporting.Export(
            question=options.question,
            start_seconds=start,
            end_seconds=end,
            output=options.output.absolute(),
            format=chosen,
            step_seconds=options.step_seconds,
        )
    except ValueError as error:
        raise WrongUse(str(error)) from None
    return work(asked, "export", dataclasses.asdict(wanted) | {"output": str(wanted.output)})


def _export_text(answer: Answer) -> str:
    return f"{answer['output']}: {answer['rows']} rows, {_size(answer['bytes'])}\n"


def _copy_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="DIR", help="the folder (default: collector.data_dir)"
    )
    parser.add_argument("--to", metavar="URL", help="ClickHouse (default: collector.clickhouse_url)")


def _copy_history(asked: Asked) -> Answer:
    """Copy an embedded store's history to ClickHouse."""
    chosen = {} if asked.options.to is None else {"store": "clickhouse", "clickhouse_url": asked.options.to}
    settings = dataclasses.replace(asked.settings, **chosen)
    if settings.store != "clickhouse":
        raise WrongUse('say where to: --to URL, or store = "clickhouse" and clickhouse_url in the settings')
    source = asked.folder if asked.options.source is None else asked.options.source.absolute()
    if not (source / "format").is_file():
        raise FileNotFoundError(f"{source} holds no store; name the folder with --from")
    with ExitStack() as opened:
        store = EmbeddedStore(StoreSettings(folder=source, free_disk_ratio=0.0))
        opened.callback(store.close)
        target = copy_target.opened(settings, asked.folder, source, opened)
        copied = copying.copy(store, source, target, asked.progress)
    return dataclasses.asdict(copied) | {"from": str(source), "whole": copied.whole}


def _copied_text(answer: Answer) -> str:
    lines = [
        f"{kind:<10} {count:>12} here {answer['target'][kind]:>12} there"
        for kind, count in answer["source"].items()
    ]
    end = "everything is there" if answer["whole"] else "not everything is there: run it again"
    return "\n".join([*lines, f"documents copied: {answer['documents']}", end]) + "\n"


ACTIONS: dict[str, Action] = {
    "check": Action(
        summary="read everything that is kept; ends with 1 when something is unreadable or missing",
        run=lambda asked: work(asked, "check", {}),
        text=_check_text,
        failed=lambda answer: bool(answer["problems"]),
    ),
    "stats": Action(summary="rows, size and health", run=_stats, text=_stats_text),
    "compact": Action(
        summary="merge small files now",
        run=lambda asked: work(asked, "compact", {}),
        text=_compact_text,
    ),
    "export": Action(
        summary="the answer to a question over a range of time, as one Parquet or CSV file",
        run=_export,
        text=_export_text,
        options=_export_options,
    ),
    "backup": Action(
        summary="copy everything as of one moment into a folder, while batches come in",
        run=_backup,
        text=_saved_text,
        options=_backup_options,
    ),
    "copy": Action(
        summary="copy the history of an embedded store to ClickHouse; goes on where it was interrupted",
        run=_copy_history,
        text=_copied_text,
        options=_copy_options,
        failed=lambda answer: not answer["whole"],
    ),
    "restore": Action(
        summary="make the data folder, which must be new or empty, from a backup",
        run=_restore,
        text=_saved_text,
        options=_restore_options,
    ),
}
"""Subcommands by name."""


class _Lines:
    """Progress as a line every few seconds."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def __call__(self, doing: str, done_ratio: float) -> None:
        """Say how far it is, when it was not said lately."""
        if time.monotonic() - self._told >= TELL_SECONDS:
            self._told = time.monotonic()
            sys.stderr.write(f"{done_ratio:4.0%} {doing}\n")


def _on_terminal(doing: str, done_ratio: float) -> None:
    sys.stderr.write(f"\r\x1b[K{done_ratio:4.0%} {doing[:100]}" if done_ratio < 1.0 else "\r\x1b[K")
    sys.stderr.flush()


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
