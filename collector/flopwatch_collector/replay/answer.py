"""What a replay came to: jobs, ledger, metrics and findings, as values for JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from flopwatch.answers.goodput import Goodput
from flopwatch_collector.accounting import Accounting
from flopwatch_collector.bookkeeping.prices import prices_of
from flopwatch_collector.compute.barely_used import barely_used_gpu_milliseconds
from flopwatch_collector.compute.buckets import WINDOW_SECONDS, distinct
from flopwatch_collector.compute.classes import is_billable, is_leased
from flopwatch_collector.compute.days import day_of, day_start
from flopwatch_collector.compute.doubts import Hardware, doubts
from flopwatch_collector.compute.goodput import together
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.mfu import wall_ratio
from flopwatch_collector.config import Settings
from flopwatch_collector.model import Columns, FleetState, JobRecord
from flopwatch_collector.replay import amounts
from flopwatch_collector.replay.amounts import Answer

SCHEMA = 1
DAY_SECONDS = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Replayed:
    """A scratch collector's books at the end of the data."""

    accounting: Accounting
    state: FleetState
    settings: Settings
    start_seconds: float
    end_seconds: float

    def rows(self) -> Columns:
        """All ledger rows of the asked time."""
        return self.accounting.ledger_rows(self.first_window_seconds, self.end_seconds)

    @property
    def first_window_seconds(self) -> float:
        """Begin of the first window; capacity may begin inside it."""
        return self.start_seconds // WINDOW_SECONDS * WINDOW_SECONDS


def answer_of(replayed: Replayed) -> Answer:
    """Jobs, ledger, metrics and findings of the asked time."""
    rows = replayed.rows()
    known = distinct(rows["job"][rows["useful_gpu_milliseconds"] > 0])
    goodputs = _goodputs(replayed, rows)
    jobs = [
        _job(replayed, record, take(rows, rows["job"] == number), goodputs.get(number))
        for number, record in sorted(replayed.state.jobs.items())
    ]
    fleet = together(each for each in goodputs.values() if each.run_gpu_milliseconds)
    zone = ZoneInfo(replayed.settings.collector.time_zone)
    return {
        "schema": SCHEMA,
        "simulated": replayed.state.simulated,
        "start_seconds": replayed.start_seconds,
        "end_seconds": replayed.end_seconds,
        "start": datetime.fromtimestamp(replayed.start_seconds, zone).isoformat(),
        "end": datetime.fromtimestamp(replayed.end_seconds, zone).isoformat(),
        "time_zone": replayed.settings.collector.time_zone,
        "gpus": sum(1 for gpu in replayed.state.gpus.values() if gpu.to_seconds is None),
        "nodes": len(replayed.state.nodes),
        "ledger": _ledger(replayed, rows, known),
        "metrics": {**amounts.metrics(rows, known), **_rollup_metrics(replayed, rows)},
        "goodput": None if fleet is None else goodput_answer(fleet),
        "jobs": jobs,
        "findings": [finding for job in jobs for finding in job["findings"]],
    }


def _ledger(replayed: Replayed, rows: Columns, known: Any) -> Answer:
    state = replayed.state
    rates = prices_of(replayed.settings.costs).rates(state.nodes)
    made = amounts.amounts(rows)
    jobs = {0: "", **{number: job.job_id for number, job in state.jobs.items()}}
    return {
        **made,
        "money": amounts.money_by_bucket(rows, rates) if rates.known else None,
        "currency": replayed.settings.costs.currency,
        "step_split_gpu_seconds": amounts.step_split(rows, known),
        "by_node": amounts.grouped(rows, rows["node"], lambda number: state.nodes[number].name),
        "by_job": amounts.grouped(rows, rows["job"], lambda number: jobs[number]),
        "by_user": _by_person(replayed, rows, "user"),
        "by_account": _by_person(replayed, rows, "account"),
        "by_cluster": _by_cluster(state, rows),
        "by_day": _by_day(replayed),
    }


def _by_person(replayed: Replayed, rows: Columns, attribute: str) -> dict[str, Answer]:
    """By user or account; time of no job is under the empty name, of jobs without one under ``unknown``."""
    names = {0: ""}
    for number, job in replayed.state.jobs.items():
        names[number] = getattr(job, attribute) or "unknown"
    return _by_name(rows, names, "job")


def _by_cluster(state: FleetState, rows: Columns) -> dict[str, Answer]:
    return _by_name(rows, {number: node.cluster for number, node in state.nodes.items()}, "node")


def _by_name(rows: Columns, names: Mapping[int, str], column: str) -> dict[str, Answer]:
    ordered = sorted(set(names.values()))
    place = {number: ordered.index(name) for number, name in names.items()}
    keys = np.array([place[number] for number in rows[column].tolist()], dtype=np.int64)
    return amounts.grouped(rows, keys, lambda index: ordered[index])


def _by_day(replayed: Replayed) -> dict[str, Answer]:
    """By local calendar day."""
    zone = ZoneInfo(replayed.settings.collector.time_zone)
    edges = [replayed.first_window_seconds]
    while edges[-1] < replayed.end_seconds:
        following = day_start(
            day_of(day_start(day_of(edges[-1], zone), zone) + 1.5 * DAY_SECONDS, zone), zone
        )
        edges.append(min(following, replayed.end_seconds))
    result = {}
    for start, end in pairwise(edges):
        rows = replayed.accounting.ledger_rows(start, end)
        found = {name: amount for name, amount in amounts.gpu_seconds(rows).items() if amount}
        total = amounts.seconds(int(rows["gpu_milliseconds"].sum()))
        result[day_of(start, zone).isoformat()] = {"capacity_gpu_seconds": total, "gpu_seconds": found}
    return result


def _rollup_metrics(replayed: Replayed, rows: Columns) -> Answer:
    """What rollups of jobs add: the fleet's MFU, and U_bill with barely used time left out."""
    rollups = replayed.accounting.job_rollups(replayed.first_window_seconds, replayed.end_seconds)
    barely = barely_used_gpu_milliseconds(rollups)
    billable = int(rows["gpu_milliseconds"][is_billable(rows)].sum())
    capacity = int(rows["gpu_milliseconds"].sum())
    return {
        "fleet_training_mfu": wall_ratio(rollups),
        "barely_used_gpu_seconds": None if barely is None else amounts.seconds(barely),
        "U_bill_without_barely_used": None
        if barely is None
        else amounts.ratio(max(0, billable - barely), capacity),
    }


def _goodputs(replayed: Replayed, rows: Columns) -> dict[int, Goodput]:
    """Of every instrumented job."""
    found = {}
    for number in sorted({*np.unique(rows["job"]).tolist()} - {0}):
        goodput = replayed.accounting.goodput(
            number, replayed.first_window_seconds, replayed.end_seconds, replayed.end_seconds
        )
        if goodput is not None:
            found[number] = goodput
    return found


def goodput_answer(goodput: Goodput) -> Answer:
    """A goodput as values, GPU time in GPU-seconds, its interruptions with their times."""
    made = asdict(goodput)
    for name in [name for name in made if name.endswith("_gpu_milliseconds")]:
        value = made.pop(name)
        made[name.replace("milliseconds", "seconds")] = None if value is None else amounts.seconds(value)
    made["interruptions"] = [
        {
            **asdict(each),
            "detect_seconds": each.detect_seconds,
            "isolate_seconds": each.isolate_seconds,
            "resume_seconds": each.resume_seconds,
            "outage_seconds": each.outage_seconds,
        }
        for each in goodput.interruptions
    ]
    made["gains"] = [
        {"name": gain.name, "ratio": gain.ratio, "gpu_seconds": amounts.seconds(gain.gpu_milliseconds)}
        for gain in goodput.gains
    ]
    return made


def _job(replayed: Replayed, job: JobRecord, rows: Columns, goodput: Goodput | None) -> Answer:
    """One job; its ledger is of the GPU time it held."""
    accounting = replayed.accounting
    figure = accounting.figure(job.number, replayed.end_seconds)
    basis = accounting.basis(job.number)
    known = distinct(rows["job"][rows["useful_gpu_milliseconds"] > 0])
    rolled = accounting.job_rollups(replayed.first_window_seconds, replayed.end_seconds, [job.number])
    held = take(rows, is_leased(rows))
    doubtful = () if basis is None or figure is None else doubts(basis, figure, Hardware())
    return {
        "job_id": job.job_id,
        "name": job.name,
        "scheduler_job_id": job.scheduler_job_id,
        "cluster": job.cluster,
        "user": job.user,
        "account": job.account,
        "kind": job.kind,
        "start_seconds": job.start_seconds,
        "end_seconds": job.end_seconds,
        "exit_reason": job.exit_reason,
        "nodes": sorted({replayed.state.nodes[part.node].name for part in job.parts}),
        "gpus": None if figure is None else figure.gpus,
        "instrumented": goodput is not None,
        "leased_gpu_seconds": amounts.seconds(int(held["gpu_milliseconds"].sum())),
        "gpu_seconds": amounts.gpu_seconds(rows),
        "reasons_gpu_seconds": amounts.amounts(rows)["reasons_gpu_seconds"],
        "step_split_gpu_seconds": amounts.step_split(rows, known),
        "mfu": None if figure is None else figure.value_ratio,
        "mfu_basis": None if figure is None else figure.basis,
        "mfu_reason": None if figure is None else figure.reason,
        "mfu_over_lease": wall_ratio(rolled),
        "ETTR": None if goodput is None else goodput.ettr_ratio,
        "ETTR_upper": None if goodput is None else goodput.ettr_upper_ratio,
        "goodput": None if goodput is None else goodput_answer(goodput),
        "findings": [
            {"job_id": job.job_id, "code": code, "text": text, "values": values}
            for code, text, values in (*job.findings, *((d.code, d.text, d.values) for d in doubtful))
        ],
    }
