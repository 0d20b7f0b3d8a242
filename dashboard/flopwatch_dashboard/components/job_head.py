"""The top of the Job page: who and what the job is, and its figures as tiles."""

from urllib.parse import quote, urlencode

from dash import html
from dash.development.base_component import Component

from flopwatch.query import Job, JobRow, Standing
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import parts, phrases, tiles
from flopwatch_dashboard.components.tiles import TileText
from flopwatch_dashboard.view import View

STATES = {
    "running": ("check", "good"),
    "waiting": ("info", "info"),
    "stalled": ("warning", "warning"),
    "ended": ("ended", "muted"),
}


def heading(row: JobRow, view: View) -> list[Component]:
    """Name, state, and what is known of the job."""
    shape, tone = STATES[row.state]
    state = html.Span(
        [parts.icon(shape), html.Span(view.t(f"job_state.{row.state}"))], className=f"sev sev-{tone}"
    )
    facts = [
        row.scheduler_job_id and f"{row.scheduler} {row.scheduler_job_id}",
        row.user,
        phrases.gpus_long(row, view),
        (row.gpu_model or "").removeprefix("NVIDIA "),
        row.kind,
        row.trainer and view.t("job.trainer", trainer=row.trainer),
    ]
    words = " · ".join(fact for fact in facts if fact)
    return [html.H1(row.name), state, html.Span(words, className="sub", title=row.job_id), _links(row, view)]


def _links(row: JobRow, view: View) -> Component:
    """Where else to read about the job: its report, and the trainer's own dashboard where one was declared."""
    query = urlencode({"format": "html", "language": view.lang})
    address = f"/api/v1/reports/jobs/{quote(row.job_id, safe='')}?{query}"
    links = [
        html.A(
            view.t("job.report"),
            href=address,
            target="_blank",
            className="more",
            title=view.t("job.report_hint"),
        ),
        html.Button(view.t("job.print"), className="more save", **{"data-print": "1"}),
    ]
    if row.tracker_url is not None:
        hint = view.t("job.tracker_hint", url=row.tracker_url)
        links.insert(
            0,
            html.A(
                view.t("job.tracker"),
                href=row.tracker_url,
                target="_blank",
                rel="noopener noreferrer",
                className="more",
                title=hint,
            ),
        )
    return html.Span(links, className="c-l")


def job_tiles(job: Job, view: View) -> list[Component]:
    """Step MFU, wall MFU, step time, tokens per second, waste."""
    return [_mfu(job, view), _wall(job, view), _step(job, view), _tokens(job, view), _waste(job, view)]


def _percent_tile(value: float | None) -> tuple[str, str]:
    return wording.number(None if value is None else value * 100, 1), "" if value is None else "%"


def _mfu(job: Job, view: View) -> Component:
    figure, target = job.row.mfu, job.row.target
    value, unit = _percent_tile(figure.value_ratio)
    left = phrases.basis(figure, view)
    if figure.value_ratio is not None:
        left = f"{left} · {phrases.convention(figure.convention, view)}"
    is_estimate = figure.basis == "hardware"
    wanted = (
        view.t("target.none")
        if target.ratio is None
        else view.t("tile.target", target=phrases.target(target, view))
    )
    text = TileText(
        title=view.t("job.estimate" if is_estimate else "job.step_mfu"),
        value=f"≈ {value}" if is_estimate else value,
        unit=unit,
        hint=f"{phrases.basis_hint(figure, view)} · {view.t('target.' + target.source)}",
        left=left,
        right=wanted,
    )
    top = max(0.6, (figure.value_ratio or 0.0) * 1.1, (target.ratio or 0.0) * 1.1)
    return tiles.tile(text, tiles.bullet(figure.value_ratio, target.ratio, top, view), view, job.row.trend)


def _wall(job: Job, view: View) -> Component:
    step, wall = job.row.mfu.measured_ratio, job.row.wall_mfu_ratio
    value, unit = _percent_tile(wall)
    lost = (
        "" if step is None or wall is None else view.t("job.gap", gap=wording.number((step - wall) * 100, 1))
    )
    text = TileText(
        title=view.t("job.wall_mfu"), value=value, unit=unit, hint=view.t("job.wall_mfu_hint"), left=lost
    )
    top = max(0.6, (wall or 0.0) * 1.1, (step or 0.0) * 1.1)
    return tiles.tile(text, tiles.bullet(wall, step, top, view), view)


def _step(job: Job, view: View) -> Component:
    p50, p90, p99 = (wording.step_time(job.step_percentiles.get(name)) for name in ("p50", "p90", "p99"))
    number, _, unit = p50.partition(" ")
    text = TileText(
        title=view.t("job.step_time"), value=number, unit=unit, left=view.t("job.step_tail", p90=p90, p99=p99)
    )
    return tiles.tile(text, tiles.no_gauge(), view, job.steps.columns.get("step_seconds", ()))


def _tokens(job: Job, view: View) -> Component:
    figure = job.row.mfu
    rate, gpus = figure.tokens_per_second, figure.gpus
    a_gpu = wording.si(rate / gpus) if rate is not None and gpus else wording.UNKNOWN
    number, _, prefix = wording.si(rate).partition(" ")
    text = TileText(
        title=view.t("job.tokens"), value=number, unit=prefix, left=view.t("job.tokens_gpu", rate=a_gpu)
    )
    return tiles.tile(text, tiles.no_gauge(), view)


def _waste(job: Job, view: View) -> Component:
    ledger, status = job.ledger, job.status
    capacity = ledger.capacity_gpu_milliseconds
    share = ledger.waste_gpu_milliseconds / capacity if capacity else None
    priced = status.price_per_gpu_hour is not None
    if "ledger" in status.unavailable:
        return tiles.tile(TileText(title=view.t("job.waste"), value=wording.UNKNOWN), tiles.no_gauge(), view)
    text = TileText(
        title=view.t("job.waste"),
        value=wording.hours(ledger.waste_gpu_milliseconds),
        unit=view.t("unit.gpu_hours"),
        hint=view.t("tile.waste_hint"),
        left=view.t("tile.waste_share", share=wording.percent(share, 0), capacity=wording.hours(capacity)),
        right=wording.money(ledger.waste_money, status.currency) if priced else "",
    )
    return tiles.tile(text, tiles.waste_bar(ledger, view), view)


def standing(job: Job, view: View) -> list[Component]:
    """Where the MFU stands, in words that need no background; nothing without one."""
    found = job.standing
    if found is None:
        return []
    low, high = (wording.percent(ratio, 0) for ratio in (found.ceiling_low_ratio, found.ceiling_high_ratio))
    sentences = [view.t("standing.ceiling", low=low, high=high)]
    if found.model_class is not None:
        sentences.append(_published(found, view))
    kernel = job.row.kernel_active_ratio
    if kernel is not None:
        sentences.append(view.t("standing.smi", kernel=wording.percent(kernel, 0)))
    return [html.P(" ".join(sentences), className="standing")]


def _published(found: Standing, view: View) -> str:
    """The range of published runs of the class on the GPU, or that none are known."""
    where = {
        "model_class": view.code("model_class", found.model_class or ""),
        "product": found.product,
        "dtype": found.dtype,
    }
    if found.place is None:
        return view.t("standing.unpublished", **where)
    return view.t(
        "standing.published",
        **where,
        low=wording.percent(found.published_low_ratio, 0),
        high=wording.percent(found.published_high_ratio, 0),
        rows=found.published_rows,
        value=wording.percent(found.ratio),
        place=view.t(f"place.{found.place}"),
    )


def waiting(job: Job, view: View) -> list[Component]:
    """What to do while no step was read; nothing once there are steps."""
    if job.row.mfu.reason not in ("waiting", "no_steps") or "steps" in job.status.unavailable:
        return []
    steps = (view.t("empty.no_steps_next"), view.t("empty.no_steps_command"))
    return [html.Section(parts.next_step(view.t("empty.no_steps"), steps), className="card")]
