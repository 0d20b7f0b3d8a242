"""What to do about a job's losses: what would bring most first. Pure."""

from collections.abc import Iterator

from flopwatch.answers.goodput import Goodput
from flopwatch.answers.job import JobRow
from flopwatch.answers.ledger import Ledger
from flopwatch.answers.report import Advice, AdviceCode

LEAST_RATIO = 0.02
"""Below this share of the job's time nothing is advised."""
BY_BUCKET: tuple[tuple[str, AdviceCode], ...] = (
    ("HELD_IDLE", "release_idle"), ("HELD_EMPTY", "release_empty"), ("DATA_WAIT", "data_loading"),
    ("STARTUP", "startup"), ("GAP", "gaps"), ("THROTTLE", "throttle"), ("STRAGGLER", "straggler"),
)  # fmt: skip
BY_GAIN: dict[str, AdviceCode] = {
    "checkpoint_optimum": "checkpoint_interval",
    "restart_halved": "restart_faster",
    "detect_halved": "detect_faster",
}


def advice_of(ledger: Ledger, goodput: Goodput | None, row: JobRow) -> tuple[Advice, ...]:
    """The advice, what brings most first; what brings an unknown amount last."""
    capacity = ledger.capacity_gpu_milliseconds
    if not capacity:
        return ()
    found = [*_of_buckets(ledger), *_of_goodput(goodput), *_of_figure(row)]
    worth = [each for each in found if each.ratio is None or each.ratio >= LEAST_RATIO]
    return tuple(sorted(worth, key=lambda each: -(each.ratio or 0.0)))


def by_bucket(ledger: Ledger) -> dict[str, int]:
    """GPU milliseconds by bucket, whatever the reason."""
    totals: dict[str, int] = {}
    for amount in ledger.classes:
        for name, milliseconds in amount.buckets.items():
            bucket = name.partition(":")[0]
            totals[bucket] = totals.get(bucket, 0) + milliseconds
    return totals


def _of_buckets(ledger: Ledger) -> Iterator[Advice]:
    totals, capacity = by_bucket(ledger), ledger.capacity_gpu_milliseconds
    for bucket, code in BY_BUCKET:
        amount = totals.get(bucket, 0)
        yield Advice(code=code, gpu_milliseconds=amount, ratio=amount / capacity)
    platform = sum(
        milliseconds
        for amount in ledger.classes
        for name, milliseconds in amount.buckets.items()
        if name.endswith(":platform")
    )
    yield Advice(code="platform_losses", gpu_milliseconds=platform, ratio=platform / capacity)


def _of_goodput(goodput: Goodput | None) -> Iterator[Advice]:
    for gain in () if goodput is None else goodput.gains:
        yield Advice(code=BY_GAIN[gain.name], gpu_milliseconds=gain.gpu_milliseconds, ratio=gain.ratio)


def _of_figure(row: JobRow) -> Iterator[Advice]:
    measured, target = row.mfu.measured_ratio, row.target.ratio
    if measured is None and row.last_step is None:
        yield Advice(code="report_steps", gpu_milliseconds=None, ratio=None)
    elif measured is not None and target is not None and measured < target:
        yield Advice(code="raise_mfu", gpu_milliseconds=None, ratio=1.0 - measured / target)
