"""Ingest over HTTP with and without 20 open pages that are read over HTTP: three processes, one collector."""

from pathlib import Path

import numpy as np
import pytest
from tests.bench.load import checking, scenario
from tests.bench.load.figures import Figures, exactness, figures
from tests.bench.load.readers import TICK_SECONDS, Read, reading
from tests.bench.load.scenario import Load, Target
from tests.bench.load.watching import Watch

pytestmark = [pytest.mark.bench, pytest.mark.timeout(300)]
LOAD = Load(gpus=10_000, seconds=28.0, warm_seconds=8.0, late_ratio=0.0, repeat_ratio=0.0)
OPEN_PAGES = 20


def beside(pages: int, folder: Path) -> tuple[Figures, Read]:
    """The same load on a new collector with so many open pages; everything that was acknowledged is there once."""
    clock = scenario.clock_of(LOAD)
    folder.mkdir()
    with scenario.serving(clock, folder) as (process, port), reading(port, pages) as read:
        watch = Watch(process.pid, folder / "data", LOAD.watch_seconds)
        outcome = scenario.under_load(LOAD, clock, Target(port=port, folder=folder), watch)
        watch.stop()
    begin = outcome.begin_seconds
    assert exactness(outcome, checking.stored(folder / "data", begin, begin + LOAD.seconds))["exact"]
    return figures(outcome), read


def test_twenty_open_pages_leave_ingest_exact_and_fast(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (alone, _), (read_too, read) = beside(0, tmp_path / "alone"), beside(OPEN_PAGES, tmp_path / "read")

    p50, p99 = np.percentile(read.waits_seconds, [50, 99]) * 1e3
    with capsys.disabled():
        print(
            f"\n{LOAD.gpus} GPUs; without pages: p50 {alone.p50_milliseconds:.1f} ms, p99 {alone.p99_milliseconds:.1f} "
            f"ms, {alone.core_share:.2f} of a core; with {OPEN_PAGES} pages: p50 {read_too.p50_milliseconds:.1f} ms, "
            f"p99 {read_too.p99_milliseconds:.1f} ms, {read_too.core_share:.2f} of a core; p99 ratio "
            f"{read_too.p99_milliseconds / alone.p99_milliseconds:.2f}\n{len(read.waits_seconds)} refreshes of pages: "
            f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, {read.received_bytes / len(read.waits_seconds) / 1e3:.0f} KB each"
        )
    assert read.wrong == []
    assert len(read.waits_seconds) >= OPEN_PAGES * (LOAD.seconds / TICK_SECONDS - 2)
    assert read_too.core_share < alone.core_share + 0.5
