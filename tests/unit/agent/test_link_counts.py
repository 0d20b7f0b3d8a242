"""When NVLink's counters are not believed."""

from typing import Any

import pytest

from flopwatch_agent.link_counts import BUSY_BYTES, BY_GPM, BY_PEERS, FIELDS, LinkCounts, compare


def told(
    counts: LinkCounts, transmit: int | None, receive: int | None, rate: float | None = None
) -> set[str]:
    """Which of the two counters a sample of a GPU at work tells."""
    values: dict[str, Any] = {"kernel_active_ratio": 0.9, FIELDS[0]: transmit, FIELDS[1]: receive}
    counts.judge(values, rate)
    return {name for name in FIELDS if values.get(name) is not None}


@pytest.mark.parametrize("stands_at", [0, 5_000_000])
def test_counters_that_stand_still_while_gpm_tells_traffic_are_left_out_until_they_move(
    stands_at: int,
) -> None:
    counts = LinkCounts()

    seen = [told(counts, stands_at, stands_at, 500.0) for _ in range(5)]

    assert seen == [set(FIELDS)] * 3 + [set()] * 2
    assert counts.doubt == BY_GPM
    assert told(counts, stands_at, stands_at, 0.0) == set(), "they are no better while nothing is sent"
    assert told(counts, stands_at + 1, stands_at, 500.0) == set(FIELDS)
    assert counts.doubt is None


@pytest.mark.parametrize("rate", [None, 0.0, 15.9])
def test_counters_that_stand_still_without_traffic_are_believed(rate: float | None) -> None:
    counts = LinkCounts()

    assert [told(counts, 0, 0, rate) for _ in range(10)] == [set(FIELDS)] * 10


def test_a_gpu_that_counts_no_links_is_not_doubted() -> None:
    counts = LinkCounts()

    assert [told(counts, None, None, 500.0) for _ in range(10)] == [set()] * 10
    assert counts.doubt is None


def looks(transmit: tuple[int, ...], times: int) -> list[LinkCounts]:
    """A job whose GPUs have counters that grow so much from look to look."""
    job = [LinkCounts() for _ in transmit]
    for look in range(times):
        for counts, step in zip(job, transmit, strict=True):
            told(counts, step * look, 0)
        compare(job)
        # Looks may come more often than samples.
        compare(job)
    return job


def test_a_gpu_at_zero_whose_job_s_others_are_busy_is_doubted_and_they_are_not() -> None:
    job = looks((BUSY_BYTES, 0, BUSY_BYTES), 4)

    assert [item.doubt for item in job] == [None, BY_PEERS, None]
    assert told(job[1], 0, 0) == set()
    assert told(job[1], 10, 0) == set(FIELDS)


@pytest.mark.parametrize(
    "steps", [(BUSY_BYTES, 0, 0), (BUSY_BYTES - 1, 0), (0, 0), (0,), (BUSY_BYTES, BUSY_BYTES)]
)
def test_a_gpu_at_zero_is_believed_where_another_one_is_quiet_too(steps: tuple[int, ...]) -> None:
    assert [item.doubt for item in looks(steps, 8)] == [None] * len(steps)


def test_a_gpu_that_does_not_work_is_not_doubted() -> None:
    busy, idle = LinkCounts(), LinkCounts()
    for look in range(8):
        told(busy, BUSY_BYTES * look, 0)
        idle.judge({"kernel_active_ratio": 0.0, FIELDS[0]: 0, FIELDS[1]: 0}, None)
        compare([busy, idle])

    assert idle.doubt is None
