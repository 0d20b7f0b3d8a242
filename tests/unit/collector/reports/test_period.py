"""Periods as people ask for them."""

from zoneinfo import ZoneInfo

import pytest

from flopwatch_collector.reports.period import Asked, WrongPeriod, period_of

UTC, BERLIN = ZoneInfo("UTC"), ZoneInfo("Europe/Berlin")
NOON = 1_772_539_200.0
"""2026-03-03 12:00 UTC."""


def test_without_dates_the_last_seven_days_are_meant() -> None:
    assert period_of(Asked(), NOON + 7, UTC) == (NOON - 7 * 86_400, NOON + 7)


@pytest.mark.parametrize(("last", "seconds"), [("24h", 86_400), ("2w", 14 * 86_400), ("1.5d", 129_600)])
def test_a_length_counts_back_from_now(last: str, seconds: int) -> None:
    assert period_of(Asked(last=last), NOON, UTC) == (NOON - seconds, NOON)


def test_a_date_as_the_end_is_included_and_days_are_the_sites() -> None:
    start, end = period_of(Asked(start="2026-03-01", end="2026-03-02"), NOON, BERLIN)

    # 2026-03-01 00:00 to 2026-03-03 00:00 in Berlin, an hour before UTC's midnight.
    assert (start, end) == (NOON - 2.5 * 86_400 - 3_600, NOON - 43_200 - 3_600)


def test_a_day_on_which_clocks_change_has_23_hours() -> None:
    start, end = period_of(Asked(start="2026-03-29", end="2026-03-29"), NOON + 40 * 86_400, BERLIN)

    assert end - start == 23 * 3_600


def test_a_period_ends_now_at_the_latest() -> None:
    assert period_of(Asked(start="2026-03-03", end="2026-03-09"), NOON, UTC) == (NOON - 43_200, NOON)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (Asked(last="7"), "last"),
        (Asked(last="0d"), "last"),
        (Asked(last="7d", start="2026-03-01"), "last"),
        (Asked(end="2026-03-01"), "to"),
        (Asked(start="2026-13-01"), "from"),
        (Asked(start="2026-03-04"), "from"),
        (Asked(start="2026-03-02", end="2026-03-01"), "to"),
        (Asked(start="2016-03-02"), "from"),
    ],
)
def test_what_is_no_period_is_refused_by_name(asked: Asked, name: str) -> None:
    with pytest.raises(WrongPeriod) as caught:
        period_of(asked, NOON, UTC)

    assert caught.value.name == name
