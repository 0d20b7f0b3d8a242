"""Budgets: periods, forecast, states."""

from zoneinfo import ZoneInfo

import pytest

from flopwatch.settings import SettingError
from flopwatch_collector.config_budgets import BudgetSettings, read_budgets
from flopwatch_collector.economics.budgets import DeclaredJob, Spending, assess, judged, overruns, period_of

UTC = ZoneInfo("UTC")
DAY = 86_400.0
NOW = 1_773_144_000.0
"""2026-03-10 12:00 UTC: 9.5 days of March are over, 21.5 remain."""


def test_a_month_is_forecast_by_the_pace_of_the_last_week() -> None:
    budget = BudgetSettings(name="nlp", account="nlp", amount=10_000.0)
    found = assess(budget, Spending(used=3_000.0, recent=2_100.0, recent_seconds=7 * DAY), NOW, UTC)

    assert found.pace_per_day == pytest.approx(300.0)
    assert found.forecast == pytest.approx(3_000.0 + 300.0 * 21.5)
    assert found.forecast_ratio == pytest.approx(0.945)
    assert (found.state, found.reason) == ("warning", "forecast")


def test_a_young_site_has_no_pace_and_no_forecast() -> None:
    budget = BudgetSettings(name="q", gpu_hours=100.0, period="day")
    found = assess(budget, Spending(used=10.0, recent=10.0, recent_seconds=3_600.0), NOW, UTC)

    assert (found.pace_per_day, found.forecast, found.forecast_ratio) == (None, None, None)
    assert (found.used_ratio, found.state) == (pytest.approx(0.1), "ok")


def test_without_a_price_a_budget_of_money_is_unknown() -> None:
    found = assess(
        BudgetSettings(name="m", amount=5.0),
        Spending(used=None, recent=None, recent_seconds=7 * DAY),
        NOW,
        UTC,
    )

    assert (found.used, found.state, found.reason) == (None, "unknown", "no_price")


@pytest.mark.parametrize(
    ("used", "forecast", "expected"),
    [
        (0.5, 0.79, ("ok", None)),
        (0.5, 0.8, ("warning", "forecast")),
        (0.8, 0.9, ("warning", "used")),
        (0.5, 1.0, ("warning", "forecast")),
        (0.5, 1.01, ("critical", "forecast")),
        (1.0, 1.0, ("critical", "used")),
        (0.9, None, ("warning", "used")),
        (None, None, ("unknown", "no_data")),
    ],
)
def test_states_begin_at_80_and_100_percent(
    used: float | None, forecast: float | None, expected: tuple[str, str | None]
) -> None:
    assert judged(used, forecast, 0.8) == expected


@pytest.mark.parametrize(
    ("period", "days_before", "days"),
    [("day", 0.5, 1), ("week", 1.5, 7), ("month", 9.5, 31), ("quarter", 68.5, 90), ("year", 68.5, 365)],
)
def test_periods_are_those_of_the_calendar(period: str, days_before: float, days: int) -> None:
    start, end = period_of(period, NOW, UTC)  # type: ignore[arg-type]

    assert (NOW - start, end - start) == (days_before * DAY, days * DAY)


def test_jobs_may_go_a_fifth_beyond_what_was_declared() -> None:
    jobs = [
        DeclaredJob(
            job_id=name, name=name, user=None, account=None, declared_gpu_hours=declared, used_gpu_hours=used
        )
        for name, declared, used in (
            ("a", 100.0, 120.0),
            ("b", 100.0, 121.0),
            ("c", None, 999.0),
            ("d", 10.0, 50.0),
        )
    ]

    assert [(each.job_id, each.ratio) for each in overruns(jobs)] == [("d", 5.0), ("b", pytest.approx(1.21))]


@pytest.mark.parametrize(
    ("table", "setting"),
    [
        ({"amount": 1.0}, "budgets.name"),
        ({"name": "x"}, "budgets.x.amount"),
        ({"name": "x", "amount": 1.0, "gpu_hours": 1.0}, "budgets.x.amount"),
        ({"name": "x", "amount": -1.0}, "budgets.x.amount"),
        ({"name": "x", "amount": 1.0, "user": "a", "account": "b"}, "budgets.x.account"),
        ({"name": "x", "amount": 1.0, "warn_ratio": 80.0}, "budgets.x.warn_ratio"),
        ({"name": "x", "amount": 1.0, "period": "fortnight"}, "budgets.period"),
        ({"name": "x", "amount": 1.0, "whose": "a"}, "budgets.whose"),
    ],
)
def test_a_wrong_budget_is_refused_by_name(table: dict[str, object], setting: str) -> None:
    with pytest.raises(SettingError) as caught:
        read_budgets({"budgets": [table]})

    assert caught.value.name == setting
