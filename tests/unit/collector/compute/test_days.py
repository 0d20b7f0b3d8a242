"""Local days: borders, lengths, validity."""

import itertools
from datetime import date, datetime, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from flopwatch_collector.compute.buckets import CODE, INTEGER_COLUMNS
from flopwatch_collector.compute.days import borders, day_answer

BERLIN = ZoneInfo("Europe/Berlin")


def rows(**milliseconds):
    count = len(milliseconds)
    table = {name: np.zeros(count, dtype=np.int64) for name in INTEGER_COLUMNS}
    table["bucket"] = np.array([CODE[name] for name in milliseconds], dtype=np.int64)
    table["gpu_milliseconds"] = np.array(list(milliseconds.values()), dtype=np.int64)
    return {"ts": np.zeros(count), **table}


@pytest.mark.parametrize(
    ("noon", "hours"),
    [((2026, 3, 29), 23), ((2026, 10, 25), 25), ((2026, 6, 1), 24)],
    ids=["spring", "autumn", "usual"],
)
def test_a_day_is_as_long_as_the_calendar_says(noon, hours):
    now = datetime(*noon, 10, tzinfo=timezone.utc).timestamp()

    [(day, start, end)] = borders(now, 1, BERLIN)

    assert day == date(*noon)
    assert end - start == hours * 3600


def test_days_follow_each_other_without_a_gap():
    now = datetime(2026, 4, 2, tzinfo=timezone.utc).timestamp()
    found = borders(now, 10, BERLIN)

    assert [day.day for day, _, _ in found] == [24, 25, 26, 27, 28, 29, 30, 31, 1, 2]
    assert all(one[2] == other[1] for one, other in itertools.pairwise(found))


def test_a_half_hour_zone_has_its_own_borders():
    now = datetime(2026, 4, 2, 20, tzinfo=timezone.utc).timestamp()

    [(day, start, _)] = borders(now, 1, ZoneInfo("Asia/Kolkata"))

    assert day == date(2026, 4, 3)
    assert start == datetime(2026, 4, 2, 18, 30, tzinfo=timezone.utc).timestamp()


def test_a_day_is_valid_while_nine_tenths_are_known():
    good = day_answer(date(2026, 1, 1), rows(STEP=900, UNKNOWN=100), complete=True)
    bad = day_answer(date(2026, 1, 1), rows(STEP=899, UNKNOWN=101), complete=True)

    assert (good.valid, good.billable_ratio) == (True, 0.9)
    assert not bad.valid


def test_a_day_without_capacity_is_unknown():
    found = day_answer(date(2026, 1, 1), rows(), complete=False)

    assert (found.billable_ratio, found.valid) == (None, False)
