"""Where GPU time went: from capacity down through the ledger's classes."""

from typing import Any

from flopwatch.query import ClassAmount, Ledger
from flopwatch_dashboard import wording
from flopwatch_dashboard.figures import frame
from flopwatch_dashboard.view import View


def waterfall(ledger: Ledger, currency: str, view: View) -> frame.Figure:
    """Horizontal bars in the order of the classes: each begins where the one above ends, the last at zero."""
    capacity = ledger.capacity_gpu_milliseconds
    if capacity <= 0:
        return frame.empty(view, view.t("series.no_data"))
    amounts = [capacity, *(amount.gpu_milliseconds for amount in ledger.classes)]
    bases = starts(ledger)
    bar = {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(amounts))),
        "x": amounts,
        "base": bases,
        "marker": _marker(ledger, view),
        "customdata": [_note(None, ledger, currency, view), *_notes(ledger, currency, view)],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    labels = [
        _label(row, ledger, bases[row], _figures(row, ledger, currency, view), view)
        for row in range(len(amounts))
    ]
    return {"data": [bar], "layout": _layout(ledger, labels, view)}


def description(ledger: Ledger, view: View) -> str:
    """The figure in words: every class with its hours and its share."""
    capacity = ledger.capacity_gpu_milliseconds
    parts = [
        view.t(
            "fleet.fall_part",
            name=view.t(f"class.{amount.name}"),
            hours=wording.hours(amount.gpu_milliseconds),
            share=wording.percent(share(amount.gpu_milliseconds, capacity), 0),
        )
        for amount in ledger.classes
    ]
    return view.t("fleet.fall_aria", parts=", ".join(parts))


def starts(ledger: Ledger) -> list[int]:
    """Where each bar begins: capacity at zero, then each class left of the one above."""
    right = ledger.capacity_gpu_milliseconds
    bases = [0]
    for amount in ledger.classes:
        right -= amount.gpu_milliseconds
        bases.append(right)
    return bases


def share(part: float, whole: float) -> float | None:
    """Part of whole; None of nothing."""
    return part / whole if whole > 0 else None


def _figures(row: int, ledger: Ledger, currency: str, view: View) -> str:
    """``1,720 · 11% · $4,300``, without money where there is no price or no room."""
    capacity = ledger.capacity_gpu_milliseconds
    if row == 0:
        return f"{wording.hours(capacity)} · 100%"
    amount = ledger.classes[row - 1]
    shown = f"{wording.hours(amount.gpu_milliseconds)} · {_share(amount, capacity)}"
    return (
        shown if amount.money is None or view.narrow else f"{shown} · {wording.money(amount.money, currency)}"
    )


def _share(amount: ClassAmount, capacity: int) -> str:
    """A share that is there but rounds to nothing reads ``<1%``, not ``0%``."""
    ratio = share(amount.gpu_milliseconds, capacity)
    if ratio is not None and 0 < ratio < 0.005:
        return "<1%"
    return wording.percent(ratio, 0)


def _notes(ledger: Ledger, currency: str, view: View) -> list[str]:
    return [_note(amount, ledger, currency, view) for amount in ledger.classes]


def _note(amount: ClassAmount | None, ledger: Ledger, currency: str, view: View) -> str:
    """The hover text: the class, what it means in money, and its buckets."""
    unit = view.t("unit.gpu_hours")
    if amount is None:
        return f"{view.t('class.capacity')}: {wording.hours(ledger.capacity_gpu_milliseconds)} {unit}"
    head = f"<b>{view.t(f'class.{amount.name}')}</b>: {wording.hours(amount.gpu_milliseconds)} {unit}"
    if amount.money is not None:
        head += f" · {wording.money(amount.money, currency)}"
    if amount.name == "unallocated":
        head += f" · {view.t('fleet.unsold')}"
    buckets = sorted(amount.buckets.items(), key=lambda item: -item[1])[:6]
    lines = [f"{view.bucket(name)}: {wording.hours(value)} {unit}" for name, value in buckets]
    return "<br>".join([head, *lines])


def _marker(ledger: Ledger, view: View) -> dict[str, Any]:
    """Class colours; what is unknown is hatched, so that it cannot be taken for a measured class."""
    palette = view.palette
    shapes = ["", *("/" if amount.name == "unknown" else "" for amount in ledger.classes)]
    return {
        "color": [palette["capacity"], *(palette[amount.name] for amount in ledger.classes)],
        "pattern": {"shape": shapes, "size": 5, "solidity": 0.35, "fgcolor": palette["card"]},
    }


def _label(row: int, ledger: Ledger, base: int, text: str, view: View) -> dict[str, Any]:
    """The figures beside their bar: inside where it is long, else on the side that has room."""
    capacity = ledger.capacity_gpu_milliseconds
    length = capacity if row == 0 else ledger.classes[row - 1].gpu_milliseconds
    margin = capacity * 0.012
    inside = length > capacity * 0.42
    left = base > capacity * 0.42
    x = base + margin if inside else base - margin if left else base + length + margin
    color = view.palette["inbar"] if inside and row else view.palette["text"]
    return {
        "x": x, "y": row, "text": text, "showarrow": False, "yanchor": "middle",
        "xanchor": "right" if left and not inside else "left", "font": {"size": view.font_px, "color": color},
    }  # fmt: skip


def _layout(ledger: Ledger, labels: list[dict[str, Any]], view: View) -> dict[str, Any]:
    names = [view.t("class.capacity"), *(view.t(f"class.{amount.name}") for amount in ledger.classes)]
    width = 11.2 if view.lang == "en" else 8.0
    return frame.layout(
        view,
        margin={"l": view.font_px * width, "r": 8, "t": 2, "b": 4},
        hovermode="closest",
        bargap=0.2,
        xaxis={"showticklabels": False, "range": [0, ledger.capacity_gpu_milliseconds * 1.01]},
        yaxis={
            "autorange": "reversed",
            "showgrid": False,
            "tickvals": list(range(len(names))),
            "ticktext": names,
            "tickfont": {"color": view.palette["text"], "size": view.font_px},
        },
        annotations=labels,
    )
