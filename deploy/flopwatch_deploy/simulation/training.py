"""What the log reader of rank 0's node would send of a run: steps, phases, launches, facts."""

import hashlib

from flopwatch.wire import Phase, PhaseKind, RunFacts, SessionMark, StepRecord
from flopwatch_deploy.simulation.runs import Run
from flopwatch_deploy.simulation.segments import Life, Segment

_PHASES: dict[str, PhaseKind] = {"checkpoint": "checkpoint", "eval": "eval", "startup": "startup"}


def ref(run: Run) -> str:
    """The handle of a run in its nodes' batches."""
    return f"slurm:{run.number}"


def source_id(run: Run) -> str:
    """The log file's id: the same wherever it is read."""
    return "log:" + hashlib.sha256(f"slurm-{run.number}.out".encode()).hexdigest()[:16]


def steps(item: Life, start: float, end: float, report_seconds: float) -> tuple[StepRecord, ...]:
    """Records of the steps that ended in ``start < t <= end``, each covering about ``report_seconds``."""
    records: list[StepRecord] = []
    for segment in item.between(start, end):
        first, last = segment.steps_ended_by(start), segment.steps_ended_by(end)
        if last > first:
            size = max(1, round(report_seconds / segment.step_seconds))
            records += [
                _record(item.run, segment, begin, min(begin + size, last))
                for begin in range(first, last, size)
            ]
    return tuple(records)


def _record(run: Run, segment: Segment, before: int, after: int) -> StepRecord:
    """The steps number ``before + 1`` to ``after`` of a segment as one record."""
    count = after - before
    step = segment.first_step + after - 1
    tokens = run.model.tokens_per_step() if run.model else 0
    seconds = count * segment.step_seconds
    return StepRecord(
        job=ref(run),
        source="log",
        source_id=source_id(run),
        step=step,
        steps_covered=count,
        seconds=round(seconds, 6),
        end_time_seconds=round(segment.begin_seconds + after * segment.step_seconds, 3),
        resolution_seconds=0.001,
        rank=0,
        session=segment.launch,
        tokens=tokens * count,
        loss=round(1.6 + 6.0 / (1.0 + step / 400.0), 4),
        steady=segment.first_step + before > 5,
        why_not_steady=None if segment.first_step + before > 5 else "first steps",
        data_wait_seconds=round(seconds * run.data_wait_ratio, 3) if run.data_wait_ratio else None,
    )


def phases(item: Life, start: float, end: float) -> tuple[Phase, ...]:
    """Checkpoints, evaluations and start-ups that ended in the interval."""
    return tuple(
        Phase(
            job=ref(item.run), kind=_PHASES[segment.kind], begin_seconds=segment.begin_seconds,
            end_seconds=segment.end_seconds, source_id=source_id(item.run), session=segment.launch,
            step=_last_step(item, segment), committed=True if segment.kind == "checkpoint" else None,
        )
        for segment in item.between(start, end)
        if segment.kind in _PHASES and start < segment.end_seconds <= end
    )  # fmt: skip


def _last_step(item: Life, phase: Segment) -> int | None:
    """The newest step before a phase of the same launch."""
    before = [
        s for s in item.segments
        if s.kind == "steps" and s.launch == phase.launch and s.end_seconds <= phase.begin_seconds
    ]  # fmt: skip
    return before[-1].first_step + before[-1].steps_ended_by(before[-1].end_seconds) - 1 if before else None


def launches(item: Life, until: float) -> tuple[SessionMark, ...]:
    """Launches begun by a time, each with the end of the one before."""
    marks = []
    for number, resumed in enumerate(item.resumed):
        own = [segment for segment in item.segments if segment.launch == number]
        if not own or own[0].begin_seconds > until:
            break
        over = number + 1 < len(item.resumed) and own[-1].end_seconds <= until
        marks.append(
            SessionMark(
                job=ref(item.run),
                source_id=source_id(item.run),
                session=number,
                begin_seconds=own[0].begin_seconds,
                end_seconds=own[-1].end_seconds if over else None,
                exit_reason="failed" if over else None,
                restart_number=number,
                resumed_from_step=resumed if resumed >= 0 else None,
            )
        )
    return tuple(marks)


def facts(run: Run) -> tuple[RunFacts, ...]:
    """What the argument block of the run's log says."""
    if run.model is None:
        return ()
    return (
        RunFacts(
            source="log", origin="Megatron argument block", trainer="megatron_lm", shape=run.model.shape,
            world_size=run.gpus(), global_batch_size=run.model.global_batch_size,
            sequence_length=run.model.sequence_length, tokens_per_step=run.model.tokens_per_step(),
            dtype="bf16", dtype_basis="log", tensor_parallel=run.model.tensor_parallel,
            data_parallel=run.model.data_parallel(run.gpus()), pipeline_parallel=1, context_parallel=1,
            activation_recompute=run.model.recompute, kind=run.kind,
        ),
    )  # fmt: skip
