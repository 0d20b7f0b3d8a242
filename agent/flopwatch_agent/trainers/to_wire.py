"""Rows, phases, sessions and findings of a log as values of the wire."""

from flopwatch.wire import Finding, Phase, SessionMark, SourceKind, StepRecord
from flopwatch_agent.trainers.rows import LogFinding, Output, PhaseMark, Row, SessionInfo


def steps(output: Output, *, job: str, source_id: str, source: SourceKind = "log") -> tuple[StepRecord, ...]:
    """The rows for the collector, without those whose end cannot be placed in time."""
    made = (step_record(row, job=job, source_id=source_id, source=source) for row in output.steps)
    return tuple(record for record in made if record is not None)


def phases(output: Output, *, job: str, source_id: str, source: SourceKind = "log") -> tuple[Phase, ...]:
    """The phases for the collector, without those that cannot be placed in time."""
    made = (phase(mark, job=job, source_id=source_id, source=source) for mark in output.phases)
    return tuple(item for item in made if item is not None)


def sessions(output: Output, *, job: str, source_id: str) -> tuple[SessionMark, ...]:
    """The launches for the collector."""
    return tuple(session_mark(info, job=job, source_id=source_id) for info in output.sessions)


def findings(output: Output, *, job: str) -> tuple[Finding, ...]:
    """The findings for the collector."""
    return tuple(finding(found, job=job) for found in output.findings)


def step_record(row: Row, *, job: str, source_id: str, source: SourceKind = "log") -> StepRecord | None:
    """The row for the collector; ``None`` while its end cannot be placed in time.

    Times of overlapping windows are cut to the steps since the row before, so that sums stay true.
    """
    if row.end_time_seconds is None:
        return None
    covered = row.steps_covered or 1
    if row.steps_advanced is not None and 0 < row.steps_advanced < covered:
        covered = row.steps_advanced
    mean = row.step_seconds
    return StepRecord(
        job=job,
        source=source,
        source_id=source_id,
        step=row.step,
        end_time_seconds=row.end_time_seconds,
        seconds=None if mean is None else mean * covered,
        steps_covered=covered,
        basis=row.basis,
        resolution_seconds=row.resolution_seconds,
        rank=row.rank,
        session=row.session,
        tokens=None if row.tokens is None else round(row.tokens * covered),
        loss=row.loss,
        skipped_steps=row.skipped_steps,
        steady=row.steady,
        why_not_steady=row.why_not_steady,
        reported_flops_per_gpu=None if row.tflops_per_gpu is None else row.tflops_per_gpu * 1e12,
        reported_mfu_ratio=row.mfu,
        data_wait_seconds=row.data_wait_seconds,
    )


def phase(mark: PhaseMark, *, job: str, source_id: str, source: SourceKind = "log") -> Phase | None:
    """The phase for the collector; ``None`` where its begin or end cannot be placed in time."""
    begin, end = mark.begin_time_seconds, mark.end_time_seconds
    if begin is None or end is None:
        return None
    return Phase(
        job=job,
        kind=mark.kind,
        begin_seconds=begin,
        end_seconds=end,
        source=source,
        source_id=source_id,
        session=mark.session,
        step=mark.after_step,
        committed=mark.committed,
    )


def session_mark(info: SessionInfo, *, job: str, source_id: str) -> SessionMark:
    """The launch for the collector."""
    return SessionMark(
        job=job,
        source_id=source_id,
        session=info.session,
        begin_seconds=info.begin_time_seconds,
        end_seconds=info.end_time_seconds,
        exit_reason=info.exit_reason,
        restart_number=info.session or None,
        resumed_from_step=info.resumed_from_step,
    )


def finding(found: LogFinding, *, job: str) -> Finding:
    """The finding for the collector."""
    return Finding(job=job, code=found.code, text=found.text, values=dict(found.values) or None)
