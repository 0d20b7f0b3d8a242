"""What a grammar is: a table that says how one family of trainers prints a step."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from flopwatch_agent.trainers.numbers import NUMBER, parse_duration, parse_number

_OPEN_QUOTE = re.compile(r"(?:^|[\s:=(\[,])(['\"`])(?:(?!\1).)*$")
Block = Literal["none", "indented", "tabbed"]
Covers = Literal["interval", "one"]


@dataclass(frozen=True, slots=True)
class Field:
    """One quantity and where it stands: the first group of the pattern is the value, a second its SI suffix."""

    quantity: str
    pattern: re.Pattern[str]
    scale: float = 1.0
    duration: bool = False

    def read(self, text: str) -> float | None:
        """The value in base units, or ``None`` when it is not there."""
        found = self.pattern.search(text)
        if found is None:
            return None
        if self.duration:
            return parse_duration(found[1])
        value = parse_number(found[1], ((found.lastindex or 1) > 1 and found[2]) or "")
        return None if value is None else value * self.scale


@dataclass(frozen=True, kw_only=True, slots=True)
class Grammar:
    """How one family prints a step. The quantities' names and units are in ``docs/trainer_logs.md``."""

    family: str
    literal: str = ""
    """A text that every row of the family has: without it the expressions are not tried."""
    anchor: re.Pattern[str]
    """Found anywhere in a record; its named groups are quantities."""
    fields: tuple[Field, ...] = ()
    needs: tuple[str, ...] = ()
    """A row without one of these is no row: code, prose and torn lines have one of them, never all."""
    unless: re.Pattern[str] | None = None
    block: Block = "none"
    """Whether the lines after the anchor's belong to it, as long as they are indented."""
    units: Mapping[str, float] = field(default_factory=dict)
    """Scale of the anchor's groups; 1 where not named."""
    order: tuple[str, ...] = (
        "printed", "interval", "mean_counter", "counter", "tokens", "samples", "rate", "bar",
    )  # fmt: skip
    """Estimators of the step time, the most trusted first."""
    covers: Covers = "interval"
    """Whether a printed time is a mean since the row before, or that of one single step."""
    window: int | None = None
    """Printed rates are means over so many steps, whatever lies between two rows."""
    first_step: int = 1
    """The number of the first optimizer step: 0 or 1."""
    warm_up_steps: int = 1
    """So many steps of a launch are not steady (compilation, dispatch running ahead)."""
    warms_up: bool = True
    """Whether the first row of a launch is kept out of steady averages."""
    untimed_is_warm_up: bool = False
    """Rows without a time come before the trainer's own timer has started."""
    pauses_inside: bool = False
    """Evaluation and checkpoint are inside the time that the row gives."""
    pauses_outside: bool = False
    """The trainer stops its timer for them: a slow row has another reason."""
    secondary: bool = False
    """Gives way to any other family that speaks in the same file; a companion completes its own family's rows only."""
    rate_of_replicas: bool = False
    """Rates "per GPU" are divided by the data-parallel size only: the world size does not follow from them."""
    relatives: tuple[tuple[str, str], ...] = ()
    """Text that only one relative prints, and the relative's name."""
    begun_by: str = ""
    """A quantity that a line before the row must tell; without it the same form means an evaluation."""
    kind: Literal["unknown", "rl"] = "unknown"
    micro: bool = False
    """Its lines are of micro batches, not of optimizer steps."""
    reported: bool = False
    """The training script itself reports: what the trainer prints beside it is the same steps."""
    no_time: str | None = None
    """Said when the log cannot tell the step time: the option or callback that would."""


def number_field(quantity: str, before: str, after: str = "", scale: float = 1.0) -> Field:
    """A field whose number stands between two expressions."""
    return Field(quantity, re.compile(f"{before}({NUMBER}){after}"), scale)


def suffixed_field(quantity: str, before: str, after: str = "", scale: float = 1.0) -> Field:
    """A field whose number may carry an SI suffix."""
    return Field(quantity, re.compile(f"{before}({NUMBER})([kKMGBTP]?){after}"), scale)


def duration_field(quantity: str, before: str, text: str, after: str = "") -> Field:
    """A field in hours, minutes and seconds."""
    return Field(quantity, re.compile(f"{before}({text}){after}"), 1.0, duration=True)


def anchor(pattern: str) -> re.Pattern[str]:
    """The pattern with ``NUM`` replaced by the expression of a printed number."""
    return re.compile(pattern.replace("NUM", NUMBER))


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A grammar that fits a record, with what it read."""

    grammar: Grammar
    values: Mapping[str, float]
    where: int
    text: str


def match(grammar: Grammar, text: str) -> list[Hit]:
    """The rows of the grammar's family in the text, most often none or one.

    Writers that share a file may tear each other's lines: each row is read from its own anchor to the next.
    """
    if grammar.literal not in text:
        return []
    found = list(grammar.anchor.finditer(text))
    if not found or (grammar.unless is not None and grammar.unless.search(text)):
        return []
    ends = [item.start() for item in found[1:]] + [len(text)]
    found_rows = [
        (item, end) for item, end in zip(found, ends, strict=True) if not _quoted(text, item.start())
    ]
    hits = (_hit(grammar, item, text[item.start() : end]) for item, end in found_rows)
    return [hit for hit in hits if hit is not None]


def _quoted(text: str, start: int) -> bool:
    """Whether a quotation mark stands before the row: an error or a source line that cites it."""
    return _OPEN_QUOTE.search(text, max(start - 200, 0), start) is not None


def _hit(grammar: Grammar, found: re.Match[str], text: str) -> Hit | None:
    values = _groups(grammar, found)
    for item in grammar.fields:
        if item.quantity not in values:
            value = item.read(text)
            if value is not None:
                values[item.quantity] = value
    if not all(any(name in values for name in need.split("|")) for need in grammar.needs):
        return None
    return Hit(grammar=grammar, values=values, where=found.start(), text=text)


def _groups(grammar: Grammar, found: re.Match[str]) -> dict[str, float]:
    values: dict[str, float] = {}
    for name, text in found.groupdict().items():
        value = parse_number(text) if text is not None else None
        if value is not None:
            values[name] = value * grammar.units.get(name, 1.0)
    return values
