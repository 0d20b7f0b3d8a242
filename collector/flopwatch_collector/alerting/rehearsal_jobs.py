"""The past of jobs as facts for a rehearsal, at every point of their series. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from flopwatch.query import Job, Stretch
from flopwatch_collector.compute.detection import baseline
from flopwatch_collector.compute.detection.peers import Suspect
from flopwatch_collector.compute.detection.scores import REPORTS
from flopwatch_collector.facts import Facts, JobFacts
from flopwatch_collector.past import Past
from flopwatch_collector.watched import Spending, WatchedRun

HELD = frozenset(("HELD_IDLE", "HELD_EMPTY"))
HOUR_SECONDS = 3_600.0
REPORT_SECONDS = 300.0


@dataclass(slots=True)
class _Course:
    """One job's past, by the times of its series."""

    job: Job
    place: dict[float, int]
    suspects: dict[float, Suspect]
    """By the end of its window."""
    stretch: int = 0

    def bucket(self, at: float) -> Stretch | None:
        """The stretch that holds the time; times only rise."""
        strip = self.job.strip
        while self.stretch < len(strip) and strip[self.stretch].end_seconds <= at:
            self.stretch += 1
        if self.stretch < len(strip) and strip[self.stretch].start_seconds <= at:
            return strip[self.stretch]
        return None


def past_of_jobs(jobs: Sequence[Job], step: float, past: Past) -> Iterator[Facts]:
    """All jobs at every time that one of them has a point of."""
    suspects: dict[str, dict[float, Suspect]] = {}
    for one in past.suspects:
        suspects.setdefault(one.job_id, {})[one.time_seconds] = one.suspect
    courses = [
        _Course(
            job=job,
            place={at: place for place, at in enumerate(job.series.time_seconds)},
            suspects=suspects.get(job.row.job_id, {}),
        )
        for job in jobs
    ]
    for now in sorted({at for course in courses for at in course.place}):
        found = _with_norms([fact for course in courses if (fact := _facts(course, now, step)) is not None])
        clusters = ",".join(sorted({fact.row.cluster for fact in found}))
        yield Facts(now=now, jobs=found, nodes=(), verdict=None, cluster=clusters)


def _facts(course: _Course, now: float, step: float) -> JobFacts | None:
    """The job as it was; None outside its series."""
    place = course.place.get(now)
    if place is None:
        return None
    job = course.job
    columns = job.series.columns
    mfu, kernel, tensor = (
        _value(columns.get(name), place) for name in ("mfu", "kernel_active", "tensor_active")
    )
    stretch = course.bucket(now)
    row = job.row
    over = row.end_seconds is not None and now >= row.end_seconds
    figure = replace(
        row.mfu,
        value_ratio=mfu,
        basis=row.mfu.basis or "steps+shape",
        window_start_seconds=now - step,
        window_end_seconds=now,
    )
    return JobFacts(
        row=replace(
            row,
            mfu=figure if mfu is not None else replace(figure, window_end_seconds=None),
            kernel_active_ratio=kernel,
            tensor_active_ratio=tensor,
            state="ended" if over else "running",
            cause=None,
        ),
        bucket=None if stretch is None else stretch.bucket,
        bucket_since_seconds=None if stretch is None else stretch.start_seconds,
        steps_since_start=None,
        report_gap_seconds=step,
        data_seconds=now,
        run=replace(_run(job, now), suspects=_reports(course, now)),
    )


def _reports(course: _Course, now: float) -> tuple[Suspect | None, ...]:
    """The suspects of the newest windows that had ended then."""
    newest = now // REPORT_SECONDS * REPORT_SECONDS
    return tuple(course.suspects.get(newest - ago * REPORT_SECONDS) for ago in range(REPORTS - 1, -1, -1))


def _run(job: Job, now: float) -> WatchedRun:
    """What is kept of the run: its launches, the times in which saves blocked it, and GPUs held without work."""
    saves = tuple(
        one.end_seconds - one.start_seconds
        for one in job.strip
        if one.bucket == "CKPT" and one.end_seconds <= now
    )
    begin = job.strip[0].start_seconds if job.strip else now
    gpus = job.row.gpus or job.row.gpus_observed
    return WatchedRun(
        launches=tuple(sorted(
            one.start_seconds for one in job.sessions if one.start_seconds is not None and one.start_seconds <= now
        )),
        launches_without_progress=_stuck(job, now),
        saves_seconds=saves,
        checkpoint_share=sum(saves) / (now - begin) if saves and now > begin else None,
        spending=None if gpus is None else Spending(
            used_gpu_hours=gpus * max(0.0, now - (job.row.start_seconds or begin)) / HOUR_SECONDS,
            idle_gpu_hours=gpus * _held(job.strip, now) / HOUR_SECONDS,
        ),
    )  # fmt: skip


def _held(strip: Sequence[Stretch], now: float) -> float:
    return sum(
        min(one.end_seconds, now) - one.start_seconds
        for one in strip
        if one.bucket in HELD and one.start_seconds < now
    )


def _stuck(job: Job, now: float) -> int | None:
    """The newest launches that went on from one and the same step, unless a checkpoint was finished since."""
    begun = [one for one in job.sessions if one.start_seconds is not None and one.start_seconds <= now]
    begun.sort(key=lambda one: one.start_seconds or 0.0)
    if not begun or begun[-1].resumed_from_step is None:
        return None
    since = begun[-1].start_seconds or 0.0
    if any(
        mark.kind == "checkpoint" and mark.time_seconds >= since and (mark.end_seconds or now + 1.0) <= now
        for mark in job.marks
    ):
        return 0
    same = 0
    for one in reversed(begun):
        if one.resumed_from_step != begun[-1].resumed_from_step:
            break
        same += 1
    return same


def _with_norms(found: list[JobFacts]) -> tuple[JobFacts, ...]:
    """The jobs, each with what others of its size, GPU and number format reach at that time."""
    norms = baseline.norms({one.row.job_id: one.row.mfu for one in found})
    return tuple(replace(one, run=replace(one.run, norm_ratio=norms.get(one.row.job_id))) for one in found)


def _value(column: Sequence[float | None] | None, place: int) -> float | None:
    return None if column is None else column[place]
