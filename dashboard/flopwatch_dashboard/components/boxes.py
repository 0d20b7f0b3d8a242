"""Boxes to type into whose values live in the address: what is typed goes there, and the page follows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dash import dcc, html
from dash.development.base_component import Component


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """One box; all words are in the reader's language."""

    name: str
    """In the address, with a dot in it."""
    title: str
    value: str
    base: str
    """What stands when nothing is typed: typing it again takes the name out of the address."""
    under: str = ""
    hint: str = ""
    placeholder: str = ""
    mode: Literal["decimal", "text"] = "decimal"
    kind: str = ""
    """``of-override`` where it is changed, ``bad`` where it is refused."""


def box(words: Box) -> Component:
    """A labelled box; it is text, so that what is no number can be told and not just vanish."""
    field = dcc.Input(
        type="text",
        name=words.name,
        value=words.value,
        placeholder=words.placeholder,
        autoComplete="off",
        inputMode=words.mode,
        className="f-i",
    )
    under = [html.Span(words.under, className="f-r")] if words.under else []
    return html.Label(
        [html.Span([html.Span(words.title, className="f-n"), *under]), field],
        className=f"field {words.kind}".strip(),
        title=words.hint,
        **{"data-base": words.base},
    )


def facts(rows: Sequence[tuple[str, str, str]]) -> Component:
    """Figures with their names and a note: name, value, note."""
    items = []
    for name, value, note in rows:
        told = [html.Span(note, className="fact-n")] if note else []
        items.append(html.Div([html.Dt(name), html.Dd([html.B(value), *told])], className="fact"))
    return html.Dl(items, className="facts")
