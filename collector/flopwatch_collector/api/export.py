"""``GET /api/v1/export/….csv``: the figures of the pages, in base units."""

import asyncio
import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Depends, Response

from flopwatch import query
from flopwatch.answers.nodes import GPU_VALUES, HEALTHS
from flopwatch_collector.api.errors import documented
from flopwatch_collector.api.query import Asked, AskedOfTeam, CallerNeed, each_once, found

SIMULATED = "SIMULATED"
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
Row = dict[str, object]

JOB_FIELDS = (
    "job_id", "name", "cluster", "user", "account", "kind", "state", "scheduler", "scheduler_job_id", "gpus",
    "gpus_basis", "gpus_observed", "nodes", "gpu_model", "wall_mfu_ratio", "kernel_active_ratio",
    "tensor_active_ratio", "start_seconds", "end_seconds", "last_step", "last_step_seconds", "waste_money", "trainer",
)  # fmt: skip


def router(source: query.Query, caller: CallerNeed) -> APIRouter:
    """The tables."""
    api = APIRouter(
        prefix="/api/v1/export", tags=["export"], dependencies=[Depends(caller), Depends(each_once)]
    )
    responses: dict[int | str, dict[str, Any]] = {
        200: {"content": {"text/csv": {"schema": {"type": "string"}}}, "description": "CSV in UTF-8."},
        **documented(401, 403, 404, 422, 429, 500),
    }

    @api.get("/ledger.csv", response_class=Response, responses=responses)
    async def ledger(asked: AskedOfTeam) -> Response:
        """Where GPU time went, a row a bucket: all of today's, or a team's of the range."""
        return await asyncio.to_thread(
            lambda: _csv("ledger", _of_team(source.fleet(asked), asked.team), ledger_rows)
        )

    @api.get("/days.csv", response_class=Response, responses=responses)
    async def days(asked: AskedOfTeam) -> Response:
        """Utilisation of the last 30 days, a row a day: the fleet's, or of what a team held."""
        return await asyncio.to_thread(
            lambda: _csv("days", _of_team(source.fleet(asked), asked.team), day_rows)
        )

    @api.get("/jobs.csv", response_class=Response, responses=responses)
    async def jobs(asked: Asked) -> Response:
        """Running jobs and those that ended within the range, a row a job."""
        return await asyncio.to_thread(lambda: _csv("jobs", source.jobs(asked), job_rows))

    @api.get("/gpus.csv", response_class=Response, responses=responses)
    async def gpus(asked: Asked) -> Response:
        """Every GPU as it is now, a row a GPU."""
        return await asyncio.to_thread(lambda: _csv("gpus", source.nodes(asked), gpu_rows))

    return api


def _of_team(fleet: query.Fleet, team: str | None) -> query.Fleet:
    """The page with a team's ledger and days in place of the fleet's, where one is asked for.

    Raises:
        Refused: 404, there is no ledger of this team.
    """
    if team is None:
        return fleet
    own = found(fleet.team, f"ledger of team {team[:80]!r}")
    return replace(fleet, ledger_today=own.ledger, days=own.days)


def ledger_rows(fleet: query.Fleet) -> Iterator[Row]:
    """A row a bucket; their GPU seconds add up to the capacity."""
    ledger = fleet.ledger_today
    for amount in ledger.classes:
        buckets = amount.buckets or {"": amount.gpu_milliseconds}
        for bucket, milliseconds in buckets.items():
            share = milliseconds / amount.gpu_milliseconds if amount.gpu_milliseconds else 0.0
            yield {
                "start_seconds": ledger.start_seconds,
                "end_seconds": ledger.end_seconds,
                "class": amount.name,
                "bucket": bucket,
                "gpu_seconds": milliseconds / 1000.0,
                "money": None if amount.money is None else round(amount.money * share, 6),
                "currency": fleet.status.currency,
            }


def day_rows(fleet: query.Fleet) -> Iterator[Row]:
    """A row a day."""
    for day in fleet.days:
        yield {
            "day": day.day,
            "time_zone": fleet.status.time_zone,
            "billable_ratio": day.billable_ratio,
            "unknown_ratio": day.unknown_ratio,
            "capacity_gpu_seconds": day.capacity_gpu_milliseconds / 1000.0,
            "complete": day.complete,
            "valid": day.valid,
        }


def job_rows(jobs: query.Jobs) -> Iterator[Row]:
    """A row a job; an MFU never without its basis."""
    for row in jobs.rows:
        plain: Row = {name: getattr(row, name) for name in JOB_FIELDS}
        yield {
            **plain,
            "mfu_ratio": row.mfu.measured_ratio,
            "hardware_estimate_ratio": row.mfu.value_ratio if row.mfu.basis == "hardware" else None,
            "mfu_convention": row.mfu.convention,
            "mfu_basis": row.mfu.basis,
            "mfu_reason": row.mfu.reason,
            "mfu_palm_ratio": row.mfu.palm_ratio,
            "mfu_gpu_peak_flops": row.mfu.peak_flops,
            "mfu_peak_source": row.mfu.peak_source,
            "mfu_dtype": row.mfu.dtype,
            "mfu_dtype_basis": row.mfu.dtype_basis,
            "mfu_run_dtype": row.mfu.run_dtype,
            "mfu_run_dtype_ratio": row.mfu.run_dtype_ratio,
            "mfu_flops_per_token": row.mfu.flops_per_token,
            "mfu_palm_flops_per_token": row.mfu.palm_flops_per_token,
            "mfu_tokens_per_second": row.mfu.tokens_per_second,
            "mfu_tokens": row.mfu.tokens,
            "mfu_left_out": " ".join(row.mfu.left_out),
            "mfu_shape_origin": row.mfu.shape_origin,
            "mfu_window_start_seconds": row.mfu.window_start_seconds,
            "mfu_window_end_seconds": row.mfu.window_end_seconds,
            "reported_mfu_ratio": row.mfu.reported_ratio,
            "findings": row.findings,
            "target_mfu_ratio": row.target.ratio,
            "target_source": row.target.source,
            "waste_gpu_seconds": row.waste_gpu_milliseconds / 1000.0,
            "currency": jobs.status.currency,
        }


def gpu_rows(nodes: query.Nodes) -> Iterator[Row]:
    """A row a GPU: its node, what its time counts as, its job and the newest values."""
    gpus = nodes.gpus
    for at, place in enumerate(gpus.node):
        row, job = nodes.nodes[place], gpus.job[at]
        yield {
            "cluster": row.cluster,
            "rack": row.rack,
            "node": row.node,
            "gpu_index": gpus.index[at],
            "gpu_model": row.gpu_model,
            "reporting": gpus.reporting[at],
            "bucket": nodes.buckets[gpus.bucket[at]] if nodes.buckets else None,
            "health": HEALTHS[gpus.health[at]],
            "job_id": nodes.jobs[job].job_id if job >= 0 else None,
            "job": nodes.jobs[job].name if job >= 0 else None,
            **{name: gpus.values[name][at] if name in gpus.values else None for name in GPU_VALUES},
        }


def _csv(
    name: str, answer: query.Fleet | query.Jobs | query.Nodes, rows: Callable[[Any], Iterable[Row]]
) -> Response:
    simulated = answer.status.simulated
    text = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for row in rows(answer):
        marked = {"simulated": SIMULATED if simulated else "", **row}
        if writer is None:
            writer = csv.DictWriter(text, list(marked), lineterminator="\r\n")
            writer.writeheader()
        writer.writerow({key: cell(value) for key, value in marked.items()})
    if writer is None:
        text.write(f"simulated\r\n{SIMULATED}\r\n" if simulated else "simulated\r\n")
    filename = f"flopwatch-{'simulated-' if simulated else ''}{name}.csv"
    return Response(
        text.getvalue(),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{filename}"'},
    )


def cell(value: object) -> object:
    """A value for a spreadsheet: text from outside never is a formula, unknown is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return "'" + value
    return value
