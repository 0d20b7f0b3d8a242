"""Plays an incident through the real rules and the real state machine, evaluation by evaluation."""

from dataclasses import dataclass, replace

import numpy as np
from tests.incidents.world import MFU, Course, Incident, Shown, course, healthy
from tests.unit.collector.alerting.facts_of_runs import figure, job, node

from flopwatch_collector.alerting.rules import read_all
from flopwatch_collector.alerting.state import AlertRecord, advance, fingerprint
from flopwatch_collector.compute.detection.overdue import Silence
from flopwatch_collector.compute.detection.peers import Suspect, suspect_of
from flopwatch_collector.compute.progress import report_gap_seconds
from flopwatch_collector.config import AlertSettings
from flopwatch_collector.facts import Facts
from flopwatch_collector.watched import Frozen, GpuHealth, NodeHealth, StepHistory, WatchedRun

EVALUATE_SECONDS = 15.0
REPORT_SECONDS = 300.0
SETTINGS = AlertSettings()


@dataclass(frozen=True, kw_only=True)
class Fired:
    """An alert that fired."""

    rule: str
    severity: str
    seconds: float


def play(incident: Incident, seed: int = 0) -> tuple[Fired, ...]:
    """Every alert that fired, in order."""
    made, base = course(incident, seed), healthy(incident, seed)
    records: dict[str, AlertRecord] = {}
    suspects: list[Suspect | None] = []
    fired: list[Fired] = []
    for now in np.arange(600.0, incident.length_seconds, EVALUATE_SECONDS).tolist():
        shown = _shown(incident, base, made, now)
        if now % REPORT_SECONDS < EVALUATE_SECONDS:
            suspects.append(suspect_of(shown.gpus, shown.links))
        facts = _facts(incident, (made, shown, tuple(suspects[-4:])), records, now)
        for reading in read_all(facts, SETTINGS):
            key = fingerprint(reading.rule, reading.labels)
            before = records.get(key)
            after = advance(before, reading, now)
            if after is None:
                records.pop(key, None)
                continue
            records[key] = after
            if after.state == "firing" and (before is None or before.fired_seconds != after.fired_seconds):
                fired.append(Fired(rule=after.rule, severity=after.severity, seconds=now))
    return tuple(fired)


def _active(incident: Incident, now: float) -> bool:
    return 0.0 <= now - incident.onset_seconds < incident.lasts_seconds


def _pausing(made: Course, now: float) -> bool:
    return any(begin <= now < end for begin, end in made.pauses)


def _shown(incident: Incident, base: Shown, made: Course, now: float) -> Shown:
    if incident.show is not None and _active(incident, now):
        return incident.show(base, now - incident.onset_seconds)
    if incident.pause is not None and _pausing(made, now):
        tensor = incident.pause[2]
        nic = None if base.nic_ratio is None else incident.pause_nic
        power = 0.25 if tensor == 0.0 else 0.9
        return replace(
            base, tensor=tensor, power_ratio=power, nic_ratio=nic, disk_writing=incident.pause_disk
        )
    return base


def _facts(
    incident: Incident,
    seen: tuple[Course, Shown, tuple[Suspect | None, ...]],
    records: dict[str, AlertRecord],
    now: float,
) -> Facts:
    made, shown, suspects = seen
    count = int(np.searchsorted(made.ends, now, side="right"))
    count = count // incident.burst * incident.burst
    told = incident.pause_told and _pausing(made, now)
    history = _history(incident, made, count)
    run = WatchedRun(
        steps=history,
        frozen=_frozen(records),
        silence=_silence(incident, made, shown, (count, now)),
        suspects=suspects,
        saves_seconds=_saves(incident, made, now),
        checkpoint_share=_share(incident, made, now),
    )
    mfu = float(np.median(history.ratios[-20:])) if history.ratios else None
    one = job(
        run,
        mfu=mfu,
        bucket=_bucket(incident, now, told=told),
        report_gap_seconds=incident.step_seconds * incident.burst,
        data_seconds=now - 3.0,
        steps_since_start=count,
        nodes=frozenset(f"n{index}" for index in range(incident.nodes)),
    )
    last = float(made.ends[count - 1]) if count else 0.0
    shown_row = replace(one.row, mfu=replace(figure(mfu), window_end_seconds=last), last_step_seconds=last)
    health = NodeHealth(gpus=(GpuHealth(gpu="GPU-9", clock_event_reasons=shown.clock_reasons),))
    return Facts(
        now=now,
        jobs=(replace(one, row=shown_row),),
        nodes=(node(health, node="n1", last_seen_seconds=now - 3.0),),
        verdict=None,
        cluster="a",
    )


def _bucket(incident: Incident, now: float, *, told: bool) -> str:
    if incident.phase is not None and _active(incident, now):
        return incident.phase
    return incident.pause_bucket if told else "STEP"


def _history(incident: Incident, made: Course, count: int) -> StepHistory:
    ends, seconds = made.ends[max(0, count - 220) : count], made.seconds[max(0, count - 220) : count]
    config = "c"
    if incident.config is not None and count:
        names = [incident.config(float(end)) for end in ends]
        config = names[-1]
        own = np.array([name == config for name in names])
        ends, seconds = ends[own], seconds[own]
    usual = incident.step_seconds
    if incident.config is not None and seconds.size:
        usual = float(np.median(seconds))
    return StepHistory(
        config=config,
        seconds=tuple(seconds.tolist()),
        ratios=tuple((MFU * usual / seconds).tolist()),
        end_seconds=float(ends[-1]) if ends.size else None,
    )


def _frozen(records: dict[str, AlertRecord]) -> Frozen | None:
    for record in records.values():
        if record.rule == "MfuDrop" and record.state in ("pending", "firing", "clearing"):
            return Frozen(config=record.values["config"], baseline_ratio=record.values["frozen"])
    return None


def _silence(incident: Incident, made: Course, shown: Shown, at: tuple[int, float]) -> Silence:
    count, now = at
    reported = made.ends[: count : incident.burst] if incident.burst > 1 else made.ends[:count]
    last = float(made.ends[count - 1]) if count else 0.0
    ended = [end for _, end in made.pauses if end <= now] if incident.pause_told else []
    recent = reported[-700:]
    gaps = np.diff(recent)
    longest = None
    if gaps.size and not incident.pause_told:
        longest = float(gaps.max()) if float(gaps.max()) > 5.0 * float(np.median(gaps)) else None
    return Silence(
        overdue_seconds=now - max([last, *ended[-1:]]),
        gap_seconds=report_gap_seconds(recent, np.ones(recent.size, dtype=np.bool_)),
        longest_pause_seconds=longest,
        tensor_active_ratio=shown.tensor,
        power_ratio=shown.power_ratio,
        nic_ratio=shown.nic_ratio,
        disk_writing=shown.disk_writing,
        phase=_phase(incident, made, now),
        source_alive=incident.source_alive or not _active(incident, now),
    )


def _phase(incident: Incident, made: Course, now: float) -> str | None:
    bucket = _bucket(incident, now, told=incident.pause_told and _pausing(made, now))
    return None if bucket == "STEP" else bucket


def _saves(incident: Incident, made: Course, now: float) -> tuple[float, ...]:
    if incident.pause is None or incident.pause_bucket != "CKPT" or not incident.pause_told:
        return ()
    return tuple(end - begin for begin, end in made.pauses if end <= now)


def _share(incident: Incident, made: Course, now: float) -> float | None:
    saves = _saves(incident, made, now)
    return sum(saves) / now if saves else None
