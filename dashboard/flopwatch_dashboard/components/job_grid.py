"""The table of all jobs: its columns, and a job as a row of values that the browser formats, sorts and filters."""

import functools
import math
import string
from typing import Any
from urllib.parse import quote

from dash.development.base_component import Component

from flopwatch.query import JobRow, Status
from flopwatch_dashboard import wording
from flopwatch_dashboard.components import grid_table, phrases
from flopwatch_dashboard.view import View

GRID_ID = "jobs-grid"
TREND_POINTS = 24
DIGITS = string.digits + string.ascii_lowercase
POINTS = tuple(high + low for high in DIGITS for low in DIGITS)
"""A course's thousandths in two characters, in base 36."""
UNKNOWN_POINT = ".."
MOST_COURSES = 4_096
"""Courses that are remembered: few jobs have a new one with each refresh."""
SHORT = {"mfu-short": "params.data.short"}
"""Below the target: said by a triangle and a colour."""
TEXT, NUMBER = "agTextColumnFilter", "agNumberColumnFilter"


def grid() -> Component:
    """The empty table."""
    return grid_table.grid(
        GRID_ID,
        row_height=34,
        suppressColumnVirtualisation=False,
        tooltipShowDelay=300,
        alwaysMultiSort=False,
    )


def columns(status: Status, view: View) -> list[dict[str, Any]]:
    """The columns in the reader's language; the first stays in sight, money only where there is a price."""
    defs = [
        _column("name", view, "col.job", 146, cellRenderer="FlopwatchJob", pinned="left"),
        _column("state", view, "col.state", 130, cellRenderer="FlopwatchState"),
        _number("gpus", view, "col.gpus", 104, shows="params.data.gpus_text", tooltipField="gpus_hint"),
        _number("mfu", view, "col.mfu", 78, shows="mfu(params.data)", cellClassRules=SHORT),
        _column("basis", view, "col.basis", 102, cellRenderer="FlopwatchBadge", tooltipField="basis_hint"),
        _number("wall", view, "col.wall_mfu", 74, shows="percent(params.value)"),
        _number(
            "target", view, "col.target", 100, shows="params.data.target_text", tooltipField="target_hint"
        ),
        _column("trend", view, "col.trend", 88, filter=False, cellRenderer="FlopwatchTrend", sortable=False),
        _number("kernel", view, "col.kernel", 92, shows="percent(params.value)"),
        _number("tensor", view, "col.tensor", 94, shows="percent(params.value)"),
        _number("waste", view, "col.waste", 98, shows="hours(params.value)"),
        _column("cause", view, "col.cause", 166, cellRenderer="FlopwatchCause", tooltipField="cause"),
        _column("user", view, "col.user", 80),
        _column("model", view, "col.model", 150),
        _column("kind", view, "col.kind", 90),
        _column("trainer", view, "col.trainer", 100),
        _number("started", view, "col.started", 140, shows="params.data.started_text"),
        _number("last_step", view, "col.last_step", 92, shows="count(params.value)"),
        _number("findings", view, "col.findings", 86, shows="count(params.value)"),
        _number("palm", view, "col.palm", 96, shows="percent(params.value)"),
        _column("cluster", view, "col.cluster", 100),
    ]
    if status.price_per_gpu_hour is not None:
        defs.insert(11, _number("money", view, "col.money", 72, shows="params.data.money_text"))
    return defs


def _column(field: str, view: View, key: str, width: int, **more: Any) -> dict[str, Any]:
    return {"field": field, "headerName": view.t(key), "width": width, "filter": TEXT, **more}


def _number(field: str, view: View, key: str, width: int, **more: Any) -> dict[str, Any]:
    """A column that sorts by its number; ``shows`` is the browser's expression for its text."""
    numeric = {"type": "rightAligned", "filter": NUMBER, "valueFormatter": {"function": more.pop("shows")}}
    return _column(field, view, key, width, **numeric, **more)


def row(job: JobRow, status: Status, view: View) -> dict[str, Any]:
    """A job as a row: numbers rounded to what is shown, so that a row changes only when it looks different.

    The browser adds the reader's settings to ``href``.
    """
    return {
        "id": job.job_id,
        "name": job.name,
        "href": f"{view.prefix}jobs/{quote(job.job_id)}",
        "state": view.t(f"job_state.{job.state}"),
        "state_code": job.state,
        "user": job.user or wording.UNKNOWN,
        "model": (job.gpu_model or wording.UNKNOWN).removeprefix("NVIDIA "),
        "kind": job.kind,
        "trainer": job.trainer or wording.UNKNOWN,
        "cluster": job.cluster,
        "started": job.start_seconds,
        "started_text": wording.moment(job.start_seconds, status.time_zone, view.lang),
        "last_step": job.last_step,
        "findings": job.findings,
        **_gpus(job, view),
        **_mfu(job, view),
        **_waste(job, status, view),
    }


def _gpus(job: JobRow, view: View) -> dict[str, Any]:
    basis = f" · {view.t('gpus_basis.' + job.gpus_basis)}" if job.gpus_basis else ""
    return {
        "gpus": job.gpus if job.gpus is not None else job.gpus_observed,
        "gpus_text": phrases.gpus(job, view),
        "gpus_hint": phrases.gpus_long(job, view) + basis,
    }


def _mfu(job: JobRow, view: View) -> dict[str, Any]:
    words = phrases.basis(job.mfu, view)
    if job.mfu.value_ratio is not None:
        words += f" · {phrases.convention(job.mfu.convention, view)}"
    return {
        "mfu": _rounded(job.mfu.value_ratio, 3),
        "basis": words,
        "basis_hint": phrases.basis_hint(job.mfu, view),
        "wall": _rounded(job.wall_mfu_ratio, 3),
        "target": job.target.ratio,
        "target_text": phrases.target(job.target, view),
        "target_hint": view.t(f"target.{job.target.source}"),
        "kernel": _rounded(job.kernel_active_ratio, 3),
        "tensor": _rounded(job.tensor_active_ratio, 3),
        "trend": course(job.trend),
        "estimate": job.mfu.basis == "hardware",
        "palm": _rounded(job.mfu.palm_ratio, 3),
        "short": job.target.ratio is not None
        and job.mfu.measured_ratio is not None
        and job.mfu.measured_ratio < job.target.ratio,
    }


def _waste(job: JobRow, status: Status, view: View) -> dict[str, Any]:
    return {
        "waste": None
        if "ledger" in status.unavailable
        else _rounded(job.waste_gpu_milliseconds / 3_600_000, 1),
        "money": _rounded(job.waste_money, 0),
        "money_text": wording.money(job.waste_money, status.currency),
        "cause": "" if "ledger" in status.unavailable and not job.cause else phrases.job_cause(job, view),
        "severity": job.cause.severity if job.cause else None,
    }


@functools.lru_cache(maxsize=MOST_COURSES)
def course(trend: tuple[float | None, ...]) -> str:
    """The trend in two characters a point: ``POINTS``, and ``UNKNOWN_POINT`` where it is not known.

    As many points as its drawing can show, the newest always among them.
    """
    stride = max(1, -(-len(trend) // TREND_POINTS))
    newest_first = trend[::-1][::stride]
    return "".join([_point(value) for value in reversed(newest_first)])


def _point(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return UNKNOWN_POINT
    return POINTS[min(len(POINTS) - 1, max(0, round(value * 1_000)))]


def _rounded(value: float | None, digits: int) -> float | None:
    value = wording.finite(value)
    return None if value is None else round(value, digits)
