"""A report as rows, for CSV, Parquet and spreadsheets: a row a line of the chargeback. Pure."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone

from flopwatch.answers.ledger import LEDGER_CLASSES
from flopwatch.answers.report import Report, ReportLine
from flopwatch_collector.store.parquet import ColumnKind

SIMULATED = "SIMULATED"
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
Row = dict[str, object]

LINE_COLUMNS: Mapping[str, ColumnKind] = {
    "simulated": "VARCHAR", "start": "VARCHAR", "end": "VARCHAR", "by": "VARCHAR", "key": "VARCHAR",
    "label": "VARCHAR", "user": "VARCHAR", "account": "VARCHAR", "leased": "BOOLEAN",
    "gpu_seconds": "DOUBLE", "leased_gpu_seconds": "DOUBLE",
    **{f"{name}_gpu_seconds": "DOUBLE" for name in LEDGER_CLASSES},
    "waste_gpu_seconds": "DOUBLE", "platform_loss_gpu_seconds": "DOUBLE",
    "cost": "DOUBLE", "billed": "DOUBLE", "credit": "DOUBLE", "net": "DOUBLE", "waste_cost": "DOUBLE",
    "currency": "VARCHAR", "provisional": "BOOLEAN",
}  # fmt: skip
"""``cost`` is of all time of the line, ``billed`` of its leased time, ``net`` is ``billed + credit``."""


def line_rows(report: Report) -> Iterator[Row]:
    """A row a line; their GPU seconds add up to the capacity of the period."""
    shared = {
        "simulated": SIMULATED if report.status.simulated else None,
        "start": utc(report.start_seconds),
        "end": utc(report.end_seconds),
        "by": report.by,
    }
    provisional = report.ledger.provisional_from_seconds is not None
    for line in report.lines:
        yield {**shared, **_amounts(line), "currency": report.status.currency, "provisional": provisional}


def _amounts(line: ReportLine) -> Row:
    return {
        "key": line.key,
        "label": line.label,
        "user": line.user,
        "account": line.account,
        "leased": line.leased_somewhere,
        "gpu_seconds": line.gpu_milliseconds / 1000.0,
        "leased_gpu_seconds": line.leased_gpu_milliseconds / 1000.0,
        **{f"{name}_gpu_seconds": line.by_class[name] / 1000.0 for name in LEDGER_CLASSES},
        "waste_gpu_seconds": line.waste_gpu_milliseconds / 1000.0,
        "platform_loss_gpu_seconds": line.credit_gpu_milliseconds / 1000.0,
        "cost": line.cost,
        "billed": line.billed,
        "credit": line.credit,
        "net": line.net,
        "waste_cost": line.waste_money,
    }


def utc(seconds: float) -> str:
    """ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(round(seconds), tz=timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def csv_text(columns: Sequence[str], rows: Iterator[Row] | Sequence[Row]) -> str:
    """CSV with a header, also without rows; unknown is empty, no text is a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([cell(row.get(name)) for name in columns])
    return text.getvalue()


def cell(value: object) -> object:
    """A value for a spreadsheet: text from outside never is a formula, unknown is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return "'" + value
    return value


def csv_of(report: Report) -> bytes:
    """The report's lines as CSV in UTF-8."""
    return csv_text(list(LINE_COLUMNS), line_rows(report)).encode()
