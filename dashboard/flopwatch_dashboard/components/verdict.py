"""The verdict: one sentence, with its arithmetic one click away."""

from dash import html
from dash.development.base_component import Component

from flopwatch.query import Fleet
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import parts
from flopwatch_dashboard.view import View

TONES = {
    "above_sustained": "good", "above_not_sustained": "good", "below": "warning", "below_sustained": "warning",
    "insufficient_data": "info",
}  # fmt: skip


def tone(code: str) -> str:
    """The colour of the strip; red is for what needs a person now, so a verdict is never red."""
    return TONES[code]


def sentence(fleet: Fleet, view: View) -> list[Component]:
    """The strip on top of the page."""
    verdict = fleet.verdict
    line = wording.line_percent(verdict.line_ratio)
    title = view.t("verdict.never") if verdict.never else view.t(f"verdict.{verdict.code}", line=line)
    mark = "check" if tone(verdict.code) == "good" else tone(verdict.code)
    return [
        parts.icon(mark),
        html.B(title),
        html.Span(_detail(fleet, view), className="sum-d"),
        html.Span(_cost(fleet, view), className="sum-c"),
        html.Details(
            [
                html.Summary(view.t("verdict.arithmetic")),
                html.Ul([html.Li(x) for x in arithmetic(fleet, view)]),
            ],
            className="arith",
        ),
        parts.link(view.t("verdict.why"), view.link("breakeven")),
    ]


def _detail(fleet: Fleet, view: View) -> str:
    verdict = fleet.verdict
    mean = wording.percent(verdict.mean_30d_ratio)
    if verdict.code == "insufficient_data":
        return view.t(
            "verdict.detail_short", valid=verdict.valid_days, needed=verdict.days_in_state, mean=mean
        )
    if verdict.code.endswith("_sustained") and verdict.code != "above_not_sustained":
        sustained = view.t("verdict.sustained", days=verdict.days_in_state)
    else:
        sustained = view.t("verdict.not_sustained")
    return view.t(
        "verdict.detail", mean=mean, above=verdict.days_above, total=verdict.days_total, sustained=sustained
    )


def _cost(fleet: Fleet, view: View) -> str:
    verdict, currency = fleet.verdict, fleet.status.currency
    if verdict.cost_at_mean is None or verdict.cost_at_line is None:
        return view.t("verdict.no_price") if fleet.status.price_per_gpu_hour is None else ""
    return view.t(
        "verdict.cost",
        mean=wording.percent(verdict.mean_30d_ratio),
        line=wording.line_percent(verdict.line_ratio),
        cost=wording.money(verdict.cost_at_mean, currency, 2),
        cost_line=wording.money(verdict.cost_at_line, currency, 2),
    )


def _without_barely_used(fleet: Fleet, view: View) -> str | None:
    """The verdict with that time left out, where any is known."""
    verdict = fleet.verdict
    strict = verdict.mean_30d_without_barely_used_ratio
    if strict is None or verdict.code_without_barely_used is None or strict == verdict.mean_30d_ratio:
        return None
    title = (
        view.t("verdict.never")
        if verdict.never
        else view.t(
            f"verdict.{verdict.code_without_barely_used}", line=wording.line_percent(verdict.line_ratio)
        )
    )
    return view.t("verdict.a_barely", mean=wording.percent(strict), title=title)


def arithmetic(fleet: Fleet, view: View) -> list[str]:
    """The verdict's figures with the numbers they come from."""
    verdict, ledger, status = fleet.verdict, fleet.ledger_today, fleet.status
    line = wording.line_percent(verdict.line_ratio)
    barely = _without_barely_used(fleet, view)
    lines = [
        view.t(
            "verdict.a_billable",
            today=wording.percent(ledger.billable_ratio),
            upper=wording.percent(ledger.billable_upper_ratio),
        ),
        view.t(
            "verdict.a_mean",
            valid=verdict.valid_days,
            total=verdict.days_total,
            mean=wording.percent(verdict.mean_30d_ratio),
        ),
        *([barely] if barely else []),
        view.t(f"verdict.a_line_{'never' if verdict.never else verdict.line_source}", line=line),
    ]
    if status.price_per_gpu_hour is not None:
        price = wording.money(status.price_per_gpu_hour, status.currency, 2)
        example = view.t("verdict.example") if status.price_is_example else ""
        mean = wording.percent(verdict.mean_30d_ratio)
        cost = wording.money(verdict.cost_at_mean, status.currency, 2)
        at_line = wording.money(verdict.cost_at_line, status.currency, 2)
        if status.variable_per_gpu_hour:
            # A busy hour costs more, whatever the utilisation.
            busy = f" + {wording.money(status.variable_per_gpu_hour, status.currency, 2)}"
            mean, line = mean + busy, line + busy
        lines.append(view.t("verdict.a_cost", price=price, example=example, mean=mean, cost=cost))
        if not verdict.never:
            lines.append(view.t("verdict.a_cost_line", price=price, example=example, line=line, cost=at_line))
    return [*lines, view.t("verdict.a_decision")]
