"""Headings and tiles of a node's and a GPU's page."""

from dash import html
from dash.development.base_component import Component

from flopwatch.answers.nodes import GpuPage, NodePage
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import node_grid, parts, tiles
from flopwatch_dashboard.components.node_tables import gpu_health, health_mark, job_link, state_mark
from flopwatch_dashboard.components.node_words import value_words
from flopwatch_dashboard.components.tiles import TileText
from flopwatch_dashboard.view import View

FACTS = ("driver", "nvml", "interval_seconds", "clock_offset_seconds", "machine_id")


def gone(words: str, view: View) -> list[Component]:
    """Where to go when there is no such thing."""
    told = [
        html.P(words, className="empty-t"),
        html.P(view.t("nodes.gone_next"), className="empty-s"),
        parts.link(view.t("nodes.back"), view.link("nodes")),
    ]
    return [html.Section(told, className="card lone")]


def of_node(page: NodePage, view: View) -> list[Component]:
    """The node's name, health, and what it is."""
    row = page.row
    words = [
        view.t("nodes.rack_n", rack=row.rack) if row.rack else "",
        row.cluster,
        (row.gpu_model or "").removeprefix("NVIDIA "),
        *(f"{view.t('nodes.fact.' + name)} {page.facts[name]}" for name in FACTS[:1] if name in page.facts),
    ]
    if row.last_seen_seconds is not None and not row.reporting:
        words.append(
            view.t("nodes.seen_at", time=wording.moment(row.last_seen_seconds, view.shown_zone, view.lang))
        )
    sub = " · ".join(word for word in words if word)
    return [
        html.Div([
            html.H1(row.node),
            health_mark(row.health, node_grid.health_words(row, view)),
            html.Span(sub, className="sub", title=sub),
            html.A(view.t("nodes.back"), href=view.link("nodes"), className="more"),
        ], className="nd-h"),
    ]  # fmt: skip


def of_gpu(page: GpuPage, view: View) -> list[Component]:
    """The GPU's name, health, place and job."""
    row = page.row
    name = view.t("nodes.gpu_n", n=row.index if row.index is not None else row.slot or "")
    sub = " · ".join(part for part in ((row.model or "").removeprefix("NVIDIA "), row.slot, row.uuid) if part)
    return [
        html.Div([
            html.H1([html.A(row.node, href=view.link(f"nodes/{row.node}")), f" / {name}"]),
            gpu_health(row, view),
            html.Span([state_mark(row.bucket, view), *([" · ", job_link(row.job, view)] if row.job else [])]),
            html.Span(sub, className="sub mono", title=sub),
            html.A(view.t("nodes.to_node"), href=view.link(f"nodes/{row.node}"), className="more"),
        ], className="nd-h"),
    ]  # fmt: skip


def node_tiles(page: NodePage, view: View) -> list[Component]:
    """GPUs, activity, power, heat, network."""
    row, series = page.row, page.series
    alive = [gpu for gpu in page.gpus if gpu.reporting]

    def values(name: str) -> list[float]:
        return [value for gpu in alive if (value := gpu.values.get(name)) is not None]

    def mean(name: str) -> float | None:
        found = values(name)
        return sum(found) / len(found) if found else None

    power, heat = values("power_watts"), values("temperature_celsius")
    network = [newest(series.columns.get(name, ())) for name in ("nic_transmit", "nic_receive")]
    known = [rate for rate in network if rate is not None]
    course = series.columns
    return [
        _tile(view, "nodes.tile.gpus", f"{row.gpus_reporting} / {row.gpus}", (), view.t("nodes.tile.reporting")),
        _ratio(view, "kernel_active_ratio", mean("kernel_active_ratio"), course.get("kernel_active", ())),
        _ratio(view, "tensor_active_ratio", mean("tensor_active_ratio"), course.get("tensor_active", ())),
        _tile(view, "nodes.tile.power", wording.si(sum(power) if power else None, "W"),
              course.get("node_power_watts", ()),
              view.t("nodes.tile.all_gpus")),
        _tile(view, "nodes.tile.heat", value_words("temperature_celsius", max(heat, default=None)),
              course.get("hottest_celsius", ()), view.t("nodes.tile.hottest")),
        _tile(view, "nodes.tile.network", wording.si(sum(known) if known else None, "B/s"),
              (), view.t("nodes.tile.both")),
    ]  # fmt: skip


def gpu_tiles(page: GpuPage, view: View) -> list[Component]:
    """Activity, MFU of its job, memory, power, heat."""
    values, course = page.row.values, page.series.columns
    memory = page.row.memory_total_bytes
    total = "" if memory is None else view.t("nodes.tile.of_memory", total=f"{memory / 2**30:,.0f} GiB")
    clock = view.t("nodes.tile.at_clock", clock=value_words("sm_clock_hertz", values.get("sm_clock_hertz")))
    return [
        _ratio(view, "kernel_active_ratio", values.get("kernel_active_ratio"), course.get("kernel_active", ())),
        _ratio(view, "tensor_active_ratio", values.get("tensor_active_ratio"), course.get("tensor_active", ())),
        _ratio(view, "mfu_ratio", values.get("mfu_ratio"), (), view.t("nodes.tile.of_job")),
        _ratio(view, "memory_used_ratio", values.get("memory_used_ratio"), course.get("memory_used_ratio", ()), total),
        _tile(view, "nodes.tile.power", value_words("power_watts", values.get("power_watts")),
              course.get("power_watts", ()), clock),
        _tile(view, "nodes.tile.heat", value_words("temperature_celsius", values.get("temperature_celsius")),
              course.get("temperature_celsius", ())),
    ]  # fmt: skip


def _ratio(
    view: View, name: str, value: float | None, course: tuple[float | None, ...], left: str = ""
) -> Component:
    number, unit = wording.number(None if value is None else value * 100, 1), "" if value is None else "%"
    text = TileText(title=view.t(f"nodes.metric.{name}"), value=number, unit=unit, left=left)
    return tiles.tile(text, tiles.bullet(value, None, 1.0, view), view, course)


def _tile(view: View, key: str, words: str, course: tuple[float | None, ...], left: str = "") -> Component:
    """A tile of an amount; its unit stands smaller behind it."""
    value, _, unit = words.partition(" ") if words.count(" ") == 1 else (words, "", "")
    text = TileText(title=view.t(key), value=value, unit=unit, left=left)
    return tiles.tile(text, tiles.no_gauge(), view, course)


def newest(values: tuple[float | None, ...], over: int = 12) -> float | None:
    """The mean of the newest known values; None where there is none."""
    known = [value for value in values[-over:] if value is not None]
    return sum(known) / len(known) if known else None
