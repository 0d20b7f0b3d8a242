"""The file a W&B run keeps beside its folder (``run-<id>.wandb``): LevelDB's log framing around protobuf records.

Written by the run itself, online or offline, so that its history can be read without the service.
"""

import json
import struct
import zlib
from typing import Any

from flopwatch_agent.trainers.engine import Engine
from flopwatch_agent.trainers.facts import fact_of
from flopwatch_agent.trainers.facts_table import CONFIG_KEYS
from flopwatch_agent.trainers.files.jsonlines import JsonLines
from flopwatch_agent.trainers.marks import Mark
from flopwatch_agent.trainers.protobuf import fields
from flopwatch_agent.trainers.reading import Origin

IDENT = b":W&B"
MAX_RECORD_BYTES = 8 << 20
"""A longer record is left out."""

_FILE_HEADER_BYTES = 7
_BLOCK_BYTES = 32_768
_HEADER = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_HISTORY, _CONFIG, _RUN = 2, 5, 17
_MAX_DEPTH = 4
"""Configurations are nested a little; deeper parts are no settings of the run."""


def is_run_file(data: bytes) -> bool:
    """Whether the bytes begin such a file."""
    return data.startswith(IDENT)


class WandbFile:
    """Reads a run's file as it grows; what is cut at its end waits for the rest."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._history = JsonLines(engine)
        self._rest = b""
        self._offset = 0
        self._parts: list[bytes] | None = None
        self._arrived: float | None = None

    def feed(self, data: bytes, arrived: float | None) -> None:
        """Take the next bytes."""
        self._arrived = arrived
        self._rest += data
        place = 0
        while (size := self._next(place)) is not None:
            place += size
            self._offset += size
        self._rest = self._rest[place:]

    def finish(self) -> None:
        """A record that was cut is none."""
        self._parts = None

    def _next(self, place: int) -> int | None:
        """Take the piece at ``place``: its length in the file, or ``None`` while it is not complete."""
        there = len(self._rest) - place
        if self._offset < _FILE_HEADER_BYTES:
            return _FILE_HEADER_BYTES if there >= _FILE_HEADER_BYTES else None
        left = _BLOCK_BYTES - self._offset % _BLOCK_BYTES
        if left < _HEADER.size:
            return left if there >= left else None
        if there < _HEADER.size:
            return None
        checksum, length, kind = _HEADER.unpack_from(self._rest, place)
        if kind == 0 or _HEADER.size + length > left:
            return left if there >= left else None
        if there < _HEADER.size + length:
            return None
        begin = place + _HEADER.size
        self._piece(kind, self._rest[begin : begin + length], checksum)
        return _HEADER.size + int(length)

    def _piece(self, kind: int, data: bytes, checksum: int) -> None:
        if zlib.crc32(data, zlib.crc32(bytes((kind,)))) != checksum:
            self._damaged()
            self._parts = None
        elif kind == _FULL:
            self._record(data)
        elif kind == _FIRST:
            self._parts = [data]
        elif self._parts is not None and kind in (_MIDDLE, _LAST):
            self._parts.append(data)
            if sum(map(len, self._parts)) > MAX_RECORD_BYTES:
                self._parts = None
            elif kind == _LAST:
                parts, self._parts = self._parts, None
                self._record(b"".join(parts))

    def _damaged(self) -> None:
        self._engine.findings.say("damaged_record", "the run's file holds a damaged record; it was left out")

    def _record(self, record: bytes) -> None:
        try:
            for number, value in fields(record):
                if isinstance(value, bytes):
                    self._part(number, value)
        except (ValueError, IndexError, RecursionError):
            self._damaged()

    def _part(self, number: int, value: bytes) -> None:
        if number == _HISTORY:
            self._history.take(_history(value), Origin(arrived_at_seconds=self._arrived))
        elif number == _CONFIG:
            self._config(value)
        elif number == _RUN:
            for inner, item in fields(value):
                if inner == 4 and isinstance(item, bytes):
                    self._config(item)
                elif inner == 14 and isinstance(item, int) and item > 0:
                    self._engine.mark(Mark(kind="resume", step=item))

    def _config(self, value: bytes) -> None:
        """Take the settings whose names are known."""
        for number, item in fields(value):
            if number == 1 and isinstance(item, bytes):
                key, content = _item(item)
                self._setting(key.rpartition(".")[2], content, _MAX_DEPTH)

    def _setting(self, key: str, content: Any, depth: int) -> None:
        if isinstance(content, dict):
            for name, inner in content.items():
                if depth and not name.startswith("_"):
                    self._setting(name, inner, depth - 1)
            return
        name = CONFIG_KEYS.get(key)
        value = fact_of(content)
        if name is not None and value is not None:
            self._engine.book.set(name, value, "W&B configuration")


def _history(value: bytes) -> dict[str, Any]:
    """A row of the history, as ``scan_history`` would give it."""
    row: dict[str, Any] = {}
    for number, item in fields(value):
        if number == 1 and isinstance(item, bytes):
            key, content = _item(item)
            row[key] = content
        elif number == 2 and isinstance(item, bytes):
            row.update(("_step", step) for inner, step in fields(item) if inner == 1)
    return row


def _item(item: bytes) -> tuple[str, Any]:
    """Key and value of an item; a nested key's parts are joined by dots."""
    key, parts, text = "", [], "null"
    for number, value in fields(item):
        if isinstance(value, bytes):
            decoded = value.decode("utf-8", "replace")
            if number == 1:
                key = decoded
            elif number == 2:
                parts.append(decoded)
            elif number == 16:
                text = decoded
    return key or ".".join(parts), json.loads(text)
