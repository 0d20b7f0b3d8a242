"""The demand's duration curve: for which share of the time at least so many GPUs were asked for."""

from typing import Any

from flopwatch.answers.economy import DemandInfo, GroupEconomy
from flopwatch_dashboard import wording
from flopwatch_dashboard.figures import frame
from flopwatch_dashboard.view import View


def demand(group: GroupEconomy, view: View) -> frame.Figure:
    """The curve falls to the right; left of U* and below the curve lies what is worth owning."""
    curve = group.demand
    if curve is None or not curve.gpus:
        return frame.empty(view, view.t("econ.demand_none"))
    top = max(*curve.gpus, group.gpus or 0) * 1.12
    size = view.font_px
    return {
        "data": [_curve(curve, view)],
        "layout": frame.layout(
            view,
            margin={"l": size * 3.8, "r": size * 2.2, "t": size * 1.6, "b": size * 2.2},
            hovermode="x",
            xaxis={**frame.percent_axis(), "hoverformat": ".0%", "ticklabelstandoff": round(size * 0.35)},
            yaxis={"range": [0, top], "tickformat": ",d", "nticks": 5},
            shapes=_shapes(group, curve, view),
            annotations=_labels(group, curve, top, view),
        ),
    }


def description(group: GroupEconomy, view: View) -> str:
    """The figure in words."""
    curve = group.demand
    if curve is None or not curve.gpus:
        return view.t("econ.demand_none")
    return view.t(
        "econ.demand_aria",
        base=wording.number(curve.ownable_gpus),
        burst=wording.number(curve.burst_gpus),
        mean=wording.number(curve.mean_gpus, 1),
    )


def _curve(curve: DemandInfo, view: View) -> dict[str, Any]:
    """Steps: the level k holds up to the share of the time with k or more."""
    kept = frame.thin(curve.gpus, view.asked.points)
    shares = [0.0, *(curve.time_ratio[i] for i in kept)]
    levels = [curve.gpus[kept[0]], *(curve.gpus[i] for i in kept)]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": frame.array(shares),
        "y": frame.array(levels),
        "line": {"color": view.palette["good"], "width": 2, "shape": "vh"},
        "fill": "tozeroy",
        "fillcolor": view.palette["fill"],
        "hovertemplate": f"%{{y:,.0f}} {view.t('unit.gpus')}<extra></extra>",
    }


def _shapes(group: GroupEconomy, curve: DemandInfo, view: View) -> list[dict[str, Any]]:
    shapes = []
    if group.u_star is not None:
        line = {"color": view.palette["belowtext"], "width": 1.3}
        shapes.append(
            {
                "type": "line",
                "yref": "paper",
                "x0": group.u_star,
                "x1": group.u_star,
                "y0": 0,
                "y1": 1,
                "line": line,
            }
        )
    if curve.ownable_gpus:
        shapes.append(frame.rule(curve.ownable_gpus, view.palette["text"], width=1.3, dash="5px,4px"))
    if group.gpus:
        shapes.append(frame.rule(group.gpus, view.palette["muted"], width=1, dash="2px,3px"))
    return shapes


def _labels(group: GroupEconomy, curve: DemandInfo, top: float, view: View) -> list[dict[str, Any]]:
    labels = []
    if group.u_star is not None:
        text = view.t("econ.mark_star", line=f"<b>{wording.line_percent(group.u_star)}</b>")
        right = group.u_star < 0.7
        labels.append(
            {
                "x": group.u_star, "y": 1, "yref": "paper", "text": text, "showarrow": False, "yanchor": "bottom",
                "xanchor": "left" if right else "right",
                "font": {"size": view.font_px, "color": view.palette["belowtext"]},
            }
        )  # fmt: skip
    wanted = [
        (
            curve.ownable_gpus,
            view.t("econ.demand_base", gpus=f"<b>{wording.number(curve.ownable_gpus)}</b>"),
            "text",
        ),
        (group.gpus, view.t("econ.demand_have", gpus=f"<b>{wording.number(group.gpus)}</b>"), "muted"),
    ]
    shown = [(float(level), text, token) for level, text, token in wanted if level]
    places = frame.spread([level + top * 0.045 for level, _, _ in shown], top * 0.09, top * 0.05, top * 0.97)
    for place, (_, text, token) in zip(places, shown, strict=True):
        labels.append(
            {
                "x": 0.01, "xref": "paper", "y": place, "text": text, "showarrow": False, "xanchor": "left",
                "yanchor": "middle", "font": {"size": view.font_px, "color": view.palette[token]},
                "bgcolor": view.palette["card"],
            }
        )  # fmt: skip
    return labels
