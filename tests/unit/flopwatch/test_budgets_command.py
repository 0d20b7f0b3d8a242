"""``flopwatch budgets``: what people read of the collector's answer."""

from flopwatch.budgets_command import as_text

BUDGET = {
    "name": "nlp", "scope": "account", "who": "nlp", "period": "month", "unit": "money", "limit": 5000.0,
    "used": 4100.0, "used_ratio": 0.82, "pace_per_day": 180.0, "forecast": 5900.0, "forecast_ratio": 1.18,
    "state": "critical", "reason": "forecast",
}  # fmt: skip
UNKNOWN = {
    **BUDGET, "name": "quota", "scope": "site", "who": None, "unit": "gpu_hours", "used": None, "used_ratio": None,
    "pace_per_day": None, "forecast": None, "forecast_ratio": None, "state": "unknown", "reason": "no_data",
}  # fmt: skip
OVERRUN = {
    "name": "llama",
    "job_id": "j1",
    "used_gpu_hours": 300.0,
    "declared_gpu_hours": 100.0,
    "ratio": 3.0,
}


def said(budgets: list[dict[str, object]], overruns: list[dict[str, object]]) -> list[str]:
    answer = {"status": {"currency": "EUR"}, "budgets": budgets, "overruns": overruns}
    return [" ".join(line.split()) for line in as_text(answer).splitlines()]


def test_a_budget_is_a_line_and_unknown_a_dash() -> None:
    heads, known, unknown = said([BUDGET, UNKNOWN], [])

    assert heads.startswith("budget of period")
    assert known == ("nlp account nlp month 5,000.0 EUR 4,100.0 82% 180.0 5,900.0 118% critical (forecast)")
    assert unknown == "quota site month 5,000.0 GPU-h - - - - - unknown (no_data)"


def test_without_budgets_the_setting_is_named_and_overruns_still_stand_there() -> None:
    first, second = said([], [OVERRUN])

    assert "[[budgets]]" in first
    assert second == "job llama (j1): 300.0 GPU-h of 100.0 declared, 3.00 times"
