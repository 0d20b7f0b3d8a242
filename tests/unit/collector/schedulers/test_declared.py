"""Declarations: which windows are open, and what is told of them."""

import datetime
import itertools
import zoneinfo
from typing import Any

import pytest

from flopwatch_collector.config_schedulers import WindowSettings
from flopwatch_collector.schedulers.declared import Standing, Window, changes, open_at, standing_of

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


def at(text: str) -> float:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


SUNDAY = WindowSettings(nodes=("*",), every="sun 22:00", hours=6.0)
"""2026-11-29 is a Sunday."""


@pytest.mark.parametrize(
    ("now", "opened", "closed"),
    [
        ("2026-11-29T21:59:59", None, None),
        ("2026-11-29T22:00:00", "2026-11-29T22:00:00", "2026-11-30T04:00:00"),
        ("2026-11-30T03:59:59", "2026-11-29T22:00:00", "2026-11-30T04:00:00"),
        ("2026-11-30T04:00:00", None, None),
        ("2026-11-30T22:30:00", None, None),
    ],
)
def test_a_weekly_window_reaches_over_midnight(now: str, opened: str | None, closed: str | None) -> None:
    expected = None if opened is None or closed is None else (at(opened), at(closed))

    assert open_at(SUNDAY, at(now), BERLIN) == expected


def test_a_daily_window_keeps_its_hour_when_clocks_change() -> None:
    daily = WindowSettings(nodes=("*",), every="daily 08:00", hours=1.0)

    days = [open_at(daily, at(f"2026-{day}T08:30:00"), BERLIN) for day in ("10-24", "10-25", "10-26")]

    starts = [day[0] for day in days if day is not None]
    assert [later - earlier for earlier, later in itertools.pairwise(starts)] == [
        90_000.0,
        86_400.0,
    ]


def test_a_window_without_a_beginning_is_open_since_it_is_looked_at() -> None:
    assert open_at(WindowSettings(nodes=("a",)), 50.0, BERLIN) == (50.0, None)


def standing(
    declaration: Any = "drain", since: float = 100.0, source: str = "slurm", **more: Any
) -> Standing:
    return Standing(
        cluster="c", node="n", declaration=declaration, since_seconds=since, source=source, **more
    )


def told(events: list[Any]) -> list[tuple[str, str, float]]:
    return [(each.event.kind, each.event.value, each.event.time_seconds) for each in events]


def test_what_begins_and_ends_is_told_once() -> None:
    begun, holds, _ = changes([standing()], {}, 130.0)
    again, same, _ = changes([standing()], holds, 160.0)
    over, none, ended = changes([], same, 190.0)

    assert told(begun) == [("drain", "begin", 100.0)]
    assert told(again) == []
    assert told(over) == [("drain", "end", 190.0)]
    assert (none, ended) == ({}, {"c/n//faulty"})


def test_a_node_that_two_declare_stays_out_until_neither_does() -> None:
    _, both, _ = changes([standing(), standing("faulty", 110.0, "operator")], {}, 120.0)
    events, one, _ = changes([standing("faulty", 110.0, "operator")], both, 150.0)
    last, _, _ = changes([], one, 200.0)

    assert told(events) == []
    assert told(last) == [("health", "ok", 200.0)]


def test_a_declaration_found_to_be_older_begins_earlier() -> None:
    _, holds, _ = changes([standing(since=100.0)], {}, 120.0)
    events, holds, _ = changes([standing(since=100.0), standing(since=40.0, source="operator")], holds, 150.0)

    assert told(events) == [("drain", "begin", 40.0)]
    assert holds["c/n//faulty"].since_seconds == 40.0


def test_a_window_that_ends_by_itself_ends_on_its_time() -> None:
    window = Window(
        window_id="w", declaration="spare", cluster="c", node="n", from_seconds=10.0, until_seconds=95.0
    )
    _, holds, _ = changes(standing_of([window], 20.0), {}, 20.0)
    events, _, _ = changes(standing_of([window], 103.0), holds, 103.0)

    assert told(events) == [("spare", "end", 95.0)]
    assert standing_of([window], 9.9) == []
