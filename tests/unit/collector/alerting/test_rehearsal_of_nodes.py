"""Rules over the past of nodes, the fleet and budgets: what would have fired and when; what cannot be judged."""

from dataclasses import replace
from typing import Any

import pytest

from flopwatch.query import Verdict
from flopwatch_collector.alerting.rehearsal import NOT_KEPT, NOTHING_THERE, Rehearsal, rehearse
from flopwatch_collector.config_alerts import ALERT_RULES, AlertSettings, read_alerts
from flopwatch_collector.past import (
    FleetMoment,
    GpuErrorsAt,
    GpuEvent,
    NodePast,
    NodeStretch,
    Past,
    ThrottleStretch,
)
from flopwatch_collector.watched import BudgetHealth

BEGIN = 1_000_200.0 // 300.0 * 300.0
DAY = 86_400.0
WINDOW = 300.0


def stretch(first: int, last: int, bucket: str, **more: Any) -> NodeStretch:
    """From one window to another."""
    return NodeStretch(
        start_seconds=BEGIN + first * WINDOW, end_seconds=BEGIN + last * WINDOW, bucket=bucket, **more
    )


def node(*stretches: NodeStretch, events: tuple[GpuEvent, ...] = ()) -> NodePast:
    return NodePast(cluster="a", node="n1", gpus=8, stretches=stretches, events=events)


def past(*nodes: NodePast, moments: tuple[FleetMoment, ...] = (), days: float = 1.0) -> Past:
    return Past(
        start_seconds=BEGIN,
        end_seconds=BEGIN + days * DAY,
        cluster="a",
        nodes=nodes,
        moments=moments,
        known=True,
    )


def times(told: Rehearsal, rule: str) -> list[tuple[float, float | None]]:
    """Begin and end of the episodes of a rule, in windows."""
    return [
        (
            (one.start_seconds - BEGIN) / WINDOW,
            None if one.end_seconds is None else (one.end_seconds - BEGIN) / WINDOW,
        )
        for one in told.episodes
        if one.rule == rule
    ]


def sampled(*, raw: float, **found: Any) -> Past:
    """A day, with raw samples of its last so many windows."""
    one = NodePast(cluster="a", node="n1", gpus=8, **found)
    end = BEGIN + 60 * WINDOW
    return replace(past(one), end_seconds=end, raw_start_seconds=end - raw * WINDOW)


def throttled(first: float, last: float, reasons: int = 0x40) -> ThrottleStretch:
    return ThrottleStretch(
        start_seconds=BEGIN + first * WINDOW,
        end_seconds=BEGIN + last * WINDOW,
        gpu="g1",
        index=3,
        reasons=reasons,
    )


def test_a_gpu_that_raw_samples_show_throttled_would_have_fired_five_minutes_later() -> None:
    told = rehearse([], AlertSettings(), sampled(raw=60, throttles=(throttled(10, 20),)))

    ((begin, end),) = times(told, "HwThrottle")
    # From window 10 to 20; five minutes until it fires, ten minutes until it is over; looked at every minute.
    assert begin == pytest.approx(11.0, abs=0.4)
    assert end == pytest.approx(22.0, abs=0.6)
    assert told.seconds == {}


def test_heat_that_the_driver_tells_is_another_rule_and_two_minutes_of_it_are_none() -> None:
    told = rehearse(
        [], AlertSettings(), sampled(raw=60, throttles=(throttled(10, 20, 0x20), throttled(30, 30.4)))
    )

    assert [one.rule for one in told.episodes] == ["ThermalThrottle"]


def test_memory_errors_are_new_for_an_hour() -> None:
    errors = (GpuErrorsAt(time_seconds=BEGIN + 10 * WINDOW, gpu="g1", index=3, uncorrected=2),)

    ((begin, end),) = times(rehearse([], AlertSettings(), sampled(raw=60, errors=errors)), "GpuErrors")

    assert begin == pytest.approx(10.2, abs=0.4)
    assert end is not None
    assert end >= 22.0


def test_rules_on_raw_samples_are_judged_for_as_long_as_these_were_read() -> None:
    told = rehearse([], AlertSettings(), sampled(raw=12))

    assert told.seconds == dict.fromkeys(
        ("GpuErrors", "HwThrottle", "Straggler", "ThermalThrottle"), 12 * WINDOW
    )
    assert set(told.seconds) <= set(told.judged)
    without = rehearse([], AlertSettings(), past())
    assert "raw samples" in without.reasons["HwThrottle"]


def test_a_node_that_was_faulty_for_an_hour_is_down_for_it_and_ten_minutes_more() -> None:
    told = rehearse([], AlertSettings(), past(node(stretch(10, 22, "FAULT"))))

    # Seen first at the end of window 10, fires after its minute at the next; healthy for 10 min two windows later.
    ((begin, end),) = times(told, "NodeDown")
    assert begin == 12
    assert end == 25
    assert {"NodeDown", "NoData", "GpuLost"} <= set(told.judged)
    assert times(told, "NoData") == []


def test_a_node_taken_out_of_service_is_not_down() -> None:
    assert (
        times(rehearse([], AlertSettings(), past(node(stretch(10, 22, "FAULT", out=True)))), "NodeDown") == []
    )


def test_a_node_of_which_nothing_came_is_silent_until_it_reports_again() -> None:
    told = rehearse([], AlertSettings(), past(node(stretch(10, 22, "UNKNOWN"))))

    ((begin, end),) = times(told, "NoData")
    assert begin == pytest.approx(12, abs=1)
    assert end == pytest.approx(24, abs=1)


def test_an_xid_loses_a_gpu_while_it_is_news() -> None:
    events = (GpuEvent(time_seconds=BEGIN + 5 * WINDOW - 10.0, gpu="GPU-1", code=79),)

    told = rehearse([], AlertSettings(), past(node(events=events)))

    ((begin, end),) = times(told, "GpuLost")
    assert (begin, end) == (6, 9)
    assert next(one for one in told.episodes if one.rule == "GpuLost").labels["gpu"] == "GPU-1"


def test_what_is_changed_of_a_rule_changes_its_past() -> None:
    settings = read_alerts({"alerts": {"rules": {"NodeDown": {"for": "30m"}}}}, {})
    short, long = past(node(stretch(10, 14, "FAULT"))), past(node(stretch(10, 22, "FAULT")))

    assert times(rehearse([], settings, short), "NodeDown") == []
    ((begin, _),) = times(rehearse([], settings, long), "NodeDown")
    assert begin == pytest.approx(17, abs=1)


def verdict(code: str) -> Verdict:
    return Verdict(
        code=code,  # type: ignore[arg-type]
        line_ratio=0.7, line_source="costs", mean_30d_ratio=0.6, valid_days=30, days_above=3, days_total=30,
        sustained=True, days_in_state=9, cost_at_mean=None, cost_at_line=None,
    )  # fmt: skip


def test_the_fleet_and_its_budgets_are_judged_once_a_day() -> None:
    def at(day: int, code: str, state: str) -> FleetMoment:
        budget = BudgetHealth(name="nlp", state=state, used_ratio=0.9, forecast_ratio=1.1)
        return FleetMoment(time_seconds=BEGIN + day * DAY, verdict=verdict(code), budgets=(budget,))

    moments = (
        at(1, "above_sustained", "ok"),
        at(2, "below_sustained", "warning"),
        at(3, "below_sustained", "ok"),
    )

    told = rehearse([], AlertSettings(), past(moments=moments, days=3.0))

    ((begin, end),) = times(told, "BelowBreakeven")
    assert (begin * WINDOW / DAY, end) == (pytest.approx(2.0, abs=0.05), None)
    ((begin, end),) = times(told, "BudgetBurn")
    assert begin * WINDOW / DAY == pytest.approx(2.0, abs=0.05)
    assert end is not None
    assert end * WINDOW / DAY == pytest.approx(3.0, abs=0.05)


def test_every_rule_is_judged_or_it_is_said_why_not() -> None:
    told = rehearse([], AlertSettings(), past())

    assert set(told.judged) | set(told.not_judged) == set(ALERT_RULES)
    assert set(told.reasons) == set(told.not_judged)
    assert {told.reasons[rule] for rule in NOT_KEPT} == set(NOT_KEPT.values())
    assert told.reasons["MfuLow"] == NOTHING_THERE
    assert rehearse([], AlertSettings()).judged == ()


def test_nothing_is_said_of_a_past_in_which_nothing_happened() -> None:
    quiet = replace(past(), moments=(FleetMoment(time_seconds=BEGIN, verdict=verdict("above_sustained")),))

    assert rehearse([], AlertSettings(), quiet).episodes == ()
