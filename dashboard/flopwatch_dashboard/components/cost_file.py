"""The costs as a file to keep, and the page's figures as a table: written here, downloaded without asking anybody."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from flopwatch.answers.economy import CostInput, Economy, GroupEconomy
from flopwatch_dashboard.view import View

DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
SIMULATED = "SIMULATED"
DANGEROUS = ("=", "+", "-", "@", "\t", "\r")


def toml(economy: Economy, view: View) -> str:
    """``[costs]`` with everything that is given, changed inputs included; measured and default values are left out."""
    lines = [*_marks(economy, view), "[costs]", f"currency = {_text(economy.currency)}"]
    names = {name for name, _, _ in map(_split, economy.inputs)}
    for group in sorted(names):
        lines += _table(group, economy, view)
    return "\n".join(lines) + "\n"


def name(kind: str, economy: Economy) -> str:
    """The name of a file: that of a simulated cluster says so."""
    return f"{'simulated-' if economy.status.simulated else ''}{kind}"


def _marks(economy: Economy, view: View) -> list[str]:
    """What is not real about the costs, as comments."""
    marks = [f"# {view.t('frame.simulated')}"] if economy.status.simulated else []
    return [*marks, *([f"# {view.t('note.example')}"] if economy.status.price_is_example else [])]


def example() -> str:
    """What to give first, for a site that has given nothing yet."""
    return (
        "[costs.own]\ngpus = 128\ncapex_per_gpu = 40000\nlife_years = 4\ncost_of_capital = 0.08\n"
        "staff_fte = 2\nstaff_cost_per_fte = 200000\n\n[costs.cloud]\nprice_per_gpu_hour = 3.00\n"
        'price_source = "quotation"\n'
    )


def _table(group: str, economy: Economy, view: View) -> Iterator[str]:
    given = [entry for entry in economy.inputs if _split(entry)[0] == group and _is_given(entry)]
    head = "costs"
    if group:
        head = "costs.group"
        kind = next((each.kind for each in economy.groups if each.name == group), "owned")
        yield from ("", "[[costs.group]]", f"name = {_text(group)}", f"kind = {_text(kind)}")
        yield f"# nodes = []  # {view.t('econ.save_nodes')}"
    for table in ("own", "cloud", "efficiency"):
        entries = [entry for entry in given if _split(entry)[1] == table]
        if entries:
            yield from ("", f"[{head}.{table}]")
            yield from (f"{_split(entry)[2]} = {_value(entry.value)}" for entry in entries)


def _split(entry: CostInput) -> tuple[str, str, str]:
    """(group, table, name) of ``h200.own.capex_per_gpu``; a group's name may have dots in it."""
    head, _, name = entry.name.rpartition(".")
    group, _, table = head.rpartition(".")
    return group, table, name


def _is_given(entry: CostInput) -> bool:
    return entry.value is not None and entry.source in ("file", "override")


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:.12g}"
    text = str(value)
    return text if DATE.fullmatch(text) else _text(text)


def _text(text: str) -> str:
    """A basic string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04X}" for c in escaped) + '"'


def table(economy: Economy) -> str:
    """Everything that the page shows, one figure a row: group, part, name, value, unit, source."""
    out = io.StringIO()
    writer = csv.writer(out)
    mark = SIMULATED if economy.status.simulated else ""
    writer.writerow(("simulated", "group", "part", "name", "at", "value", "note"))
    for entry in economy.inputs:
        group, part, name = _split(entry)
        writer.writerow(safe((mark, group, "input", f"{part}.{name}", "", _plain(entry.value), entry.source)))
    for each in economy.groups:
        writer.writerows(safe((mark, each.name, *row)) for row in _rows(each, economy.currency))
    return out.getvalue()


FIGURES = (
    "u_star", "u_star_at_equal_efficiency", "utilisation_ratio", "fixed_per_gpu_hour", "variable_per_gpu_hour",
    "cloud_price", "own_per_used_hour",
)  # fmt: skip


def _rows(group: GroupEconomy, currency: str) -> Iterator[tuple[str, str, str, str, str]]:
    for name in FIGURES:
        unit = currency if "per" in name or "price" in name else ""
        yield "figure", name, "", _plain(getattr(group, name)), unit
    for term in group.terms:
        yield "term", term.name, "", _plain(term.per_gpu_year), f"{currency} per GPU-year"
    for decision in group.decisions:
        yield "decision", decision.name, "", _plain(decision.u_star), decision.action or decision.verdict
    yield from _curves(group, currency)


def _curves(group: GroupEconomy, currency: str) -> Iterator[tuple[str, str, str, str, str]]:
    for point in group.curve:
        at = _plain(point.utilisation_ratio)
        yield "curve", "own", at, _plain(point.own_per_gpu_hour), currency
        yield "curve", "cloud", at, _plain(point.cloud_per_gpu_hour), currency
    for row in group.sensitivity:
        for change in row.variations:
            yield "sensitivity", row.parameter, change.change, _plain(change.u_star), "u_star"
    if group.demand is not None:
        for gpus, share in zip(group.demand.gpus, group.demand.time_ratio, strict=True):
            yield "demand", "time_ratio", _plain(gpus), _plain(share), group.demand.basis


def _plain(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def safe(row: Sequence[str]) -> list[str]:
    """No cell that a spreadsheet would run: texts beginning like a formula get a quotation mark; numbers stay."""
    return [f"'{cell}" if cell.startswith(DANGEROUS) and not _is_number(cell) else cell for cell in row]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def address(text: str, kind: str) -> str:
    """The text as an address to download."""
    return f"data:{kind};charset=utf-8,{quote(text)}"
