"""Files with a structure of their own, and which one a file is, by its first line."""

import json
import re
from collections.abc import Callable
from typing import Protocol

from flopwatch_agent.trainers.engine import Engine
from flopwatch_agent.trainers.files.document import JsonDocument
from flopwatch_agent.trainers.files.jsonlines import JsonLines, is_step
from flopwatch_agent.trainers.files.metricfile import METRIC_LINE, MetricFile
from flopwatch_agent.trainers.files.prometheus import Prometheus
from flopwatch_agent.trainers.files.table import CsvTable
from flopwatch_agent.trainers.framing import message_of

_CSV_HEADER = re.compile(r"[\w/ .()%-]*(?:[,;\t][\w/ .()%-]*){1,200}$")
_PROMETHEUS = re.compile(r"# (?:HELP|TYPE|scrape_time) ")


class Format(Protocol):
    """Reads blocks of whole lines of one file format."""

    def feed(self, block: bytes, arrived: float | None) -> None:
        """Take a block of whole lines."""

    def finish(self, arrived: float | None) -> None:
        """The end of the file."""


FORMATS: dict[str, Callable[[Engine], Format]] = {
    "jsonl": JsonLines,
    "json": JsonDocument,
    "csv": CsvTable,
    "prometheus": Prometheus,
    "metric-file": MetricFile,
}


def sniff(block: bytes) -> str | None:
    """The format of a file that begins with the block; ``stdout`` is text, ``None`` says wait for a line."""
    for line in re.split(rb"[\r\n]", block):
        text = line.decode("utf-8", "replace").strip().removeprefix("\ufeff")
        if text:
            return _of_first_line(text)
    return None


def _of_first_line(text: str) -> str:
    if text.startswith("{"):
        return _of_object(text)
    if METRIC_LINE.match(text):
        return "metric-file"
    if _PROMETHEUS.match(text):
        return "prometheus"
    if _CSV_HEADER.match(text) and "step" in re.split(r"[,;\t/]", text):
        return "csv"
    return "stdout"


def _of_object(text: str) -> str:
    if text == "{":
        return "json"
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return "stdout"
    if not isinstance(document, dict) or (message_of(document) is not None and not is_step(document)):
        return "stdout"
    return "json" if "log_history" in document else "jsonl"
