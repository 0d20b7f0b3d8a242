"""What a reader typed into the cost form, read from the address."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from flopwatch.answers.economy import Economy
from flopwatch.query import Query
from flopwatch_dashboard.components.cost_fields import FIELDS, TABLES
from flopwatch_dashboard.view import View

GROUP = "group.shown"
THOUSANDS = re.compile(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Typed:
    """The numbers that were typed, by the name of their input, and which group is looked at."""

    values: Mapping[str, float]
    raw: Mapping[str, str]
    problems: tuple[str, ...]
    """What cannot be a number, in the reader's language: name, value, what is allowed."""
    group: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """The economy with what was typed, and as it is saved."""

    shown: Economy
    saved: Economy
    refused: str | None
    """Why nothing of what was typed is in ``shown``."""

    @property
    def changed(self) -> bool:
        """Whether ``shown`` has typed inputs in it."""
        return self.shown is not self.saved


def typed(view: View) -> Typed:
    """What the address holds for the cost form; other names in it are not its own."""
    values, problems, raw = {}, [], {}
    for name, text in view.inputs:
        if name.split(".")[-2] not in TABLES:
            continue
        raw[name] = text
        number = amount(text)
        if number is None:
            problems.append(_problem(name, text, view))
        else:
            values[name] = number
    return Typed(values=values, raw=raw, problems=tuple(problems), group=dict(view.inputs).get(GROUP))


def amount(text: str) -> float | None:
    """The number of ``40,000``, ``0.08`` or ``8%``; None where it is none."""
    word = text.strip()
    percent = word.endswith("%")
    word = word.removesuffix("%").strip()
    if THOUSANDS.fullmatch(word):
        word = word.replace(",", "")
    try:
        number = float(word)
    except ValueError:
        return None
    return (number / 100.0 if percent else number) if math.isfinite(number) else None


def ask(query: Query, view: View, given: Typed) -> Answered:
    """The answer with what was typed; the saved one alone where any of it is refused."""
    saved = query.economy(view.asked, {})
    if given.problems:
        return Answered(shown=saved, saved=saved, refused="; ".join(given.problems))
    if not given.values:
        return Answered(shown=saved, saved=saved, refused=None)
    try:
        return Answered(shown=query.economy(view.asked, given.values), saved=saved, refused=None)
    except ValueError as error:
        return Answered(shown=saved, saved=saved, refused=str(error))


def _problem(name: str, text: str, view: View) -> str:
    field = FIELDS.get(".".join(name.split(".")[-2:]))
    example = field.usual[0] if field and field.usual else "1.5"
    return view.t("econ.not_number", name=name, value=text, example=example)
