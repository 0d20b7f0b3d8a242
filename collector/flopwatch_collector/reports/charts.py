"""Charts as inline SVG: daily utilisation against the line, and where the GPU-hours went. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

COLOURS = {
    "capacity": "#d5dae2", "down": "#6b7482", "unallocated": "#b9a27a", "allocated_idle": "#e2a012",
    "stalled": "#9a4f86", "in_job_loss": "#63b3e4", "productive": "#0b6fb8", "unmeasured": "#4d9a86",
    "unknown": "#aab3bf",
}  # fmt: skip
"""The classes as on the pages."""
ABOVE, BELOW, GAP, LINE, AXIS, TEXT, MUTED = (
    "#0b6fb8", "#8fb4d3", "#fbe9cc", "#d98200", "#c5ccd6", "#17202b", "#566273",
)  # fmt: skip
WIDTH, BAR_HEIGHT, BAR_STEP = 560.0, 20.0, 28.0
LABEL_WIDTH = 132.0
DAYS_HEIGHT, DAYS_TOP, DAYS_LEFT, DAYS_RIGHT = 220.0, 14.0, 44.0, 64.0
GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
MOST_LABELS = 8
CHARACTER_WIDTH = 6.3


@dataclass(frozen=True, kw_only=True, slots=True)
class DayBar:
    """One day of the chart."""

    label: str
    ratio: float | None
    title: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One bar of the waterfall: a class with its amount."""

    name: str
    label: str
    amount: int
    text: str
    title: str


def days_chart(bars: Sequence[DayBar], line: float, line_text: tuple[str, str], name: str) -> str:
    """Utilisation by day; what misses the line is shaded."""
    inner = WIDTH - DAYS_LEFT - DAYS_RIGHT
    width = inner / max(1, len(bars))
    parts = [_grid(inner)]
    for index, bar in enumerate(bars):
        parts.append(_day(bar, DAYS_LEFT + index * width, width, line))
        if index % max(1, -(-len(bars) // MOST_LABELS)) == 0:
            middle = DAYS_LEFT + (index + 0.5) * width
            parts.append(_text(middle, DAYS_HEIGHT + 16.0, bar.label, MUTED, "middle"))
    at = _y(line)
    right = DAYS_LEFT + inner
    parts.append(f'<path d="M{DAYS_LEFT:.1f} {at:.1f}H{right:.1f}" stroke="{LINE}" stroke-width="2"/>')
    parts.append(_text(right + 8.0, at - 3.0, line_text[0], "#9a5b00"))
    parts.append(_text(right + 8.0, at + 12.0, line_text[1], "#9a5b00", bold=True))
    return _svg(DAYS_HEIGHT + 24.0, name, "".join(parts))


def _grid(inner: float) -> str:
    rows = []
    for ratio in GRID:
        y = _y(ratio)
        rows.append(f'<path d="M{DAYS_LEFT:.1f} {y:.1f}h{inner:.1f}" stroke="#e6e9ee"/>')
        rows.append(_text(DAYS_LEFT - 6.0, y + 4.0, f"{ratio:.0%}", MUTED, "end"))
    return "".join(rows)


def _y(ratio: float) -> float:
    return DAYS_TOP + (1.0 - min(1.0, max(0.0, ratio))) * (DAYS_HEIGHT - DAYS_TOP)


def _day(bar: DayBar, left: float, width: float, line: float) -> str:
    gap = min(4.0, width * 0.16)
    if bar.ratio is None:
        box = _rect((left + gap, _y(0.0) - 3.0), (width - 2 * gap, 3.0), AXIS)
        return f"<g><title>{escape(bar.title)}</title>{box}</g>"
    top, floor = _y(bar.ratio), _y(0.0)
    size = (width - 2 * gap, floor - top)
    box = _rect((left + gap, top), size, ABOVE if bar.ratio >= line else BELOW)
    if bar.ratio < line:
        box += _rect((left + gap, _y(line)), (width - 2 * gap, top - _y(line)), GAP)
    return f"<g><title>{escape(bar.title)}</title>{box}</g>"


def waterfall(steps: Sequence[Step], capacity: tuple[int, str, str], name: str) -> str:
    """Capacity, and the classes it falls into, one below the other."""
    total, label, text = capacity
    inner = WIDTH - LABEL_WIDTH - 8.0
    rows = [
        _bar(0, Step(name="capacity", label=label, amount=total, text=text, title=text), (0.0, inner), inner)
    ]
    right = inner
    for index, step in enumerate(steps, start=1):
        width = inner * step.amount / total if total else 0.0
        rows.append(_bar(index, step, (right - width, width), inner))
        right -= width
    height = BAR_STEP * (len(steps) + 1) + 4.0
    axis = f'<path d="M{LABEL_WIDTH:.1f} 0V{height:.1f}" stroke="{AXIS}"/>'
    return _svg(height, name, "".join(rows) + axis)


def _bar(index: int, step: Step, span: tuple[float, float], inner: float) -> str:
    top = index * BAR_STEP + 4.0
    left, width = LABEL_WIDTH + span[0], span[1]
    middle = top + BAR_HEIGHT / 2 + 4.0
    needed = len(step.text) * CHARACTER_WIDTH + 14.0
    label = _text(LABEL_WIDTH - 8.0, middle, step.label, TEXT, "end")
    box = _rect((left, top), (max(width, 0.8 if step.amount else 0.0), BAR_HEIGHT), COLOURS[step.name])
    if width > needed:
        dark = step.name in ("productive", "down", "stalled", "unmeasured")
        words = _text(left + 8.0, middle, step.text, "#ffffff" if dark else TEXT)
    elif span[0] > needed:
        words = _text(left - 6.0, middle, step.text, TEXT, "end")
    else:
        words = _text(min(left + width + 6.0, LABEL_WIDTH + inner - needed + 14.0), middle, step.text, TEXT)
    return f"<g><title>{escape(step.title)}</title>{label}{box}{words}</g>"


def share_bar(parts: Sequence[tuple[str, int]], total: int, name: str) -> str:
    """A narrow bar of classes, as a part of a table."""
    left, boxes = 0.0, []
    for kind, amount in parts:
        width = 120.0 * amount / total if total else 0.0
        boxes.append(_rect((left, 0.0), (width, 8.0), COLOURS[kind]))
        left += width
    track = _rect((0.0, 0.0), (120.0, 8.0), "#e9edf2")
    return (
        f'<svg class="share" viewBox="0 0 120 8" width="120" height="8" role="img" aria-label="{escape(name)}">'
        f"{track}{''.join(boxes)}</svg>"
    )


def _rect(at: tuple[float, float], size: tuple[float, float], colour: str) -> str:
    return (
        f'<rect x="{at[0]:.2f}" y="{at[1]:.2f}" width="{max(0.0, size[0]):.2f}" height="{max(0.0, size[1]):.2f}" '
        f'fill="{colour}"/>'
    )


def _text(  # noqa: PLR0913 - what a text of a drawing has
    x: float, y: float, words: str, colour: str, anchor: str = "start", *, bold: bool = False
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}"{weight}>{escape(words)}</text>'
    )


def _svg(height: float, name: str, inside: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH:.0f} {height:.0f}" role="img" aria-label="{escape(name)}" '
        f'font-size="12">{inside}</svg>'
    )
