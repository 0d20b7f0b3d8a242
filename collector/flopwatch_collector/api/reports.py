"""``GET /api/v1/report``, ``/reports/jobs/{job_id}``, ``/budgets`` and ``/goodput``: figures to hand on."""

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Response
from fastapi import Query as Parameter

from flopwatch.answers.budget import Budgets
from flopwatch.answers.goodput import FleetGoodput
from flopwatch.answers.report import JobReport, ReportBy
from flopwatch_collector.api.errors import FieldProblem, Refused, documented
from flopwatch_collector.api.query import CallerNeed, JobId, answers, as_json, each_once, found
from flopwatch_collector.ingest.decode import shorten
from flopwatch_collector.reports.focus import NoPrice
from flopwatch_collector.reports.making import Question
from flopwatch_collector.reports.period import Asked, WrongPeriod, period_of
from flopwatch_collector.reports.service import Format, Reports
from flopwatch_collector.reports.wording import Language

Text = Annotated[str | None, Parameter(max_length=40)]
Last = Annotated[str | None, Parameter(max_length=20, description="`24h`, `7d`, `4w`.")]
Since = Annotated[str | None, Parameter(alias="from", max_length=40, description="Date or time.")]
Until = Annotated[str | None, Parameter(alias="to", max_length=40, description="Date or time.")]
Cluster = Annotated[str | None, Parameter(max_length=253, description="Only this cluster.")]


def router(reports: Reports, caller: CallerNeed) -> APIRouter:
    """Reports as files and values."""
    api = APIRouter(prefix="/api/v1", tags=["reports"], dependencies=[Depends(caller), Depends(each_once)])
    _add_report(api, reports)
    _add_values(api, reports)
    return api


def _add_report(api: APIRouter, reports: Reports) -> None:
    """The report of a period."""

    @api.get("/report", response_class=Response, responses=documented(401, 403, 422, 429, 500))
    async def report(  # noqa: PLR0913, PLR0917 - the parameters of the request
        last: Last = None,
        since: Since = None,
        until: Until = None,
        by: ReportBy = "team",
        cluster: Cluster = None,
        format_: Annotated[Format, Parameter(alias="format")] = "json",
        language: Language = "en",
    ) -> Response:
        """The period's ledger, chargeback, jobs, goodput and verdict as JSON, HTML, CSV, Parquet or FOCUS."""
        start, end = _period(reports, Asked(last=last, start=since, end=until))
        question = Question(start_seconds=start, end_seconds=end, by=by, cluster=cluster)
        try:
            made = await asyncio.to_thread(reports.file, question, format_, language)
        except NoPrice as error:
            problem = FieldProblem(field="format", value="focus", allowed="html, csv, json, parquet")
            raise Refused(422, "invalid", str(error), fields=[problem]) from error
        place = "inline" if format_ in ("html", "json") else "attachment"
        headers = {"Content-Disposition": f'{place}; filename="{made.name}"'}
        return Response(made.content, media_type=made.media, headers=headers)


def _add_values(api: APIRouter, reports: Reports) -> None:
    """Reports of jobs, and budgets."""
    refusals = (401, 403, 422, 429, 500)

    @api.get("/reports/jobs/{job_id}", response_model=None, responses=answers(JobReport, *refusals, 404))
    async def job(
        job_id: JobId,
        format_: Annotated[Literal["json", "html"], Parameter(alias="format")] = "json",
        language: Language = "en",
    ) -> Response:
        """What a job came to; kept when its raw data are gone."""
        made = found(await asyncio.to_thread(reports.job, job_id), f"job {job_id[:80]!r}")
        if format_ == "json":
            return as_json(made)
        return Response(reports.job_html(made, language), media_type="text/html; charset=utf-8")

    @api.get("/budgets", response_model=None, responses=answers(Budgets, 401, 403, 429, 500))
    async def budgets() -> Response:
        """Budgets and quotas: used, forecast, state; and jobs beyond their declared GPU-hours."""
        return as_json(await asyncio.to_thread(reports.budgets.answer))

    @api.get("/goodput", response_model=None, responses=answers(FleetGoodput, *refusals))
    async def goodput(
        last: Last = None, since: Since = None, until: Until = None, cluster: Cluster = None
    ) -> Response:
        """Goodput of a period's runs together: ETTR, interruptions, checkpoints, what faster recovery would bring."""
        start, end = _period(reports, Asked(last=last, start=since, end=until))
        question = Question(start_seconds=start, end_seconds=end, cluster=cluster)
        return as_json(await asyncio.to_thread(reports.goodput, question))


def _period(reports: Reports, asked: Asked) -> tuple[float, float]:
    """The period.

    Raises:
        Refused: 422, it is none.
    """
    try:
        return period_of(asked, reports.clock(), reports.maker.zone)
    except WrongPeriod as error:
        field = FieldProblem(field=error.name, value=shorten(error.value), allowed=error.allowed)
        raise Refused(422, "invalid", str(error), fields=[field]) from error
