"""From step MFU to wall MFU: the lost time of a run, in points of MFU, by the buckets of its ledger."""

from dataclasses import dataclass
from typing import Any

from flopwatch.query import Job, Ledger, LedgerClass
from flopwatch_dashboard import wording
from flopwatch_dashboard.figures import frame
from flopwatch_dashboard.view import View

MOST = 7
REST_FLOOR = 0.0005
"""Differences below 0.05 points are rounding, not something left out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Loss:
    """One bucket's part of the gap, as a difference of MFU; the rest has no bucket.

    A negative rest is lost time that lies inside the steps: it has lowered the step MFU already.
    """

    bucket: str | None
    ledger_class: str
    ratio: float


def losses(job: Job) -> list[Loss] | None:
    """What lies between the two figures, largest first; None when one of them is unknown.

    Time that was not productive did no model FLOPs, so a bucket's share of the GPU time that the job held costs that
    share of the step MFU. What the buckets do not explain, or explain too much of, is the last entry.
    """
    step, wall = job.row.mfu.measured_ratio, job.row.wall_mfu_ratio
    capacity = job.ledger.capacity_gpu_milliseconds
    if step is None or wall is None or capacity <= 0:
        return None
    found = [
        Loss(bucket=bucket, ledger_class=ledger_class, ratio=step * milliseconds / capacity)
        for (bucket, ledger_class), milliseconds in _lost(job.ledger).items()
    ]
    found.sort(key=lambda loss: -loss.ratio)
    shown = [loss for loss in found[:MOST] if loss.ratio >= REST_FLOOR]
    rest = step - wall - sum(loss.ratio for loss in shown)
    if abs(rest) >= REST_FLOOR:
        shown.append(Loss(bucket=None, ledger_class="unknown", ratio=rest))
    return shown


def _lost(ledger: Ledger) -> dict[tuple[str, LedgerClass], int]:
    """GPU milliseconds that were not productive, by bucket without its reason, and class."""
    lost: dict[tuple[str, LedgerClass], int] = {}
    for amount in ledger.classes:
        if amount.name == "productive":
            continue
        for bucket, milliseconds in amount.buckets.items():
            key = (bucket.partition(":")[0], amount.name)
            lost[key] = lost.get(key, 0) + milliseconds
    return lost


def gap(job: Job, view: View) -> frame.Figure:
    """Horizontal bars from step MFU down to wall MFU, each loss beginning where the one above ends."""
    found = losses(job)
    step, wall = job.row.mfu.measured_ratio, job.row.wall_mfu_ratio
    if found is None or step is None or wall is None:
        return frame.empty(view, view.t("job.gap_none"))
    names = [view.t("job.step_mfu"), *(name(loss, view) for loss in found), view.t("job.wall_mfu")]
    values = [step, *(loss.ratio for loss in found), wall]
    bases, right = [0.0], step
    for loss in found:
        right -= loss.ratio
        bases.append(right)
    bases.append(0.0)
    bar = {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(values))),
        "x": values,
        "base": bases,
        "marker": _marker(found, view),
        "hoverinfo": "skip",
    }
    labels = [_label(i, values, bases, view) for i in range(len(values))]
    top = max([step, wall, *(base + max(0.0, value) for base, value in zip(bases, values, strict=True))])
    return {"data": [bar], "layout": _layout(names, labels, top, view)}


def description(job: Job, view: View) -> str:
    """The figure in words."""
    found = losses(job)
    if found is None:
        return view.t("job.gap_none")
    parts = ", ".join(f"{name(loss, view)} {_points(loss.ratio, view)}" for loss in found)
    return view.t(
        "job.gap_aria",
        step=wording.percent(job.row.mfu.measured_ratio),
        wall=wording.percent(job.row.wall_mfu_ratio),
        parts=parts,
    )


def note(job: Job, view: View) -> str:
    """What the last bar without a bucket means: time inside the steps, or time that nobody explains."""
    found = losses(job)
    if not found or found[-1].bucket is not None:
        return ""
    key = "job.gap_inside_note" if found[-1].ratio < 0 else "job.gap_rest_note"
    return view.t(key, points=_points(found[-1].ratio, view))


def name(loss: Loss, view: View) -> str:
    """A loss in words."""
    if loss.bucket is not None:
        return view.bucket(loss.bucket)
    return view.t("job.gap_inside" if loss.ratio < 0 else "job.gap_rest")


def _points(ratio: float, view: View) -> str:
    return view.t("unit.points", n=wording.points(-ratio))


def _marker(found: list[Loss], view: View) -> dict[str, Any]:
    colors = [view.palette["mfu"], *(view.palette[loss.ledger_class] for loss in found), view.palette["mfu"]]
    shapes = ["", *("/" if loss.bucket is None else "" for loss in found), ""]
    pattern = {"shape": shapes, "size": 5, "solidity": 0.35, "fgcolor": view.palette["card"]}
    return {"color": colors, "pattern": pattern}


def _label(row: int, values: list[float], bases: list[float], view: View) -> dict[str, Any]:
    total = row in (0, len(values) - 1)
    text = f"<b>{wording.percent(values[row])}</b>" if total else _points(values[row], view)
    end = max(bases[row], bases[row] + values[row])
    return {
        "x": end, "y": row, "text": text, "showarrow": False, "xanchor": "left", "yanchor": "middle", "xshift": 4,
        "font": {"size": view.font_px, "color": view.palette["text"]},
    }  # fmt: skip


def _layout(names: list[str], labels: list[dict[str, Any]], top: float, view: View) -> dict[str, Any]:
    return frame.layout(
        view,
        margin={"l": view.font_px * (10.6 if view.lang == "en" else 8.6), "r": 6, "t": 2, "b": 4},
        hovermode=False,
        bargap=0.25,
        xaxis={"showticklabels": False, "range": [0, top * 1.2]},
        yaxis={
            "autorange": "reversed",
            "showgrid": False,
            "tickvals": list(range(len(names))),
            "ticktext": names,
            "tickfont": {"color": view.palette["text"], "size": view.font_px},
        },
        annotations=labels,
    )
