"""What was measured of the own fleet over 30 days: its efficiency, what a bill would have held, its demand."""

from collections.abc import Callable
from datetime import tzinfo

import numpy as np
import numpy.typing as npt

from flopwatch.efficiency import goodput_of
from flopwatch_collector.accounting import Accounting
from flopwatch_collector.compute.buckets import CODE
from flopwatch_collector.compute.classes import is_billable, is_leased
from flopwatch_collector.compute.days import borders
from flopwatch_collector.compute.demand import QUEUE_EVENT, Waiting, waiting_of
from flopwatch_collector.compute.mfu import wall_ratio
from flopwatch_collector.economics.demand import DurationCurve, duration_curve
from flopwatch_collector.economics.efficiency import Measured
from flopwatch_collector.model import Columns, Fleet
from flopwatch_collector.store.port import Store
from flopwatch_collector.views.memo import Memo

MEASURED_SECONDS = 30 * 86_400.0
FRESH_SECONDS = 600.0
HOUR_SECONDS = 3_600.0
DAYS = 31
"""Today and the 30 days before it."""
LARGE_JOB_GPUS = 100
MOST_LARGE_JOBS = 20
Floats = npt.NDArray[np.float64]
STEP_CODES = np.array([CODE[name] for name in ("STEP", "STRAGGLER", "THROTTLE", "EXPOSED_COMM")])


class MeasuredFleet:
    """Reads the accounting of 30 days, at most once in ten minutes. Safe for threads."""

    def __init__(
        self, accounting: Accounting, store: Store, fleet: Fleet, zone: tzinfo, clock: Callable[[], float]
    ) -> None:
        self._accounting = accounting
        self._zone = zone
        self._store = store
        self._fleet = fleet
        self._clock = clock
        self._memo = Memo(fresh_seconds=FRESH_SECONDS, oldest_seconds=FRESH_SECONDS)

    def efficiency(self) -> Measured:
        """MFU, goodput and peak of the whole fleet."""
        return self._memo.get("efficiency", 0, self._clock(), self._efficiency)

    def demand(self) -> tuple[DurationCurve, bool]:
        """The duration curve of demand by the hour, and whether the queue is in it."""
        return self._memo.get("demand", 0, self._clock(), self._demand)

    def _efficiency(self) -> Measured:
        now = self._clock()
        start = self._accounting.today_start(now - MEASURED_SECONDS)
        ledger = self._accounting.ledger_rows(start, now)
        return efficiency_of_rows(ledger, self._accounting.job_rollups(start, now, hourly=True))

    def _demand(self) -> tuple[DurationCurve, bool]:
        """Of the valid days: time of which nothing is known is no time without demand."""
        now = self._clock()
        days = zip(self._accounting.days(now, DAYS), borders(now, DAYS, self._zone), strict=True)
        spans = [(start, end) for day, (_, start, end) in days if day.valid and day.complete]
        levels: list[float] = []
        waiting: list[Waiting] = []
        for start, end in spans:
            hours = round((end - start) / HOUR_SECONDS)
            found = self._waiting(start, end)
            running = running_by_hour(self._accounting.job_rollups(start, end, hourly=True), start, hours)
            levels += np.round(running + queued_by_hour(found, start, hours)).tolist()
            waiting += found
        return duration_curve((level, 1.0) for level in levels), bool(waiting)

    def recovery(self) -> tuple[float | None, int | None]:
        """(mean time to repair in seconds, GPUs of the largest job) of the newest large jobs; None without any."""
        return self._memo.get("recovery", 0, self._clock(), self._recovery)

    def _recovery(self) -> tuple[float | None, int | None]:
        now = self._clock()
        since = now - MEASURED_SECONDS
        sizes = {
            number: len({gpu for part in job.parts for gpu in part.gpus})
            for number, job in self._fleet.state().jobs.items()
            if job.end_seconds is None or job.end_seconds >= since
        }
        newest = sorted((number for number, gpus in sizes.items() if gpus >= LARGE_JOB_GPUS), reverse=True)
        outages: list[float] = []
        for number in newest[:MOST_LARGE_JOBS]:
            found = self._accounting.goodput(number, since, now, now)
            ended = () if found is None else found.interruptions
            outages += [each.outage_seconds for each in ended if each.outage_seconds is not None]
        return sum(outages) / len(outages) if outages else None, max(sizes.values(), default=None)

    def _waiting(self, start: float, end: float) -> list[Waiting]:
        clusters = {number: node.cluster for number, node in self._fleet.state().nodes.items()}
        found = waiting_of(self._store.events(start, end, [QUEUE_EVENT]), clusters)
        return [each for stretches in found.values() for each in stretches]


def running_by_hour(rollups: Columns, start: float, hours: int) -> Floats:
    """Mean GPUs that were held in each hour."""
    place = ((rollups["ts"] - start) // HOUR_SECONDS).astype(np.int64)
    held = np.nan_to_num(rollups["gpu_seconds"])
    result: Floats = np.bincount(place, weights=held, minlength=hours)[:hours] / HOUR_SECONDS
    return result


def queued_by_hour(waiting: list[Waiting], start: float, hours: int) -> Floats:
    """Mean GPUs that waited in each hour."""
    result = np.zeros(hours)
    for each in waiting:
        first, last = each.start / 1000.0 - start, each.end / 1000.0 - start
        for hour in range(max(0, int(first // HOUR_SECONDS)), min(hours, int(-(-last // HOUR_SECONDS)))):
            inside = min(last, (hour + 1) * HOUR_SECONDS) - max(first, hour * HOUR_SECONDS)
            result[hour] += each.gpus * max(0.0, inside) / HOUR_SECONDS
    return result


def efficiency_of_rows(ledger: Columns, rollups: Columns) -> Measured:
    """Step MFU, and goodput = kept step time / billable time of jobs whose steps are known."""
    time, jobs = ledger["gpu_milliseconds"], ledger["job"]
    billable, stepping = is_billable(ledger), np.isin(ledger["bucket"], STEP_CODES)
    instrumented = np.isin(jobs, np.unique(jobs[stepping & (jobs > 0) & (time > 0)]))
    whole, known = int(time[billable].sum()), int(time[billable & instrumented].sum())
    done, possible = rollups["steady_flops"], rollups["steady_peak_flop_seconds"]
    both = np.isfinite(done) & np.isfinite(possible)
    peaks, spent = rollups["leased_peak_flop_seconds"], rollups["gpu_seconds"]
    rated = np.isfinite(peaks) & np.isfinite(spent)
    leased = is_leased(ledger)
    mfu = _ratio(float(done[both].sum()), float(possible[both].sum()))
    held = _ratio(int(time[leased & instrumented].sum()), known)
    return Measured(
        mfu=mfu,
        goodput=goodput_of(mfu, wall_ratio(rollups), held),
        peak_tflops=_scaled(_ratio(float(peaks[rated].sum()), float(spent[rated].sum()))),
        coverage_ratio=_ratio(known, whole),
        billed_per_used=_ratio(int(time[leased].sum()), whole),
    )


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _scaled(flops: float | None) -> float | None:
    return None if not flops else flops / 1e12
