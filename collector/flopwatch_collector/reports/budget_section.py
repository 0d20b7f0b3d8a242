"""The budgets of a report in HTML. Pure."""

from collections.abc import Sequence
from html import escape

from flopwatch.answers.budget import BudgetStanding
from flopwatch_collector.reports.sections import Cells, card, table
from flopwatch_collector.reports.wording import HOUR_MILLISECONDS, Words

HEADS = (
    ("budget.name", False), ("budget.period", False), ("budget.limit", True), ("budget.used", True),
    ("budget.forecast", True), ("budget.state", False),
)  # fmt: skip


def budgets(found: Sequence[BudgetStanding], words: Words) -> str:
    """What was used of each budget in the period that the report's end lies in; nothing where there are none."""
    if not found:
        return ""
    heads = [(words(key), number) for key, number in HEADS]
    rows = [("", _row(each, words)) for each in found]
    return card(words("budgets"), table(heads, rows), place="all long", note=words("budgets_sub"))


def _row(budget: BudgetStanding, words: Words) -> Cells:
    name = escape(budget.name)
    if budget.who is not None:
        name += f'<br><span class="muted">{escape(budget.who)}</span>'
    state = words.html(f"budget.state.{budget.state}")
    if budget.state in ("warning", "critical"):
        state = f'<span class="stale">{state}</span>'
    if budget.reason is not None:
        state += f'<br><span class="muted">{words.html(f"budget.reason.{budget.reason}")}</span>'
    return [
        (name, False),
        (f"{escape(words.time(budget.start_seconds))}<br>{escape(words.time(budget.end_seconds))}", False),
        (escape(_amount(budget.limit, budget, words)), True),
        (_share(budget.used, budget.used_ratio, budget, words), True),
        (_share(budget.forecast, budget.forecast_ratio, budget, words), True),
        (state, False),
    ]


def _share(value: float | None, ratio: float | None, budget: BudgetStanding, words: Words) -> str:
    text = escape(_amount(value, budget, words))
    return text if ratio is None else f'{text}<br><span class="muted">{escape(words.ratio(ratio))}</span>'


def _amount(value: float | None, budget: BudgetStanding, words: Words) -> str:
    if budget.unit == "money":
        return words.money(value)
    hours = words.hours(None if value is None else round(value * HOUR_MILLISECONDS))
    return hours if value is None else words("gpu_hours", hours=hours)
