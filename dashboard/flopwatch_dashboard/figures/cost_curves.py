"""What a capacity GPU-hour costs, own and rented, by utilisation, and where the two meet."""

from typing import Any

from flopwatch.answers.economy import GroupEconomy
from flopwatch_dashboard import wording
from flopwatch_dashboard.figures import frame
from flopwatch_dashboard.view import View


def cost_curves(group: GroupEconomy, currency: str, view: View) -> frame.Figure:
    """Both costs with their names at the right edge, U*, what is measured, and where a commitment is used up."""
    points = group.curve
    if not points:
        return frame.empty(view, view.t("econ.curve_none"))
    top = max(max(point.own_per_gpu_hour, point.cloud_per_gpu_hour) for point in points) * 1.12
    size = view.font_px
    return {
        "data": [_line(group, side, currency, view) for side in ("own", "cloud")],
        "layout": frame.layout(
            view,
            margin={"l": size * 4.0, "r": size * 7.6, "t": size * 1.6, "b": size * 2.2},
            xaxis={
                **frame.percent_axis(),
                "hoverformat": ".0%",
                "ticklabelstandoff": round(size * 0.35),
                "showspikes": False,
            },
            yaxis={
                "range": [0, top],
                "tickprefix": wording.SYMBOLS.get(currency, ""),
                "tickformat": ",.2f" if top < 20 else ",.0f",
                "nticks": 6,
            },
            shapes=_shapes(group, view),
            annotations=[*_ends(group, currency, top, view), *_marks(group, view)],
        ),
    }


def description(group: GroupEconomy, currency: str, view: View) -> str:
    """The figure in words."""
    if not group.curve:
        return view.t("econ.curve_none")
    return view.t(
        "econ.curve_aria",
        line=view.line(group.u_star),
        mean=wording.percent(group.utilisation_ratio),
        own=wording.money(group.own_per_gpu_hour, currency, 2),
        cloud=wording.money(group.cloud_per_gpu_hour, currency, 2),
    )


def _line(group: GroupEconomy, side: str, currency: str, view: View) -> dict[str, Any]:
    values = [getattr(point, f"{side}_per_gpu_hour") for point in group.curve]
    color = view.palette["good" if side == "own" else "below"]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": frame.array([point.utilisation_ratio for point in group.curve]),
        "y": frame.array(values),
        "name": view.t(f"econ.{side}"),
        "line": {"color": color, "width": 2.2},
        "hovertemplate": f"{wording.SYMBOLS.get(currency, currency + ' ')}%{{y:,.3f}}",
    }


def _shapes(group: GroupEconomy, view: View) -> list[dict[str, Any]]:
    shapes: list[dict[str, Any]] = []
    palette = view.palette
    if group.u_star is not None:
        area = {
            "type": "rect",
            "yref": "paper",
            "x0": group.u_star,
            "x1": 1,
            "y0": 0,
            "y1": 1,
            "layer": "below",
        }
        shapes.append({**area, "fillcolor": palette["fill"], "line": {"width": 0}})
        shapes.append(_upright(group.u_star, palette["belowtext"], "solid"))
    if group.utilisation_ratio is not None:
        shapes.append(_upright(group.utilisation_ratio, palette["text"], "5px,4px"))
    kink = kink_of(group)
    if kink is not None:
        shapes.append(_upright(kink, palette["muted"], "2px,3px"))
    return shapes


def kink_of(group: GroupEconomy) -> float | None:
    """The utilisation at which a commitment is used up; None without one, or where it is never used up."""
    share, billed = group.commitment_ratio, group.billed_per_used
    if not share or billed is None or group.efficiency.ratio <= 0:
        return None
    kink = share / (group.efficiency.ratio * billed)
    return kink if kink <= 1.0 else None


def _upright(x: float, color: str, dash: str) -> dict[str, Any]:
    line = {"color": color, "width": 1.3, "dash": dash}
    return {"type": "line", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": line}


def _ends(group: GroupEconomy, currency: str, top: float, view: View) -> list[dict[str, Any]]:
    """Each line's name and its cost at full use, at the right edge."""
    last = group.curve[-1]
    wanted = [last.own_per_gpu_hour, last.cloud_per_gpu_hour]
    places = frame.spread(wanted, top * 0.25, top * 0.12, top * 0.9)
    colors = (view.palette["mfutext"], view.palette["belowtext"])
    return [
        frame.label(
            place,
            f"{view.t(f'econ.{side}')}<br><b>{wording.money(value, currency, 2)}</b>",
            color,
            view,
        )
        for side, place, value, color in zip(("own", "cloud"), places, wanted, colors, strict=True)
    ]


def _marks(group: GroupEconomy, view: View) -> list[dict[str, Any]]:
    """Names of the upright lines above the plot; the two never stand in each other's way."""
    star, mean = group.u_star, group.utilisation_ratio
    marks: list[dict[str, Any]] = []
    if star is not None:
        right = mean is None or star >= mean
        text = view.t("econ.mark_star", line=f"<b>{view.line(star)}</b>")
        marks.append(_mark(star, text, view.palette["belowtext"], view, to_right=right and star < 0.8))
        marks[-1]["xanchor"] = _anchor(star, to_right=right)
    if mean is not None:
        right = star is not None and mean > star
        text = view.t("econ.mark_mean", mean=f"<b>{wording.percent(mean)}</b>")
        marks.append(_mark(mean, text, view.palette["text"], view, to_right=right))
    kink = kink_of(group)
    if kink is not None:
        note = _mark(kink, view.t("econ.mark_kink"), view.palette["muted"], view, to_right=kink < 0.5)
        marks.append({**note, "y": 0.02, "yanchor": "bottom"})
    return marks


def _anchor(x: float, *, to_right: bool) -> str:
    if to_right:
        return "left" if x <= 0.9 else "right"
    return "right" if x >= 0.12 else "left"


def _mark(x: float, text: str, color: str, view: View, *, to_right: bool) -> dict[str, Any]:
    return {
        "x": x, "y": 1, "yref": "paper", "text": text, "showarrow": False, "yanchor": "bottom",
        "xanchor": _anchor(x, to_right=to_right), "font": {"size": view.font_px, "color": color},
    }  # fmt: skip
