"""A period, or one job, as HTML, CSV, JSON, Parquet or FOCUS: from a running collector, else from its data folder."""

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import msgspec

from flopwatch import settings as settings_file
from flopwatch.answers.report import REPORT_BY
from flopwatch.collector_client import Address, AskError, add_address, address_from, fetch
from flopwatch.job_command import job_id
from flopwatch_collector import app, config
from flopwatch_collector.reports.focus import NoPrice
from flopwatch_collector.reports.making import Question
from flopwatch_collector.reports.period import Asked, WrongPeriod, period_of
from flopwatch_collector.reports.service import FORMATS, Reports
from flopwatch_collector.reports.wording import LANGUAGES
from flopwatch_collector.store.port import StoreLocked, Unavailable

SETTLE_SECONDS = 120.0
"""So long a data folder's outstanding time is computed before the report is made of what there is."""
REPORT_SECONDS = 600.0
"""A report of months of a large fleet takes its time."""
NOT_FOUND, REFUSED = 404, 422
SIMULATED_MARK = "SIMULATED"
"""A file that a demo leaves in its folder."""


class WrongUse(Exception):
    """The command cannot do what it is asked; the message says why."""


class NotThere(Exception):
    """What was asked for is not there, or nobody answers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What the options say."""

    period: Asked
    by: str
    cluster: str | None
    format: str
    language: str
    job: str | None


def main(argv: list[str]) -> int:
    """Run the command; 0, 1 when nobody answers or there is no such job, 2 for wrong use.

    Raises:
        SettingError: an option or a setting is wrong.
    """
    options = _parser().parse_args(argv)
    wanted = Wanted(
        period=Asked(last=options.last, start=options.start, end=options.end),
        by=options.by,
        cluster=options.cluster,
        format="json" if options.json else options.format,
        language=options.language,
        job=options.job,
    )
    try:
        content = content_of(wanted, options)
        _write(content, wanted.format, options.output)
    except (WrongUse, WrongPeriod, NoPrice) as error:
        sys.stderr.write(f"flopwatch: {_with_dashes(error)}\n")
        return 2
    except (NotThere, StoreLocked, Unavailable) as error:
        sys.stderr.write(f"flopwatch: {error}\n")
        return 1
    return 0


def _with_dashes(error: Exception) -> str:
    return f"--{error}" if isinstance(error, WrongPeriod) else str(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flopwatch report", description=__doc__)
    add = parser.add_argument
    add("--last", metavar="TIME", help="24h, 7d, 4w (default: 7d)")
    add("--from", dest="start", metavar="DATE", help="begin: a date of the site's time zone, or an ISO time")
    add("--to", dest="end", metavar="DATE", help="end; a date is included (default: now)")
    add("--by", choices=REPORT_BY, default="team", help="whom lines are charged to (default: team)")
    add("--cluster", help="only this cluster")
    add("--job", metavar="JOB", help="one job instead of a period: its id, its scheduler's id, or its name")
    add("--format", choices=FORMATS, default="html", help="default: html")
    add("--json", action="store_true", help="the same as --format json")
    add("--language", choices=LANGUAGES, default="en", help="of HTML (default: en)")
    add("--output", type=Path, metavar="FILE", help="where to write (default: standard output)")
    add_address(parser)
    add("--data-dir", type=Path, metavar="DIR", help="read this data folder; no collector may run on it")
    add(
        "--config",
        type=Path,
        help="the settings file, for a data folder (default: the system's, then the user's)",
    )
    return parser


def content_of(wanted: Wanted, options: argparse.Namespace) -> bytes:
    """The report's bytes.

    Raises:
        WrongUse: a wrong combination of options, or the collector refuses them.
        NotThere: nobody answers, or there is no such job.
    """
    if wanted.job is not None and wanted.format not in ("html", "json"):
        raise WrongUse(f"--format is {wanted.format!r}; allowed with --job: html, json")
    if options.data_dir is not None:
        return _from_folder(wanted, options)
    address = address_from(options.url, options.token_file, os.environ)
    try:
        return _asked(wanted, address)
    except AskError as error:
        if error.status == REFUSED:
            raise WrongUse(str(error)) from error
        if error.status is None and options.url is None and _has_data(options):
            return _from_folder(wanted, options)
        raise NotThere(str(error)) from error


def _asked(wanted: Wanted, address: Address) -> bytes:
    """The collector's answer. A job it does not list any more may still have a report, under its id.

    Raises:
        AskError: it does not answer, or refuses.
    """
    if wanted.job is None:
        return fetch(address, "GET", _path(wanted, None), seconds=REPORT_SECONDS)
    try:
        found, unlisted = job_id(address, wanted.job), None
    except AskError as error:
        found, unlisted = wanted.job, error
    try:
        return fetch(address, "GET", _path(wanted, found), seconds=REPORT_SECONDS)
    except AskError as error:
        if error.status == NOT_FOUND and unlisted is not None:
            raise AskError(str(unlisted), NOT_FOUND) from error
        raise


def _path(wanted: Wanted, job: str | None) -> str:
    if job is not None:
        asked = urlencode({"format": wanted.format, "language": wanted.language})
        return f"/api/v1/reports/jobs/{quote(job, safe='')}?{asked}"
    values = {
        "last": wanted.period.last,
        "from": wanted.period.start,
        "to": wanted.period.end,
        "by": wanted.by,
        "cluster": wanted.cluster,
        "format": wanted.format,
        "language": wanted.language,
    }
    return "/api/v1/report?" + urlencode({name: value for name, value in values.items() if value is not None})


def _settings(options: argparse.Namespace) -> tuple[config.Settings, dict[str, str]]:
    environ = dict(os.environ)
    path = options.config or settings_file.default_file(environ)
    tables = settings_file.load(path)
    if options.data_dir is not None:
        tables = {**tables, "collector": {**tables.get("collector", {}), "data_dir": str(options.data_dir)}}
        environ.pop("FLOPWATCH_COLLECTOR_DATA_DIR", None)
    return config.read(tables, environ), environ


def _has_data(options: argparse.Namespace) -> bool:
    settings, environ = _settings(options)
    return (config.data_folder(settings.collector, environ) / config.CONTROL_FILE).is_file()


def _from_folder(wanted: Wanted, options: argparse.Namespace) -> bytes:
    settings, environ = _settings(options)
    folder = config.data_folder(settings.collector, environ)
    if not (folder / config.CONTROL_FILE).is_file():
        raise WrongUse(f"--data-dir is {str(folder)!r}; allowed: the data folder of a collector")
    clock = _Clock(seconds=time.time())
    running = app.build(
        settings, environ=environ, simulated=is_simulated(folder), clock=lambda: clock.seconds
    )
    try:
        newest = float(running.store.latest_gpus()["ts"].max(initial=0.0))
        clock.seconds = min(clock.seconds, newest) if newest else clock.seconds
        until = time.monotonic() + SETTLE_SECONDS
        running.accounting.tick(clock.seconds)
        while not running.accounting.settled() and time.monotonic() < until:
            running.accounting.tick(clock.seconds)
        return _made(wanted, running.reports)
    finally:
        running.stop()


@dataclass(kw_only=True)
class _Clock:
    """A folder's present is that of its newest data: what came after, nobody watched."""

    seconds: float


def is_simulated(folder: Path) -> bool:
    """Whether the folder holds a demo's data: then everything says so."""
    return any((place / SIMULATED_MARK).exists() for place in (folder, folder.parent))


def _made(wanted: Wanted, reports: Reports) -> bytes:
    if wanted.job is not None:
        return _job(wanted, reports)
    start, end = period_of(wanted.period, reports.clock(), reports.maker.zone)
    question = Question(
        start_seconds=start,
        end_seconds=end,
        by=next(by for by in REPORT_BY if by == wanted.by),
        cluster=wanted.cluster,
    )
    chosen = next(each for each in FORMATS if each == wanted.format)
    language = next(each for each in LANGUAGES if each == wanted.language)
    return reports.file(question, chosen, language).content


def _job(wanted: Wanted, reports: Reports) -> bytes:
    jobs = reports.maker.sources.fleet.state().jobs.values()
    names = (wanted.job,)
    found = [job for job in jobs if job.job_id in names or job.scheduler_job_id in names or job.name in names]
    newest = max(found, key=lambda job: job.last_seen_seconds, default=None)
    report = reports.job(wanted.job or "" if newest is None else newest.job_id)
    if report is None:
        raise NotThere(f"there is no job {wanted.job!r}")
    if wanted.format == "json":
        return msgspec.json.encode(report)
    language = next(each for each in LANGUAGES if each == wanted.language)
    return reports.job_html(report, language)


def _write(content: bytes, format_: str, output: Path | None) -> None:
    """To the file, else to standard output.

    Raises:
        WrongUse: the file cannot be written, or Parquet would go to a terminal.
    """
    if output is not None:
        try:
            output.write_bytes(content)
        except OSError as error:
            raise WrongUse(
                f"--output is {str(output)!r}; allowed: a file that can be written ({error.strerror})"
            ) from error
        return
    if format_ == "parquet" and sys.stdout.isatty():
        raise WrongUse("--format is 'parquet'; allowed on a terminal: with --output FILE")
    sys.stdout.buffer.write(content if content.endswith(b"\n") or format_ == "parquet" else content + b"\n")
    sys.stdout.buffer.flush()
