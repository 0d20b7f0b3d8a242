"""How many GPUs a run takes, and what it costs on either side."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from dash import html
from dash.development.base_component import Component

from flopwatch.answers.economy import Economy, GroupEconomy
from flopwatch.run_sizing import Run, Size, size_of
from flopwatch_dashboard import wording
from flopwatch_dashboard.components.boxes import Box, box, facts
from flopwatch_dashboard.components.cost_inputs import amount
from flopwatch_dashboard.view import View

SCALES: Mapping[str, float] = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
FLOPS_PER_PARAMETER = 6.0
"""A token's forward and backward pass, attention left out."""
USUAL_PEAK_TFLOPS = 989.4


@dataclass(frozen=True, kw_only=True, slots=True)
class _Field:
    name: str
    base: str
    allowed: str
    """A text ``allowed.<allowed>``."""
    fits: Callable[[float], bool]


def planner(economy: Economy, group: GroupEconomy, view: View) -> list[Component]:
    """The boxes, and below them the plan; where a value is not allowed, its name, value and what is."""
    typed = dict(view.inputs)
    fields = _fields(group)
    texts = {field.name: typed.get(f"plan.{field.name}", field.base) for field in fields}
    values = {name: scaled(text) for name, text in texts.items()}
    wrong = [field for field in fields if (found := values[field.name]) is None or not field.fits(found)]
    boxes = html.Div(
        [_box(field, texts[field.name], field in wrong, view) for field in fields], className="boxes"
    )
    if wrong:
        words = [_problem(field, texts[field.name], view) for field in wrong]
        return [boxes, *(html.P(each, className="empty-s bad-t", role="alert") for each in words)]
    known = {name: value for name, value in values.items() if value is not None}
    return [boxes, *_plan(known, economy, group, view)]


def scaled(text: str) -> float | None:
    """The number of ``70B``, ``2T``, ``5%`` or ``0.4``; None where it is none."""
    word = text.strip()
    scale = SCALES.get(word[-1:].upper())
    number = amount(word[:-1] if scale else word)
    return None if number is None else number * (scale or 1.0)


def _fields(group: GroupEconomy) -> tuple[_Field, ...]:
    info = group.efficiency

    def share(value: float) -> bool:
        return 0.0 < value <= 1.0

    return (
        _Field(name="params", base="70B", allowed="positive", fits=lambda x: x > 0),
        _Field(name="tokens", base="2T", allowed="positive", fits=lambda x: x > 0),
        _Field(name="days", base="30", allowed="days", fits=lambda x: 0 < x <= 3_650),
        _Field(
            name="peak_tflops",
            base=f"{info.own_peak_tflops or USUAL_PEAK_TFLOPS:.6g}",
            allowed="positive",
            fits=lambda x: 0 < x < 1e6,
        ),
        _Field(name="mfu", base=_percent(info.own_mfu, 0.40), allowed="share", fits=share),
        _Field(name="goodput", base=_percent(info.own_goodput, 0.90), allowed="share", fits=share),
        _Field(name="spares", base="5%", allowed="spares", fits=lambda x: 0 <= x <= 1),
        _Field(name="gpus_per_node", base="8", allowed="whole", fits=lambda x: x >= 1 and x.is_integer()),
    )


def _percent(ratio: float | None, otherwise: float) -> str:
    return f"{(otherwise if ratio is None else ratio) * 100:.3g}%"


def _box(field: _Field, text: str, wrong: bool, view: View) -> Component:  # noqa: FBT001 (said by the caller's name)
    kind = "bad" if wrong else "" if text == field.base else "of-override"
    name = f"plan.{field.name}"
    return box(
        Box(
            name=name,
            title=view.t(name),
            value=text,
            base=field.base,
            hint=view.t(f"allowed.{field.allowed}"),
            kind=kind,
        )
    )


def _problem(field: _Field, text: str, view: View) -> str:
    return view.t(
        "plan.wrong",
        name=view.t(f"plan.{field.name}"),
        value=text,
        allowed=view.t(f"allowed.{field.allowed}"),
    )


def run_of(values: Mapping[str, float]) -> Run:
    """The run of the boxes' numbers."""
    return Run(
        flops=FLOPS_PER_PARAMETER * values["params"] * values["tokens"],
        peak_flops=values["peak_tflops"] * 1e12,
        days=values["days"],
        mfu=values["mfu"],
        goodput=values["goodput"],
        spares_ratio=values["spares"],
        gpus_per_node=int(values["gpus_per_node"]),
    )


def _plan(values: Mapping[str, float], economy: Economy, group: GroupEconomy, view: View) -> list[Component]:
    run = run_of(values)
    size = size_of(run)
    own, cloud = own_cost(size, group), cloud_cost(run, size, group)
    rows = [
        (
            view.t("plan.gpus"),
            wording.number(size.gpus_in_nodes),
            view.t(
                "plan.gpus_note", exact=wording.number(size.gpus_exact, 1), nodes=wording.number(size.nodes)
            ),
        ),
        (
            view.t("plan.with_spares"),
            wording.number(size.gpus_with_spares),
            view.t("plan.nodes_note", nodes=wording.number(size.nodes_with_spares)),
        ),
        (
            view.t("plan.hours"),
            wording.number(size.working_gpu_hours),
            view.t("plan.hours_note", capacity=wording.number(size.capacity_gpu_hours)),
        ),
        (view.t("plan.own_cost"), wording.money(own, economy.currency), view.t("plan.own_note")),
        (view.t("plan.cloud_cost"), wording.money(cloud, economy.currency), view.t("plan.cloud_note")),
    ]
    return [facts(rows), *_measured(run, economy, view)]


def _measured(run: Run, economy: Economy, view: View) -> list[Component]:
    """The same at what the fleet measured, where that is another efficiency."""
    mfu, goodput = economy.measured.own_mfu, economy.measured.own_goodput
    if not mfu or not goodput or max(abs(mfu / run.mfu - 1.0), abs(goodput / run.goodput - 1.0)) < 0.005:
        return []
    size = size_of(replace(run, mfu=mfu, goodput=goodput))
    words = view.t(
        "plan.measured",
        mfu=wording.percent(mfu),
        goodput=wording.percent(goodput),
        gpus=wording.number(size.gpus_with_spares),
    )
    return [html.P(words, className="empty-s")]


def own_cost(size: Size, group: GroupEconomy) -> float:
    """Own GPUs are paid for every hour of the run's time, spares included."""
    fixed = group.fixed_per_gpu_hour * size.capacity_gpu_hours
    return fixed + group.variable_per_gpu_hour * size.working_gpu_hours


def cloud_cost(run: Run, size: Size, group: GroupEconomy) -> float | None:
    """Rented ones for the work, at the cloud's efficiency where that is known; None without a price."""
    if group.cloud_price is None or group.billed_per_used is None:
        return None
    info = group.efficiency
    there = (info.cloud_mfu or 0.0) * (info.cloud_goodput or 0.0) * (info.cloud_peak_tflops or 0.0) * 1e12
    used = run.flops / there / 3600.0 if there else size.working_gpu_hours
    return used * group.billed_per_used * group.cloud_price
