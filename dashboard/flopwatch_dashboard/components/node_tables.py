"""Tables and lists of a node's or a GPU's page: its GPUs, ports, health, events, and who used it."""

from collections.abc import Sequence

from dash import html
from dash.development.base_component import Component

from flopwatch.answers.nodes import (
    DeclaredRow,
    GpuPage,
    GpuRow,
    Health,
    HealthEvent,
    JobRef,
    LemonInfo,
    NodePage,
    PortRow,
    RanHere,
)
from flopwatch.query import Ledger
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import parts
from flopwatch_dashboard.components.node_words import value_words
from flopwatch_dashboard.components.tables import table
from flopwatch_dashboard.view import View

GPU_COLUMNS = (
    "kernel_active_ratio", "tensor_active_ratio", "mfu_ratio", "memory_used_ratio", "power_watts",
    "temperature_celsius", "sm_clock_hertz",
)  # fmt: skip
SHAPES = {"ok": ("check", "good"), "warning": ("warning", "warning"), "critical": ("critical", "critical"),
          "unknown": ("ended", "muted")}  # fmt: skip


def health_mark(health: Health, words: str) -> Component:
    """A health as shape, words and colour."""
    shape, tone = SHAPES[health]
    return html.Span([parts.icon(shape), html.Span(words)], className=f"sev sev-{tone}", title=words)


def gpu_health(row: GpuRow, view: View) -> Component:
    """What is wrong with a GPU, or that nothing is; why its clock is held down."""
    words = [view.code("nodes.problem", code) for code in row.problems]
    words += [view.t(f"nodes.throttle.{name}") for name in row.throttles if name != "power_cap"]
    if row.reason:
        words.append(row.reason)
    return health_mark(row.health, " · ".join(dict.fromkeys(words)) or view.t(f"nodes.health.{row.health}"))


def gpus(page: NodePage, view: View) -> Component:
    """The node's GPUs with their newest values; those of one that is silent are its last, and pale."""
    if not page.gpus:
        return parts.next_step(view.t("nodes.no_gpus"))
    shown = [name for name in GPU_COLUMNS if any(row.values.get(name) is not None for row in page.gpus)]
    heads = [("GPU", False), (view.t("nodes.health"), False), (view.t("nodes.state_now"), False)]
    heads += [(view.t("col.job"), False), *((view.t(f"nodes.metric_short.{name}"), True) for name in shown)]
    heads += [
        (view.t("nodes.processes"), True),
        (view.t("nodes.ecc"), True),
        (view.t("nodes.remapped"), True),
    ]
    return table(heads, [_gpu(row, shown, view) for row in page.gpus])


def _gpu(row: GpuRow, shown: Sequence[str], view: View) -> list[Component | str]:
    name = str(row.index) if row.index is not None else row.slot or row.uuid
    link = html.A(
        name, href=view.link(f"gpus/{row.uuid}"), title=f"{row.uuid} · {row.slot or ''}", className="name"
    )
    counters = [
        _count(row.values.get(each)) for each in ("process_count", "ecc_uncorrected", "remapped_rows")
    ]
    cells = [value_words(each, row.values.get(each)) for each in shown]
    pale = [html.Span(cell, className="" if row.reporting else "muted") for cell in (*cells, *counters)]
    return [link, gpu_health(row, view), state_mark(row.bucket, view), job_link(row.job, view), *pale]


def state_mark(bucket: str | None, view: View) -> Component:
    """What the GPU's time counts as now."""
    return html.Span(
        wording.UNKNOWN if bucket is None else view.bucket(bucket), className="muted" if not bucket else ""
    )


def job_link(job: JobRef | None, view: View) -> Component:
    """The job, as a link; a dash where there is none, its absence said where it may not be seen."""
    if job is None:
        return html.Span("-", className="muted", title=view.t("nodes.no_job"))
    if not job.job_id:
        return html.Span(view.t("nodes.hidden_job"), className="muted")
    return html.A(
        job.name or job.job_id, href=view.link(f"jobs/{job.job_id}"), className="name", title=job.name
    )


def _count(value: float | None) -> str:
    return wording.UNKNOWN if value is None else wording.number(value)


def ports(rows: Sequence[PortRow], view: View) -> Component:
    """Network ports: link, rates against the line, errors."""
    if not rows:
        return parts.next_step(view.t("nodes.no_ports"))
    heads = [(view.t("nodes.port"), False), (view.t("nodes.link"), False), (view.t("nodes.sent"), True),
             (view.t("nodes.received"), True), (view.t("nodes.of_line"), True), (view.t("nodes.new_errors"), True),
             (view.t("nodes.errors"), True)]  # fmt: skip
    return table(heads, [_port(row, view) for row in rows])


def _port(row: PortRow, view: View) -> list[Component | str]:
    rate, line = wording.si(row.link_rate_bits_per_second, "b/s", 0), row.link_rate_bits_per_second
    if row.link_up is None:
        link = health_mark("unknown", view.t("nodes.link_unknown"))
    else:
        words = view.t("nodes.link_up", rate=rate) if row.link_up else view.t("nodes.link_down")
        link = health_mark("ok" if row.link_up else "critical", words)
    rates = [
        each for each in (row.transmit_bytes_per_second, row.receive_bytes_per_second) if each is not None
    ]
    share = max(rates) * 8 / line if rates and line else None
    new = row.new_errors
    errors = health_mark("warning", wording.number(new)) if new else _count(new)
    return [
        html.Span(row.port, className="mono", title=view.code("nodes.role", row.role)),
        link,
        wording.si(row.transmit_bytes_per_second, "B/s"),
        wording.si(row.receive_bytes_per_second, "B/s"),
        wording.percent(share, 0),
        errors,
        _count(row.errors),
    ]


def past(page: NodePage | GpuPage, gpu_names: dict[str, str], view: View) -> dict[str, Component]:
    """What happened in the range, ``events`` and ``jobs``; where the source keeps no past, that it tells of none."""
    if "ledger" in page.status.unavailable:
        return {"events": parts.not_told(view), "jobs": parts.not_told(view)}
    return {
        "events": events(page.events, gpu_names, view),
        "jobs": ran(page.jobs, page.status.now_seconds, view),
    }


def ran(rows: Sequence[RanHere], now: float, view: View) -> Component:
    """Jobs that were here, the newest first."""
    if not rows:
        return parts.next_step(view.t("nodes.no_jobs_here"))
    heads = [
        (view.t("col.job"), False),
        (view.t("col.started"), False),
        (view.t("nodes.ending"), False),
        (view.t("col.gpus"), True),
        (view.t("nodes.lasted"), True),
    ]
    return table(heads, [_ran(row, now, view) for row in rows])


def _ran(row: RanHere, now: float, view: View) -> list[Component | str]:
    until = row.end_seconds if row.end_seconds is not None else now
    lasted = None if row.start_seconds is None else until - row.start_seconds
    ending = (
        view.t("nodes.still_runs")
        if row.end_seconds is None
        else row.exit_reason or view.t("nodes.no_reason")
    )
    return [
        job_link(row.job, view),
        wording.moment(row.start_seconds, view.shown_zone, view.lang),
        html.Span(ending, className="name", title=ending),
        wording.number(row.gpus),
        view.duration(lasted),
    ]


def events(rows: Sequence[HealthEvent], gpu_names: dict[str, str], view: View) -> Component:
    """What was said of the hardware, the newest first."""
    if not rows:
        return parts.next_step(view.t("nodes.no_events"))
    return html.Ul([html.Li(_event(row, gpu_names, view)) for row in rows], className="nd-list")


def _event(row: HealthEvent, gpu_names: dict[str, str], view: View) -> list[Component]:
    kind = view.code("nodes.event", row.kind)
    code = f" {row.code}" if row.code is not None else ""
    where = ""
    if row.gpu is not None:
        where = (
            f" · {view.t('nodes.gpu_n', n=gpu_names[row.gpu])}" if row.gpu in gpu_names else f" · {row.gpu}"
        )
    text = f" · {row.text}" if row.text else ""
    return [
        html.Span(wording.moment(row.time_seconds, view.shown_zone, view.lang), className="when"),
        html.Span([html.B(f"{kind}{code}"), f"{where}{text}"]),
    ]


def condition(page: NodePage, view: View) -> list[Component]:
    """The node's health in sentences: what is wrong, what was declared, how often it was at fault."""
    rows: list[Component] = []
    shown = [code for code in page.row.problems if code != "agent"]
    rows += [html.Li(health_mark(_severity(code), view.t(f"nodes.problem_long.{code}"))) for code in shown]
    rows += [html.Li(_declared(each, view)) for each in page.declared]
    rows += [
        html.Li(health_mark("warning", view.t("nodes.agent_gap", gap=gap))) for gap in page.agent_problems
    ]
    if page.lemon is not None:
        rows.append(html.Li(_lemon(page.lemon, view)))
    if not rows:
        rows = [html.Li(health_mark("ok", view.t("nodes.nothing_wrong")))]
        if page.row.health == "unknown":
            rows = [html.Li(health_mark("unknown", view.t("nodes.health_unknown")))]
    return [html.Ul(rows, className="nd-list")]


def _severity(code: str) -> Health:
    if code in ("gpu_lost", "reset_required", "recovery", "alert_critical"):
        return "critical"
    return "unknown" if code == "silent" else "warning"


def _declared(row: DeclaredRow, view: View) -> Component:
    until = "" if row.until_seconds is None else wording.moment(row.until_seconds, view.shown_zone, view.lang)
    words = view.t(
        "nodes.declared_since" if not until else "nodes.declared_until",
        what=view.code("nodes.declared", row.declaration),
        source=view.code("nodes.source", row.source),
        since=wording.moment(row.since_seconds, view.shown_zone, view.lang),
        **({"until": until} if until else {}),
    )
    return html.Span([parts.icon("info"), html.Span(f"{words} {row.text}".strip())], className="sev sev-info")


def _lemon(found: LemonInfo, view: View) -> Component:
    kinds = ", ".join(found.kinds)
    words = view.t("nodes.lemon", incidents=found.incidents, jobs=found.jobs, kinds=kinds)
    if found.keeps_appearing:
        more = view.t("nodes.keeps_appearing", expected=wording.number(found.expected, 1))
        return health_mark("warning", f"{words} {more}")
    return html.Span([parts.icon("info"), html.Span(words)], className="sev sev-muted")


def where_time_went(ledger: Ledger | None, view: View) -> Component:
    """GPU-hours of the range by class, with their share."""
    if ledger is None or not ledger.capacity_gpu_milliseconds:
        return parts.next_step(view.t("nodes.no_ledger"))
    capacity = ledger.capacity_gpu_milliseconds
    rows: list[list[Component | str]] = []
    for amount in ledger.classes:
        if not amount.gpu_milliseconds:
            continue
        top = max(amount.buckets, key=lambda name: amount.buckets[name], default="")
        mark = html.Span(className=f"key sb-{amount.name.replace('_', '-')}")
        rows.append([
            html.Span([mark, view.t(f"class.{amount.name}")]),
            view.bucket(top) if top else "",
            wording.hours(amount.gpu_milliseconds),
            wording.percent(amount.gpu_milliseconds / capacity, 1),
        ])  # fmt: skip
    heads = [(view.t("nodes.class"), False), (view.t("nodes.mostly"), False), (view.t("unit.gpu_hours"), True),
             (view.t("nodes.share"), True)]  # fmt: skip
    return table(heads, rows)
