"""Two runs of the same work side by side, one on own GPUs and one rented; unlike runs are refused with reasons."""

from collections.abc import Sequence

import msgspec
from dash import html
from dash.development.base_component import Component

from flopwatch.answers.economy import GroupEconomy
from flopwatch.query import Query, Range
from flopwatch.run_comparison import Difference, Side, differences, loss_at_equal_tokens, side_of
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import parts
from flopwatch_dashboard.components.boxes import Box, box
from flopwatch_dashboard.components.tables import table
from flopwatch_dashboard.view import View

RANGE = Range(seconds=90 * 86_400.0, points=2_000)
SIDES = ("own", "other")
Row = Sequence[Component | str]


def compare(query: Query, group: GroupEconomy, view: View) -> list[Component]:
    """The two boxes, and below them the comparison, or why there is none."""
    typed = dict(view.inputs)
    asked = [typed.get(f"compare.{side}", "").strip() for side in SIDES]
    boxes = html.Div(
        [_box(side, text, view) for side, text in zip(SIDES, asked, strict=True)], className="boxes wide"
    )
    if not all(asked):
        return [boxes, html.P(view.t("compare.how"), className="empty-s")]
    if asked[0] == asked[1]:
        return [boxes, _refused([view.t("compare.same", job=asked[0])], view)]
    prices = (group.own_per_used_hour, group.cloud_price)
    sides = [_side(query, job_id, price) for job_id, price in zip(asked, prices, strict=True)]
    missing = [job_id for job_id, side in zip(asked, sides, strict=True) if side is None]
    one, other = sides
    if one is None or other is None:
        return [boxes, _refused([view.t("empty.no_job", job=job_id) for job_id in missing], view)]
    unlike = differences(one, other)
    if unlike:
        return [boxes, _refused([_reason(each, view) for each in unlike], view)]
    return [boxes, _table(one, other, group, view)]


def _box(side: str, text: str, view: View) -> Component:
    words = Box(
        name=f"compare.{side}",
        title=view.t(f"compare.{side}"),
        value=text,
        base="",
        placeholder=view.t("compare.job_id"),
        mode="text",
    )
    return box(words)


def _side(query: Query, job_id: str, price: float | None) -> Side | None:
    job = query.job(job_id, RANGE)
    if job is None:
        return None
    facts = {fact.name: fact.value for fact in job.found}
    return side_of(msgspec.to_builtins(job), facts, price)


def _refused(reasons: Sequence[str], view: View) -> Component:
    head = html.P([parts.icon("warning"), html.Span(view.t("compare.refused"))], className="sev sev-warning")
    return html.Div(
        [head, html.Ul([html.Li(reason) for reason in reasons], className="reasons")], role="alert"
    )


def _reason(found: Difference, view: View) -> str:
    name = view.t(f"alike.{found.name}")
    if found.unknown_of:
        return view.t("compare.unknown", name=name, jobs=", ".join(found.unknown_of))
    return view.t("compare.differs", name=name, one=found.one, other=found.other)


def _table(one: Side, other: Side, group: GroupEconomy, view: View) -> Component:
    currency = group.prices[0].currency if group.prices else ""
    columns = [("", False), (one.name, True), (other.name, True)]
    rows: list[Row] = [
        [view.t(f"compare.{key}"), _shown(key, one, currency), _shown(key, other, currency)] for key in ROWS
    ]
    losses = loss_at_equal_tokens(one, other)
    if losses is not None:
        label = view.t("compare.loss", tokens=wording.si(losses[0]))
        rows.append([label, *(wording.number(loss, 4) for loss in losses[1:])])
    told = []
    if one.kept_flops is not None and other.kept_flops:
        told = [
            html.P(
                view.t("compare.rho", ratio=wording.number(one.kept_flops / other.kept_flops, 3)),
                className="empty-s",
            )
        ]
    return html.Div([table(columns, rows), *told])


ROWS = (
    "gpu_hours", "mfu", "goodput", "p50", "spread", "data_wait", "checkpoint", "price", "tokens_cost", "eflop_cost",
)  # fmt: skip


def _shown(key: str, side: Side, currency: str) -> str:
    shown = {
        "gpu_hours": lambda: wording.number(side.gpu_hours, 1),
        "mfu": lambda: wording.percent(side.mfu),
        "goodput": lambda: wording.percent(side.goodput),
        "p50": lambda: wording.step_time(side.step_seconds.get("p50")),
        "spread": lambda: wording.percent(side.spread),
        "data_wait": lambda: wording.percent(side.data_wait_ratio),
        "checkpoint": lambda: wording.percent(side.checkpoint_ratio),
        "price": lambda: wording.money(side.price_per_gpu_hour, currency, 2),
        "tokens_cost": lambda: wording.money(side.per_trillion_tokens, currency),
        "eflop_cost": lambda: wording.money(side.per_useful_eflop, currency, 4),
    }
    return shown[key]()
