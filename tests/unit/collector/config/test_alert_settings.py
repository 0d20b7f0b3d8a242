import pytest

from flopwatch.settings import SettingError
from flopwatch_collector import durations
from flopwatch_collector.config_alerts import RuleSettings, read_alerts


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1_800.0), ("90s", 90.0), ("1h30m", 5_400.0), ("7d", 604_800.0), ("2w", 1_209_600.0), (45, 45.0),
        ("0", 0.0),
    ],
)  # fmt: skip
def test_a_length_of_time_is_read_as_people_write_it(text: object, seconds: float) -> None:
    assert durations.seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "30 minutes", "-5", -6, True, "1m30", "1h 30m", None])
def test_what_is_no_length_of_time_is_none(text: object) -> None:
    assert durations.seconds_of(text) is None


def test_a_length_of_time_is_written_as_it_is_read() -> None:
    for text in ("30m", "1h30m", "7d", "90d12h", "45s", "1m30s"):
        assert durations.text_of(durations.seconds_of(text) or 0.0) == text


def test_a_rules_own_table_and_overrides_are_read() -> None:
    settings = read_alerts(
        {
            "alerts": {
                "group_wait_seconds": "1m",
                "rules": {
                    "MfuLow": {"for": "20m", "clear_level": 1.2, "severity": "critical"},
                    "NoData": {"enabled": False},
                },
                "override": [
                    {"job": "llama-*", "rules": {"MfuLow": {"for": "5m"}}},
                    {"cluster": "a", "team": "nlp", "rules": {"MfuLow": {"keep": 60}}},
                ],
            }
        },
        {},
    )

    assert settings.group_wait_seconds == 60.0
    assert settings.mfu_low_clear_factor == 1.2
    assert settings.rules["MfuLow"] == RuleSettings(for_seconds=1_200.0, clear_level=1.2, severity="critical")
    assert settings.rules["NoData"].enabled is False
    assert [one.matches("a", "nlp", "llama-70b") for one in settings.override] == [True, True]
    assert [one.matches("b", "nlp", "gpt") for one in settings.override] == [False, False]
    changed = settings.changed_by(settings.override[1].rules)
    assert (changed.rules["MfuLow"].for_seconds, changed.rules["MfuLow"].keep_seconds) == (1_200.0, 60.0)


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ({"rules": {"MfuLo": {}}}, "alerts.rules.MfuLo"),
        ({"rules": {"MfuLow": {"fr": 1}}}, "alerts.rules.MfuLow.fr"),
        ({"rules": {"MfuLow": {"for": "soon"}}}, "alerts.rules.MfuLow.for"),
        ({"rules": {"MfuLow": {"severity": "bad"}}}, "alerts.rules.MfuLow.severity"),
        ({"rules": {"NoData": {"level": 1.0}}}, "alerts.rules.NoData.level"),
        ({"rules": {"MfuLow": {"clear_level": 0.5}}}, "alerts.mfu_low_clear_factor"),
        ({"rules": []}, "alerts.rules"),
        ({"override": {}}, "alerts.override"),
        ({"override": [{"rules": {}}]}, "alerts.override"),
        ({"override": [{"user": "ann"}]}, "alerts.override.user"),
        ({"override": [{"job": 7}]}, "alerts.override.job"),
        ({"repeat_interval_seconds": 30}, "alerts.repeat_interval_seconds"),
        ({"no_data_for_seconds": "soon"}, "alerts.no_data_for_seconds"),
        ({"heartbeat_seconds": 0}, "alerts.heartbeat_seconds"),
    ],
)
def test_a_wrong_setting_is_named(table: dict[str, object], name: str) -> None:
    with pytest.raises(SettingError) as caught:
        read_alerts({"alerts": table}, {})

    assert caught.value.name == name
