import math

from flopwatch_dashboard import wording
from flopwatch_dashboard.view import View


def test_what_is_unknown_reads_as_such_and_never_as_zero() -> None:
    shown = {
        wording.number(None),
        wording.percent(None),
        wording.line_percent(None),
        wording.points(None),
        wording.hours(None),
        wording.money(None, "USD"),
        wording.si(None),
        wording.clock(None, "UTC"),
        wording.moment(None, "UTC", "en"),
        wording.step_time(None),
        wording.percent(math.nan),
        View().duration(None),
    }

    assert shown == {"n/a"}


def test_a_real_zero_reads_as_zero() -> None:
    assert wording.percent(0.0) == "0.0%"
    assert wording.hours(0) == "0"


def test_ratios_and_lines_read_in_percent() -> None:
    assert wording.percent(0.618) == "61.8%"
    assert wording.line_percent(0.7) == "70%"
    assert wording.line_percent(0.675) == "67.5%"
    assert wording.points(-0.064) == "-6.4"


def test_gpu_hours_keep_a_decimal_while_they_are_few() -> None:
    assert wording.hours(1_331 * 3_600_000) == "1,331"
    assert wording.hours(1_260_000) == "0.3"
    assert wording.hours(1_234_567 * 3_600_000) == "1.23M"


def test_money_has_the_sign_of_its_currency_or_its_code() -> None:
    assert wording.money(17_862.4, "USD") == "$17,862"
    assert wording.money(3.571, "EUR", 2) == "€3.57"
    assert wording.money(-12, "CNY") == "-¥12"
    assert wording.money(12, "CHF") == "CHF 12"


def test_si_prefixes_keep_numbers_between_one_and_a_thousand() -> None:
    assert wording.si(989.4e12, "FLOP/s") == "989.4 TFLOP/s"
    assert wording.si(5_200.0, "W") == "5.2 kW"
    assert wording.si(12, "W") == "12 W"
    assert wording.si(0, "B/s") == "0 B/s"


def test_the_clock_is_that_of_the_zone_and_names_it() -> None:
    assert wording.clock(1_796_051_520.0, "UTC") == "15:12:00 UTC"
    assert wording.clock(1_796_051_520.0, "Asia/Shanghai") == "23:12:00 CST"
    assert wording.moment(1_796_051_520.0, "Asia/Kolkata", "en") == "30 Nov 2026 20:42"


def test_a_date_is_written_as_the_language_writes_it() -> None:
    assert wording.moment(1_796_051_520.0, "UTC", "zh") == "2026年11月30日 15:12"
    assert wording.written_day("2026-07-01", "en") == "1 Jul 2026"
    assert wording.written_day("2026-07-01", "zh") == "2026年7月1日"
    assert wording.written_day("summer 2026", "zh") == "summer 2026"


def test_a_zone_that_is_not_known_here_falls_back_to_utc_and_says_utc() -> None:
    assert wording.clock(1_796_051_520.0, "Mars/Olympus") == "15:12:00 UTC"


def test_durations_are_short_in_both_languages() -> None:
    english, chinese = View(), View(lang="zh")

    assert [english.duration(s) for s in (0, 45, 2_280, 18_000, 1_641_600)] == [
        "0 s",
        "45 s",
        "38 min",
        "5 h",
        "19 d",
    ]
    assert chinese.duration(18_000) == "5 小时"


def test_step_times_keep_three_figures() -> None:
    assert [wording.step_time(s) for s in (0.4123, 12.4, 184.2)] == ["0.412 s", "12.40 s", "184 s"]
