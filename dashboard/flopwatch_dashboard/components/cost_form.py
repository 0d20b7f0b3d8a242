"""The site's costs as a form: each input with its unit, what is usual, and where its value is from."""

from collections.abc import Iterator, Mapping, Sequence

from dash import html
from dash.development.base_component import Component

from flopwatch.answers.economy import CostInput
from flopwatch_dashboard.components import cost_file, parts
from flopwatch_dashboard.components.boxes import Box, box
from flopwatch_dashboard.components.cost_fields import FIRST, SECTIONS, Field
from flopwatch_dashboard.components.cost_inputs import GROUP, Answered, Typed
from flopwatch_dashboard.view import View


def form(answered: Answered, given: Typed, group: str, view: View) -> list[Component]:
    """The inputs of a group: those that move the line most, then the others by section, then how to keep them.

    ``group`` is empty where the costs are those of the whole site.
    """
    maker = _Maker(group, answered, given, view)
    sections = [
        html.Details(
            [html.Summary(view.t(f"econ.section.{name}")), html.Div(list(maker.fields(fields)))],
            className="f-more",
            open=maker.touched(fields),
        )
        for name, fields in SECTIONS.items()
    ]
    return [
        html.Div(view.t("econ.first"), className="f-s"),
        html.Div(list(maker.fields(FIRST))),
        *sections,
        html.P(view.t("econ.form_hint"), className="f-hint"),
        save(answered, view),
    ]


def save(answered: Answered, view: View) -> Component:
    """The cost file with what is shown, to copy or to download."""
    text = cost_file.toml(answered.shown, view)
    link = html.A(
        [parts.icon("down"), html.Span(view.t("econ.download_toml"))],
        href=cost_file.address(text, "application/toml"),
        download=cost_file.name("costs.toml", answered.shown),
        className="more",
    )
    content = [html.P(view.t("econ.save_text"), className="f-hint"), html.Pre(html.Code(text)), link]
    return html.Details([html.Summary(view.t("econ.save")), *content], className="f-more f-save")


def reset(view: View) -> str:
    """The address of the page without what was typed."""
    kept = {name: value for name, value in view.inputs if name == GROUP}
    return view.link("breakeven", **kept)


class _Maker:
    """Makes the fields of one group; ``group`` is empty where the costs are those of the whole site."""

    def __init__(self, group: str, answered: Answered, given: Typed, view: View) -> None:
        self._prefix = f"{group}." if group else ""
        self._saved: Mapping[str, CostInput] = {entry.name: entry for entry in answered.saved.inputs}
        self._shown: Mapping[str, CostInput] = {entry.name: entry for entry in answered.shown.inputs}
        self._currency = answered.shown.currency
        self._given, self._view = given, view

    def touched(self, fields: Sequence[Field]) -> bool:
        """Whether one of them was typed into: then its section is open."""
        return any(self._raw(field) is not None for field in fields)

    def fields(self, fields: Sequence[Field]) -> Iterator[Component]:
        """Every field that the answer knows; of the ways to give a price the one that is given."""
        for field in fields:
            entry = self._saved.get(self._prefix + field.setting)
            if entry is None or not entry.adjustable or (field.basis and entry.value is None):
                continue
            yield self._field(field, entry)

    def _raw(self, field: Field) -> str | None:
        raw = self._given.raw
        return raw.get(self._prefix + field.setting, raw.get(field.setting))

    def _field(self, field: Field, entry: CostInput) -> Component:
        view, raw = self._view, self._raw(field)
        base, unit = plain(entry), view.t(f"unit.{field.unit}", currency=self._currency)
        shown = self._shown.get(entry.name, entry)
        usual, source = _usual(field, view), view.t(f"input_source.{shown.source}")
        told = source if shown.value is not None and shown.source != "file" else ""
        under = " · ".join(word for word in (unit, usual, told) if word)
        refused = raw is not None and shown.source != "override"
        empty = "econ.not_known" if field.table == "efficiency" else "econ.not_counted"
        return box(
            Box(
                name=entry.name,
                title=view.t(f"input.{field.name}"),
                value=base if raw is None else raw,
                base=base,
                under=under,
                hint=_hint(field, entry.name, (source, usual), view),
                placeholder=view.t(empty),
                kind=f"of-{shown.source}{' bad' if refused else ''}",
            )
        )


def _usual(field: Field, view: View) -> str:
    if field.usual is None:
        return ""
    return view.t("econ.input_range", low=field.usual[0], high=field.usual[1])


def _hint(field: Field, name: str, told: Sequence[str], view: View) -> str:
    """The setting's name, where its value is from, what is usual, and by whom that is known."""
    known_from = view.t(f"range_source.{field.known_from}") if field.known_from else ""
    words = (view.t(f"input.{field.name}"), name, *told, known_from)
    return " · ".join(word for word in words if word)


def plain(entry: CostInput) -> str:
    """A number as it is typed; measured ones rounded, so that a box changes only when it looks different."""
    if entry.value is None:
        return ""
    if entry.source == "measured":
        return f"{entry.value:.3g}" if entry.value < 1 else f"{entry.value:.5g}"
    return f"{entry.value:.10g}"
