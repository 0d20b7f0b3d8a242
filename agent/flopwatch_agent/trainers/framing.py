"""What stands around a log line: container framing, structured sinks, rank labels."""

import json
import re
from dataclasses import dataclass
from typing import Any

from flopwatch_agent.trainers.clocks import Stamp, read_stamp
from flopwatch_agent.trainers.lines import without_escapes

_MAX_JOINED_CHARACTERS = 1 << 20
LABEL_BYTES = 160
"""A stack of labels is not longer."""
_CRI = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)) (stdout|stderr) ([FP]) ")
_MESSAGE_KEYS = ("log", "message", "msg", "text", "textPayload", "body")
_DOCKER_KEYS = {"log", "stream", "time", "attrs"}
"""A forwarder (Fluent Bit, Vector) puts more beside them, and takes the line feed off."""
_TIME_KEYS = ("time", "timestamp", "asctime", "ts", "@timestamp")
_PREFIXES = tuple(
    re.compile(form)
    for form in (
        r"(?P<clock>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z )",
        (
            r"(?P<clock>\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:[+-]\d\d:?\d\d)?\]?) "
            r"(?=[ \t{}\"']|\[?\d{4}-\d\d-\d\d[ T]\d\d:)"
        ),
        r"(?P<clock>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (?![\w.-]+ [\w.@/-]+\[\d+\]: )",
        r"\[pod/[^\]]+\] ",
        r"(?!\d+/)[\w.-]+/\d+ (?=\[)",
        r"\[(?:default|rank|trainer|worker)(?P<rank>\d+)\]:? ?",
        (
            r"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
            r"\[(?:\d+|[\w.@-]{1,80}),(?:mpirank:)?(?P<rank>\d+)(?:,[\w-]+)?\]<std(?:out|err)>: ?"
        ),
        r"\[(?P<rank>\d{1,5})\] ",
        r"\[rank=(?P<rank>\d+)\](?: \|\|)? ",
        r"\((?P<actor>[\w.<>]+ pid=\d+)(?:, ip=[\w.:-]+)?\) ",
        r"\((?:[\w.-]+, )?rank=(?P<rank>\d+), pid=\d+(?:, ip=[\w.:-]+)?\) ",
        r"(?P<actor>\d{1,3}(?:\.\d{1,3}){3}|[a-z][\w.-]{0,80}[a-z_-]\d+): ",
        r"(?P<actor>[a-z][\w.-]{0,80}[_-]\d+) +\| ",
        r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?P<actor>[\w.-]+ [\w.@/-]+\[\d+\]): ",
        r" {0,4}(?P<rank>\d{1,5}): ",
    )
)
"""What launchers, terminals' pipes and container tools put before a line.

A ``clock`` (``ts``) is not the trainer's own time where that, or the middle of a block, follows it.
"""
_ANY_PREFIX = re.compile("|".join(re.sub(r"\?P<\w+>", "?:", form.pattern) for form in _PREFIXES))
_DOCKER_PART = re.compile(rb"[^n]\",\s?\"stream\"")
_REPEATED = re.compile(r" ?\[repeated \d+x across cluster\].*$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One line as the trainer wrote it, and what the framing told about it."""

    text: str
    rank: int | None = None
    lane: str = ""
    """Which writer: lines of one lane follow each other, whatever stands between them in the file."""
    framing_time: Stamp | None = None


def has_split_lines(block: bytes) -> bool:
    """Whether a container runtime has cut lines in the block, so that none of its lines may be skipped."""
    if _CRI.match(block):
        return b" stdout P " in block or b" stderr P " in block
    return block.startswith(b'{"log"') and _DOCKER_PART.search(block) is not None


class Unframer:
    """Takes container framing off, joining the parts of a long line; keeps the open part of each stream."""

    def __init__(self) -> None:
        self._parts: dict[str, bytearray] = {}

    @property
    def joining(self) -> bool:
        """Whether a split line is open, so that its continuation must not be skipped."""
        return bool(self._parts)

    def unframe(self, line: bytes) -> list[Record]:
        """The records that are complete with this line; a sink may put several lines into one."""
        cri = _CRI.match(line)
        if cri:
            return self._cri(line, cri)
        if line.startswith(b"{") and line.rstrip().endswith(b"}"):
            unwrapped = self._structured(line)
            if unwrapped is not None:
                return unwrapped
        return [_labelled(line.decode("utf-8", "replace"), "", None)]

    def _cri(self, line: bytes, found: re.Match[bytes]) -> list[Record]:
        stream = found[2].decode()
        if found[3] == b"P":
            self._open(stream, line[found.end() :])
            return []
        content = bytes(self._parts.pop(stream, b"")) + line[found.end() :]
        stamp = read_stamp(found[1].decode())
        return _pieces(without_escapes(content).decode("utf-8", "replace"), stream, stamp)

    def _open(self, stream: str, part: bytes) -> None:
        """Keep a part of a line; what goes beyond the bound is dropped."""
        parts = self._parts.setdefault(stream, bytearray())
        parts += part[: _MAX_JOINED_CHARACTERS - len(parts)]

    def _structured(self, line: bytes) -> list[Record] | None:
        document = _json_object(line)
        message = message_of(document) if document and not _has_step(document) else None
        if document is None or message is None:
            return None
        stream = str(document.get("stream", ""))
        if "log" in document and "stream" in document:
            if not message.endswith(("\n", "\r")) and document.keys() <= _DOCKER_KEYS:
                self._open(stream, message.encode())
                return []
            before = self._parts.pop(stream, None)
            if before:
                message = without_escapes(bytes(before) + message.encode()).decode("utf-8", "replace")
        stamp = _sink_time(document)
        return _pieces(message, stream, stamp)


def _json_object(line: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _has_step(document: dict[str, Any]) -> bool:
    """Whether the record itself is a step, whatever its message says."""
    numbers = [
        value for value in (document.get("step"), document.get("loss")) if isinstance(value, int | float)
    ]
    return len(numbers) == 2


def message_of(document: dict[str, Any]) -> str | None:
    """The log line inside a structured sink's record, ``None`` when the record has none."""
    inner = document.get("record")
    for holder in (inner, document, document.get("jsonPayload")):
        if isinstance(holder, dict):
            for key in _MESSAGE_KEYS:
                if isinstance(holder.get(key), str):
                    return str(holder[key])
    return None


def _sink_time(document: dict[str, Any]) -> Stamp | None:
    for key in _TIME_KEYS:
        value = document.get(key)
        if isinstance(value, str):
            return read_stamp(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return Stamp(seconds=float(value) / (1_000 if value > 1e11 else 1), dated=True, zoned=True)
    return None


def label_bytes(line: bytes) -> bytes:
    """The stack of labels at the beginning of a line."""
    head = line[:LABEL_BYTES].decode("latin-1")
    return line[: len(head) - len(_labelled(head, "", None).text)]


def _labelled(text: str, lane: str, stamp: Stamp | None) -> Record:
    """The text without its stack of labels, with the rank they name."""
    rank: int | None = None
    found = _first_label(text)
    while found is not None:
        groups = found.groupdict()
        stamp = stamp or read_stamp(found[0])
        rank = int(groups["rank"]) if groups.get("rank") else rank
        if not groups.get("clock"):
            lane = f"{lane}/{groups.get('rank') or groups.get('actor') or ''}"
        text = text[found.end() :]
        found = _first_label(text)
    if "[repeated " in text:
        text = _REPEATED.sub("", text)
    return Record(text=text, rank=rank, lane=lane, framing_time=stamp)


def _first_label(text: str) -> re.Match[str] | None:
    if _ANY_PREFIX.match(text) is None:
        return None
    for form in _PREFIXES:
        found = form.match(text)
        if found:
            return found
    return None


def _pieces(text: str, lane: str, stamp: Stamp | None) -> list[Record]:
    """The lines inside one framed line; all have the label of the first."""
    parts = [part for part in re.split(r"[\r\n]", text) if part]
    if not parts:
        return []
    label = parts[0][: len(parts[0]) - len(_labelled(parts[0], "", None).text)] if len(parts) > 1 else ""
    return [_labelled(part if part.startswith(label) else label + part, lane, stamp) for part in parts]
