"""How the MFU of a job was reckoned, the shape it rests on, and the key of its strip."""

from dash import html
from dash.development.base_component import Component

from flopwatch.query import Job, MfuFigure, Term
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import job_found, phrases
from flopwatch_dashboard.components.tables import table
from flopwatch_dashboard.view import View


def arithmetic(job: Job, view: View) -> Component:
    """The formula, the same with its numbers filled in, and where each number is from; one click away."""
    figure = job.row.mfu
    columns = [(view.t("col.symbol"), False), (view.t("col.meaning"), False), (view.t("col.value"), True)]
    rows = [[term.symbol, _meaning(term, figure, view), _value(term)] for term in job.arithmetic]
    content = [
        html.P(html.Code(view.t("job.formula_estimate" if figure.basis == "hardware" else "job.formula"))),
        html.P(html.Code(substituted(figure)), id="job-arithmetic-line"),
        table(columns, rows) if rows else html.Span(),
        html.Ul([html.Li(line) for line in _origins(job, view)], className="origins"),
    ]
    return html.Details([html.Summary(view.t("job.arithmetic")), *content], className="inline")


def _meaning(term: Term, figure: MfuFigure, view: View) -> str:
    """What a term is, in the reader's language; as the collector says it where its symbol is not known."""
    own = figure.run_dtype or ""
    symbol = (
        term.symbol.removesuffix(f"_{own}") + "_own"
        if own and term.symbol.endswith(f"_{own}")
        else term.symbol
    )
    key = f"term.{symbol}"
    if not view.knows(key):
        return term.meaning
    values = {
        "convention": phrases.convention(figure.convention, view),
        "basis": view.t(f"gpus_basis.{figure.gpus_basis}") if figure.gpus_basis else wording.UNKNOWN,
        "dtype": figure.dtype or wording.UNKNOWN,
        "own": own,
    }
    return view.t(key, **{name: values[name] for name in view.placeholders(key)})


def substituted(figure: MfuFigure) -> str:
    """``4.36e+11 x 1.81e+05 / (256 x 9.894e+14) = 31.2%``, ``n/a`` for what is not known."""
    if figure.basis == "hardware":
        active, clocks = (
            wording.percent(figure.tensor_active_ratio),
            (figure.sm_clock_hertz, figure.clock_hertz),
        )
        clock, peak = (wording.si(value, "Hz", 3) for value in clocks)
        return f"{active} × {clock} ÷ {peak} = {phrases.ratio(figure)}"  # noqa: RUF001 - signs
    flops, rate, peak = (
        _scientific(v) for v in (figure.flops_per_token, figure.tokens_per_second, figure.peak_flops)
    )
    count = figure.gpus if figure.gpus_mean is None else figure.gpus_mean
    gpus = wording.UNKNOWN if count is None else f"{count:.6g}"
    return f"{flops} × {rate} ÷ ({gpus} × {peak}) = {wording.percent(figure.value_ratio, 2)}"  # noqa: RUF001 - signs


def _scientific(value: float | None) -> str:
    value = wording.finite(value)
    return wording.UNKNOWN if value is None else f"{value:.4g}"


def _value(term: Term) -> str:
    if term.value is None or isinstance(term.value, str):
        return term.value or wording.UNKNOWN
    if term.unit == "ratio":
        return wording.percent(term.value, 2)
    shown = f"{term.value:,}" if isinstance(term.value, int) else f"{term.value:.5g}"
    return f"{shown} {term.unit}".rstrip()


def _origins(job: Job, view: View) -> list[str]:
    """Where each figure of the arithmetic is from, and what others say."""
    figure, zone = job.row.mfu, job.status.time_zone
    lines = [phrases.basis_long(figure, view)]
    if figure.gpus_basis:
        lines.append(f"{phrases.gpus_long(job.row, view)} · {view.t('gpus_basis.' + figure.gpus_basis)}")
    if figure.peak_flops is not None:
        told = view.code("dtype_basis", figure.dtype_basis) if figure.dtype_basis else None
        dtype = " · ".join(part for part in (figure.dtype, told) if part)
        peak = wording.si(figure.peak_flops, "FLOP/s")
        lines.append(" · ".join(p for p in (figure.gpu_model, peak, dtype, figure.peak_source) if p))
    if figure.window_start_seconds is not None:
        start, end = (
            wording.moment(t, zone, view.lang)
            for t in (figure.window_start_seconds, figure.window_end_seconds)
        )
        lines.append(view.t("job.window", steps=figure.steps, start=start, end=end))
    if figure.palm_ratio is not None:
        lines.append(view.t("job.palm_line", value=wording.percent(figure.palm_ratio)))
    return [*lines, *_remarks(figure, view)]


def _remarks(figure: MfuFigure, view: View) -> list[str]:
    """What else a reader must know to compare the figure with another."""
    lines = []
    if figure.run_dtype_ratio is not None:
        lines.append(phrases.own_peak(figure, view))
    if figure.gpus_mean is not None:
        lines.append(view.t("figure.changed", gpus=f"{figure.gpus_mean:,.1f}"))
    if figure.tokens is not None:
        steps = wording.number(figure.steps)
        lines.append(view.t("figure.window_tokens", tokens=wording.number(figure.tokens), steps=steps))
    if figure.padded_tokens is not None:
        lines.append(view.t("figure.padding", padded=wording.number(figure.padded_tokens)))
    if figure.left_out:
        lines.append(phrases.left_out(figure, view))
    if figure.clock_basis == "max_clock":
        lines.append(view.t("figure.lower_bound"))
    if figure.reported_ratio is not None:
        lines.append(view.t("job.reported_line", value=wording.percent(figure.reported_ratio)))
    return lines


def shape(job: Job, view: View) -> Component:
    """The model's shape as it was found."""
    facts = job_found.found(job, view)
    if not job.shape:
        return html.Div([html.P(view.t("job.shape_unknown"), className="muted"), *facts])
    items = [html.Div([html.Dt(name), html.Dd(_plain(value, view))]) for name, value in job.shape.items()]
    return html.Div([html.Dl(items, className="shape"), *facts])


def _plain(value: object, view: View) -> str:
    if value is None:
        return wording.UNKNOWN
    if isinstance(value, bool):
        return view.t("yes" if value else "no")
    return f"{value:,}" if isinstance(value, int) else str(value)


def legend(job: Job, view: View) -> Component:
    """The classes of the job's ledger with their colours, hours and shares: the strip's key and its sum."""
    capacity = job.ledger.capacity_gpu_milliseconds
    items = [
        html.Span(
            [
                html.Span(className=f"key sb-{amount.name.replace('_', '-')}"),
                html.Span(view.t(f"class.{amount.name}")),
                html.B(wording.percent(amount.gpu_milliseconds / capacity, 0)),
            ],
            title=f"{wording.hours(amount.gpu_milliseconds)} {view.t('unit.gpu_hours')}",
        )
        for amount in job.ledger.classes
        if capacity > 0 and amount.gpu_milliseconds > 0
    ]
    return html.Div(items, className="keys")
