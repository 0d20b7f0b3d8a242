"""The buckets a job was in over time, from few reads: a run's records, and samples only around its silences."""

import numpy as np

from flopwatch.query import Stretch
from flopwatch_collector.compute import hang
from flopwatch_collector.compute.buckets import BUCKETS, CODE, WINDOW_SECONDS
from flopwatch_collector.compute.classes import CLASS_OF
from flopwatch_collector.compute.inputs import LedgerInputs
from flopwatch_collector.compute.job_state import KINDS, stretches
from flopwatch_collector.compute.layout import take
from flopwatch_collector.compute.ledger import outcomes, run_until, silences_within
from flopwatch_collector.compute.timeline import JobTimeline
from flopwatch_collector.model import EVENT_COLUMNS, Columns, empty
from flopwatch_collector.views.present import leases_by_job
from flopwatch_collector.views.sources import Moment, Sources

MOST_STRETCHES = 400
EVIDENCE = tuple(name for name in hang.EVIDENCE_SAMPLES if name not in {"ts", "gpu"})


def strip_of(
    sources: Sources, moment: Moment, number: int, timeline: JobTimeline | None, ledger: Columns
) -> tuple[Stretch, ...]:
    """The buckets the job was in; of a job that reports no steps, the largest of every window."""
    if timeline is None or not timeline.instrumented:
        return by_window(ledger, moment.now)
    return coarser(_of_run(sources, moment, number, timeline), moment.start, moment.now)


def _of_run(sources: Sources, moment: Moment, number: int, timeline: JobTimeline) -> tuple[Stretch, ...]:
    held = leases_by_job(moment.state).get(number, [])
    inputs = LedgerInputs(
        now=moment.now,
        nodes=moment.state.nodes,
        gpus={},
        jobs={number: moment.state.jobs[number]},
        leases=tuple(held),
        timelines={number: timeline},
        samples=empty(hang.EVIDENCE_SAMPLES),
        events=empty(EVENT_COLUMNS),
    )
    until = run_until(inputs, number)
    begin = max(moment.start, min((lease.start_seconds for lease in held), default=moment.start))
    if until <= begin:
        return ()
    gpus = {gpu for lease in held for gpu in lease.gpus}
    parts = [
        sources.store.gpu_samples(*hang.evidence_span(silence), EVIDENCE, gpus=sorted(gpus))
        for silence in silences_within(inputs, number, (begin, until))
    ]
    if parts:
        joined = {name: np.concatenate([part[name] for part in parts]) for name in hang.EVIDENCE_SAMPLES}
        inputs = _with_samples(inputs, joined)
    silent = outcomes(inputs, number, (begin, until))
    found = stretches(timeline, (begin, until), silent, until=until)
    return _merged(found.edges / 1000.0, found.kind // KINDS)


def _with_samples(inputs: LedgerInputs, samples: Columns) -> LedgerInputs:
    return LedgerInputs(
        now=inputs.now,
        nodes=inputs.nodes,
        gpus=inputs.gpus,
        jobs=inputs.jobs,
        leases=inputs.leases,
        timelines=inputs.timelines,
        samples=samples,
        events=inputs.events,
    )


def _merged(edges: np.ndarray, buckets: np.ndarray) -> tuple[Stretch, ...]:
    """Stretches between edges, neighbours of one bucket as one."""
    first = np.flatnonzero(np.diff(buckets, prepend=-1) != 0)
    last = np.append(first, buckets.size)[1:]
    return tuple(
        _stretch(float(edges[begin]), float(edges[end]), BUCKETS[int(buckets[begin])])
        for begin, end in zip(first.tolist(), last.tolist(), strict=True)
    )


def coarser(strip: tuple[Stretch, ...], start: float, end: float) -> tuple[Stretch, ...]:
    """A strip of many short stretches as one of equal cells, each what most of its time was."""
    if len(strip) <= MOST_STRETCHES:
        return strip
    edges = np.linspace(max(start, strip[0].start_seconds), end, MOST_STRETCHES + 1)
    begins = np.array([stretch.start_seconds for stretch in strip])
    ends = np.array([stretch.end_seconds for stretch in strip])
    codes = np.array([CODE[stretch.bucket] for stretch in strip])
    spent = np.zeros((len(BUCKETS), MOST_STRETCHES))
    for code in np.unique(codes).tolist():
        own = codes == code
        total = np.concatenate(([0.0], np.cumsum((ends - begins)[own])))
        place = np.searchsorted(begins[own], edges, side="right")
        last = np.maximum(place - 1, 0)
        inside = np.clip(edges - begins[own][last], 0.0, (ends - begins)[own][last])
        spent[code] = np.diff(np.where(place > 0, total[last] + inside, 0.0))
    return _merged(edges, spent.argmax(axis=0))


def by_window(ledger: Columns, now: float) -> tuple[Stretch, ...]:
    """The bucket with most of a job's time in every window, neighbours of one bucket as one."""
    result: list[Stretch] = []
    for window in np.unique(ledger["ts"]).tolist():
        rows = take(ledger, ledger["ts"] == window)
        totals = np.zeros(len(BUCKETS), dtype=np.int64)
        np.add.at(totals, rows["bucket"], rows["gpu_milliseconds"])
        bucket = BUCKETS[int(totals.argmax())]
        begin, end = window, min(window + WINDOW_SECONDS, now)
        if result and result[-1].bucket == bucket and window - result[-1].end_seconds < 1.0:
            begin = result.pop().start_seconds
        result.append(_stretch(begin, end, bucket))
    return tuple(result)


def _stretch(begin: float, end: float, bucket: str) -> Stretch:
    return Stretch(start_seconds=begin, end_seconds=end, bucket=bucket, ledger_class=CLASS_OF[bucket])
