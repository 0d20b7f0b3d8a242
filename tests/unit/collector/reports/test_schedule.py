"""When reports are due, and about which days."""

from datetime import datetime, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from flopwatch.settings import SettingError
from flopwatch_collector.config_reports import ReportSettings, read_reports
from flopwatch_collector.reports.schedule import newest

UTC = ZoneInfo("UTC")
NOON = 1_772_539_200.0
"""Tuesday, 2026-03-03 12:00 UTC."""
PLAIN: dict[str, Any] = {"name": "x", "server": "mailto://mail.example.com", "to": ["a@example.com"]}


def dates(settings: ReportSettings, now: float = NOON) -> tuple[str, str, str]:
    found = newest(settings, now, UTC)
    made = (found.due_seconds, found.start_seconds, found.end_seconds)
    return tuple(datetime.fromtimestamp(each, tz=timezone.utc).strftime("%m-%d %H:%M") for each in made)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"period": "daily", "at": "08:00"}, ("03-03 08:00", "03-02 00:00", "03-03 00:00")),
        ({"period": "daily", "at": "13:00"}, ("03-02 13:00", "03-01 00:00", "03-02 00:00")),
        ({"period": "weekly", "weekday": "monday"}, ("03-02 08:00", "02-23 00:00", "03-02 00:00")),
        (
            {"period": "weekly", "weekday": "tuesday", "at": "13:00"},
            ("02-24 13:00", "02-17 00:00", "02-24 00:00"),
        ),
        ({"period": "monthly"}, ("03-01 08:00", "02-01 00:00", "03-01 00:00")),
        ({"period": "monthly", "day": 15}, ("02-15 08:00", "01-01 00:00", "02-01 00:00")),
    ],
)
def test_a_report_is_of_the_whole_days_before_it(
    changes: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    (settings,) = read_reports({"reports": [{**PLAIN, **changes}]})

    assert dates(settings) == expected


@pytest.mark.parametrize(
    ("table", "setting"),
    [
        ({"to": ["a@example.com"]}, "reports.name"),
        ({**PLAIN, "at": "8 o'clock"}, "reports.x.at"),
        ({**PLAIN, "day": 31}, "reports.x.day"),
        ({**PLAIN, "to": ["nobody"]}, "reports.x.to"),
        ({"name": "x", "to": ["a@example.com"]}, "reports.x.server"),
        ({"name": "x"}, "reports.x.to"),
        ({**PLAIN, "kind": "digest"}, "reports.x.to"),
        ({**PLAIN, "period": "hourly"}, "reports.period"),
        ({**PLAIN, "least_gpu_hours": -1.0}, "reports.x.least_gpu_hours"),
    ],
)
def test_a_wrong_report_is_refused_by_name(table: dict[str, Any], setting: str) -> None:
    with pytest.raises(SettingError) as caught:
        read_reports({"reports": [table]})

    assert caught.value.name == setting


def test_nothing_is_sent_without_being_set() -> None:
    assert read_reports({}) == ()
