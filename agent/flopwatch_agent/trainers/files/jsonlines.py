"""One JSON object a line: metric logs of trainers, history exports of trackers."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from flopwatch_agent.trainers.clocks import Stamp, read_stamp
from flopwatch_agent.trainers.engine import Engine
from flopwatch_agent.trainers.files.keytables import KINDS, KeyGrammar
from flopwatch_agent.trainers.marks import Mark
from flopwatch_agent.trainers.numbers import parse_duration, parse_number
from flopwatch_agent.trainers.prefilter import Anchor, next_position, positions
from flopwatch_agent.trainers.reading import Origin

_STEP_KEYS = ("step", "iter", "iteration", "_step", "current_steps", "num_updates", "iteration_step")
_ANCHORS = tuple(
    Anchor(literal)
    for literal in (
        *(f'"{key}"'.encode() for key in _STEP_KEYS), b'global_step"', b'"global_step/max_steps"',
    )
)  # fmt: skip
_FIRST_EPOCH_SECONDS = 1e9
"""A smaller number is no time of day: training logs are younger than 2001."""
_FIRST_EPOCH_MILLISECONDS = 1e11


class JsonLines:
    """Reads JSON lines; the kind of record is chosen by the keys of each line."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def feed(self, block: bytes, arrived: float | None) -> None:
        """Take a block of whole lines; lines without a step are not decoded."""
        for line in _lines_with(block, positions(block, _ANCHORS)):
            document = _decoded(line)
            if document is not None:
                self.take(document, Origin(arrived_at_seconds=arrived))

    def finish(self, arrived: float | None) -> None:
        """Nothing waits."""

    def take(self, document: Mapping[str, Any], origin: Origin) -> bool:
        """Take one decoded record; whether it was a step or an evaluation."""
        kind = next((kind for kind in KINDS if all(key in document for key in kind.has)), None)
        if kind is None:
            return False
        values = _values(kind, document)
        stamps = (stamp_of(document.get(key)) for key in kind.times)
        origin = replace(origin, stamp=next((stamp for stamp in stamps if stamp is not None), origin.stamp))
        if "step" in values and any(name in values for name in kind.enough):
            self._offer(kind, values, _family(kind, document), origin)
            return True
        if any(key in document for key in kind.evaluation):
            self._engine.mark(Mark(kind="eval", done=True), origin)
            return True
        return False

    def take_line(self, text: str, origin: Origin) -> bool:
        """Take a line of a text log that is one object as a whole; whether it was a step or an evaluation."""
        document = _decoded(text.encode()) if text.rstrip().endswith("}") else None
        return document is not None and self.take(document, origin)

    def _offer(self, kind: KeyGrammar, values: dict[str, float], family: str, origin: Origin) -> None:
        for name in ("world_size", "total_steps"):
            if name in values:
                self._engine.book.set(name, int(values[name]), "history")
        if "batch" in values:
            self._engine.book.set("global_batch_size", int(values["batch"]), "history")
        if "mfu_percent" in values:
            values["mfu"] = values["mfu_percent"] / 100
        self._engine.offer(kind.grammar, values, family=family, origin=origin)


def is_step_object(text: str) -> bool:
    """Whether a line of a text log is one object that names a step and its loss."""
    if not text.startswith('{"') or "loss" not in text:
        return False
    document = _decoded(text.encode())
    return document is not None and is_step(document)


def is_step(document: Mapping[str, Any]) -> bool:
    """Whether a record is a step of some kind."""
    for kind in KINDS:
        if all(key in document for key in kind.has):
            values = _values(kind, document)
            return "step" in values and any(name in values for name in kind.enough)
    return False


def _family(kind: KeyGrammar, document: Mapping[str, Any]) -> str:
    """The family's name, or that of the relative who alone writes such keys."""
    for start, name in kind.grammar.relatives:
        if any(key.startswith(start) for key in document):
            return name
    return kind.grammar.family


def _lines_with(block: bytes, places: list[int]) -> Iterator[bytes]:
    end = -1
    while True:
        place = next_position(places, end + 1)
        if place is None:
            return
        start = block.rfind(b"\n", end + 1, place) + 1 or end + 1
        end = block.find(b"\n", place)
        end = len(block) if end < 0 else end
        yield block[start:end]


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _values(kind: KeyGrammar, document: Mapping[str, Any]) -> dict[str, float]:
    values: dict[str, float] = {}
    for quantity, keys in kind.keys.items():
        key = next((key for key in keys if document.get(key) is not None), None)
        number = _number(document[key], duration=quantity == "elapsed_seconds") if key is not None else None
        if key is not None and number is not None:
            values[quantity] = number * kind.scales.get(key, 1.0)
    if not math.isfinite(values.get("step", 0.0)):
        values.pop("step")
    return values


def _number(value: object, *, duration: bool) -> float | None:
    if isinstance(value, str):
        parsed = parse_duration(value) if duration else None
        return parse_number(value.partition("/")[0]) if parsed is None else parsed
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def stamp_of(value: object) -> Stamp | None:
    """A time of day: seconds or milliseconds since 1970, or text."""
    if isinstance(value, str):
        return read_stamp(value)
    if not isinstance(value, int | float) or value < _FIRST_EPOCH_SECONDS:
        return None
    seconds = value / 1_000 if value > _FIRST_EPOCH_MILLISECONDS else float(value)
    return Stamp(seconds=seconds, dated=True, zoned=True)
