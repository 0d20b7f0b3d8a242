"""Collects what a log says of its run: shape, batch, precision, parallel sizes."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from flopwatch_agent.trainers.dumps import OPENING, PADDED_KEYS, PAIRS, dict_pairs, json_part, style_of
from flopwatch_agent.trainers.facts_table import (
    CONFIG_KEYS,
    LINES,
    MESH,
    MESH_2024,
    PARALLEL_KEYS,
)
from flopwatch_agent.trainers.numbers import parse_number

Fact = int | float | str | bool

_MAX_BLOCK_LINES = 4_000
_MAX_ARGUMENTS = 1 << 16
_SEARCHED_CHARACTERS = 4_000
_TOLERATED_LINES = 2
"""So many lines of other writers may stand inside a dump."""
_DOTTED = re.compile(r"\s(\w+) (?:\.{2,}) (\S.*?)\s*$")
_DEEPSPEED = re.compile(r":print\]\s+(\w+) (?:\.* )?\s*(\S.*?)\s*$")
_NEOX_TAIL = re.compile(r"\.{3,}(?:default|updated)$")
_REPR_PAIR = re.compile(r"\b(\w+)=('[^']*'|[\w.+-]+)")
_REPR = re.compile(r"\b\w*(?:Args|Arguments|Config|args|World)\(")
_TEXTS = ("device_name", "model_family")
_UNITS = {"billion": 1e9, "million": 1e6, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}


class FactBook:
    """The facts of the session that is going on; new ones overrule old ones."""

    def __init__(self) -> None:
        self.facts: dict[str, Fact] = {}
        self.origin: str | None = None
        self.shape: dict[str, Any] | None = None
        """A whole shape that the run declared itself; it overrules the facts."""
        self._depth = 0
        self._lines_left = 0
        self._style = ""
        self._misses = 0
        self._document: list[str] = []

    @property
    def open(self) -> bool:
        """Whether a config dump is going on, so that every line must be seen."""
        return self._lines_left > 0

    def read(self, text: str) -> bool:
        """Take the facts from a line; whether the line belongs to a config dump.

        Only a dict of settings may be long; of every other line the beginning is read, so that expressions stay quick.
        """
        for name, value in dict_pairs(text):
            if name in CONFIG_KEYS:
                self._named(CONFIG_KEYS[name], value.strip("'"), "config dump")
        text = text[:_SEARCHED_CHARACTERS]
        if self._lines_left and self._read_block(text):
            return True
        self._read_line(text)
        return self._opens(text)

    def _opens(self, text: str) -> bool:
        """Whether a dump begins with the line."""
        for style, form in OPENING:
            found = form.search(text)
            if found is not None:
                self._lines_left, self._misses, self._style = _MAX_BLOCK_LINES, 0, style
                self._depth = 1 if style == "json" else 0
                self._document = ["{"] if style == "json" else []
                return True
        return False

    def close(self) -> None:
        """A step was printed: no config dump goes on."""
        self._lines_left = 0

    def set(self, name: str, value: Fact, origin: str) -> None:
        """Note one fact."""
        self.facts[name] = value
        self.origin = self.origin or origin

    def _read_block(self, text: str) -> bool:
        self._lines_left -= 1
        if not text.strip():
            return True
        self._style = self._style or style_of(text)
        if self._style == "json":
            return self._read_json(text)
        found = PAIRS[self._style].search(text) if self._style else None
        if found is None:
            self._misses += 1
            if self._misses > _TOLERATED_LINES:
                self._lines_left = 0
            return False
        self._misses = 0
        self._pair(found, "config dump")
        if self._style == "padded" and found[1] in PADDED_KEYS:
            self._named(PADDED_KEYS[found[1]], found[2], "config dump")
        return True

    def _read_json(self, text: str) -> bool:
        stripped = json_part(text)
        self._depth += stripped.count("{") - stripped.count("}")
        self._pair(PAIRS["json"].match(stripped), "config dump")
        self._document.append(stripped)
        if self._depth <= 0:
            self._lines_left = 0
            self._take_document()
        return True

    def _take_document(self) -> None:
        """Keep a whole printed ``config.json``: it says more than its known keys."""
        text, self._document = " ".join(self._document), []
        try:
            document = json.loads(text)
        except ValueError:
            return
        if isinstance(document, dict) and "model_type" in document:
            self.set("config_document", text, "config dump")

    def _argument(self, name: str, value: str) -> None:
        """Keep an argument as it is printed, a line each, for the reader of whole argument blocks."""
        block = str(self.facts.get("arguments", ""))
        if len(block) < _MAX_ARGUMENTS:
            self.set("arguments", f"{block}{name}={value}\n", "argument block")

    def begin_arguments(self) -> None:
        """A block of Megatron's arguments begins."""
        self.facts.pop("arguments", None)
        self.set("megatron_arguments", value=True, origin="argument block")

    def _read_line(self, text: str) -> None:
        dotted = _DOTTED.search(text) if " .." in text else None
        if dotted and "megatron_arguments" in self.facts:
            self._argument(dotted[1], _NEOX_TAIL.sub("", dotted[2]))
        dotted = dotted or (_DEEPSPEED.search(text) if ":print]" in text else None)
        if dotted:
            self._pair(dotted, "argument block")
        if "=" in text and _REPR.search(text):
            self._read_repr(text)
        for literal, form in LINES:
            found = form.search(text) if literal in text else None
            if found:
                self._groups(found)
        if "device mesh with" in text:
            self._read_mesh(text)

    def _pair(self, found: re.Match[str] | None, origin: str) -> None:
        if found is None or found[2] is None:
            return
        name = CONFIG_KEYS.get(found[1])
        if name is not None:
            self._named(name, _NEOX_TAIL.sub("", found[2]), origin)
            if found[1] == "n_embd":
                self.set("gpt_style", True, origin)

    def _named(self, name: str, text: str, origin: str) -> None:
        value = _value(text)
        if value is not None:
            self.set(name, value, origin)

    def _read_repr(self, text: str) -> None:
        parallel = "ParallelismArgs(" in text
        for found in _REPR_PAIR.finditer(text):
            name = CONFIG_KEYS.get(found[1]) or (PARALLEL_KEYS.get(found[1]) if parallel else None)
            value = _value(found[2].strip("'"))
            if name is not None and value is not None:
                self.set(name, value, "config dump")

    def _groups(self, found: re.Match[str]) -> None:
        groups = found.groupdict()
        if "config_key" in groups:
            name, value = CONFIG_KEYS.get(groups["config_key"]), _value(groups["config_value"])
            if name is not None and value is not None:
                self.set(name, value, "config dump")
            return
        unit = _UNITS.get(groups.pop("num_params_unit", None) or "", 1.0)
        for name, text in groups.items():
            number = parse_number(text)
            value = text.strip() if name in _TEXTS else number
            if value is not None:
                scaled = (
                    value
                    if isinstance(value, str)
                    else _whole(value * (unit if name == "num_params" else 1.0))
                )
                self.set(name, scaled, "log header")

    def _read_mesh(self, text: str) -> None:
        found = MESH.search(text)
        sizes = dict(_mesh_sizes(found[1])) if found else {}
        old = None if found else MESH_2024.search(text)
        if old:
            names = [name.strip(" '") for name in old[1].split(",")]
            sizes = dict(zip(names, (int(size) for size in old[2].split(",")), strict=False))
        if not sizes:
            return
        world = 1
        for name in ("pp", "dp_replicate", "dp_shard", "dp", "cp", "tp"):
            world *= max(sizes.get(name, 1), 1)
        layout = {"tensor_parallel": "tp", "pipeline_parallel": "pp", "context_parallel": "cp"}
        self.set("world_size", world, "device mesh")
        for fact, name in layout.items():
            self.set(fact, sizes.get(name, 1), "device mesh")
        data = sizes.get("dp", 1) * sizes.get("dp_replicate", 1) * sizes.get("dp_shard", 1)
        self.set("data_parallel", data, "device mesh")


def _mesh_sizes(text: str) -> Iterator[tuple[str, int]]:
    for part in text.split(","):
        name, _, size = part.strip().partition("=")
        if size:
            yield name, int(size)


def _whole(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _value(text: str) -> Fact | None:
    plain = text.strip().strip("\"'")
    if plain in ("None", "null", "", "{", "[") or "${" in plain:
        return None
    if plain in ("True", "true", "False", "false"):
        return plain in ("True", "true")
    number = parse_number(plain) if plain[:1].isdigit() or plain[:1] in "-+." else None
    return plain if number is None else _whole(number)


def fact_of(value: object) -> Fact | None:
    """A value of a decoded configuration as a fact; lists, objects and null are none."""
    if isinstance(value, str):
        return _value(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float) else None


def integer(facts: Mapping[str, Fact], name: str) -> int | None:
    """A fact as a positive whole number, or ``None``."""
    value = facts.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 1:
        return None
    return int(value)
