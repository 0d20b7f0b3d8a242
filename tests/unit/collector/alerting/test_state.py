from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from flopwatch_collector.alerting.state import AlertRecord, Condition, Reading, advance, fingerprint

LABELS = {"cluster": "a", "job_id": "j1"}


def reading(condition: Condition, at: float, *, for_seconds: float = 600.0, keep: float = 300.0) -> Reading:
    return Reading(
        rule="MfuLow",
        severity="warning",
        labels=LABELS,
        condition=condition,
        time_seconds=at,
        for_seconds=for_seconds,
        keep_seconds=keep,
        gap_seconds=60.0,
        values={"mfu": 0.3} if condition == "bad" else {},
        summary="low" if condition == "bad" else "",
    )


def play(*steps: tuple[Condition, float, float], every: float = 15.0, **timing: float) -> AlertRecord | None:
    """The record after stretches of (condition, from, to), read every 15 s."""
    record = None
    for condition, begin, end in steps:
        at = begin
        while at < end:
            record = advance(record, reading(condition, at, **timing), at)
            at += every
    return record


def test_a_bad_condition_is_pending_until_it_has_held_for_its_time() -> None:
    before = play(("bad", 0, 600))
    after = play(("bad", 0, 601))

    assert before is not None
    assert before.state == "pending"
    assert before.valid_seconds == 585.0
    assert after is not None
    assert (after.state, after.fired_seconds, after.active_since_seconds) == ("firing", 600.0, 0.0)


def test_a_zero_for_fires_at_once() -> None:
    record = advance(None, reading("bad", 100.0, for_seconds=0.0), 100.0)

    assert record is not None
    assert (record.state, record.fired_seconds) == ("firing", 100.0)


def test_a_pending_alert_that_is_no_longer_bad_is_inactive() -> None:
    assert play(("bad", 0, 300), ("between", 300, 315)) is None
    assert play(("bad", 0, 300), ("good", 300, 315)) is None


def test_it_resolves_only_after_the_clear_level_has_held() -> None:
    clearing = play(("bad", 0, 601), ("good", 615, 900))
    resolved = play(("bad", 0, 601), ("good", 615, 916))

    assert clearing is not None
    assert clearing.state == "clearing"
    assert resolved is not None
    assert (resolved.state, resolved.resolved_seconds) == ("resolved", 915.0)
    assert resolved.resolved_reason == "recovered"


def test_between_the_levels_it_goes_on_firing() -> None:
    record = play(("bad", 0, 601), ("good", 615, 800), ("between", 800, 5_000))

    assert record is not None
    assert (record.state, record.fired_seconds) == ("firing", 600.0)


def test_a_pause_stops_the_clock_and_does_not_reset_it() -> None:
    waiting = play(("bad", 0, 301), ("paused", 315, 3_000), ("bad", 3_000, 3_300))
    fired = play(("bad", 0, 301), ("paused", 315, 3_000), ("bad", 3_000, 3_301))

    assert waiting is not None
    assert waiting.state == "pending"
    assert fired is not None
    assert (fired.state, fired.fired_seconds) == ("firing", 3_300.0)


def test_a_short_gap_pauses_and_a_long_one_means_no_data() -> None:
    short = play(("bad", 0, 301), ("missing", 315, 600), ("bad", 600, 900))
    long = play(("bad", 0, 301), ("missing", 315, 1_000))
    again = play(("bad", 0, 301), ("missing", 315, 1_000), ("bad", 1_000, 1_600))

    assert short is not None
    assert (short.state, short.valid_seconds) == ("pending", 585.0)
    assert long is not None
    assert (long.state, long.stale) == ("no_data", True)
    assert again is not None
    assert (again.state, again.active_since_seconds, again.valid_seconds) == ("pending", 1_000.0, 585.0)


def test_silence_never_resolves_a_firing_alert() -> None:
    record = play(("bad", 0, 601), ("missing", 615, 100_000), every=60.0, for_seconds=600.0)

    assert record is not None
    assert (record.state, record.stale, record.resolved_seconds) == ("firing", True, None)


def test_an_evaluation_gap_after_a_restart_does_not_count_as_time_below() -> None:
    record = play(("bad", 0, 301))
    record = advance(record, reading("bad", 4_000.0), 4_000.0)

    assert record is not None
    assert (record.state, record.valid_seconds) == ("pending", 300.0)


def test_a_job_that_ended_resolves_with_that_reason() -> None:
    firing = play(("bad", 0, 601))
    pending = play(("bad", 0, 301))

    ended = advance(firing, reading("gone", 700.0), 700.0)

    assert ended is not None
    assert (ended.state, ended.resolved_reason, ended.resolved_seconds) == ("resolved", "ended", 700.0)
    assert advance(pending, reading("gone", 700.0), 700.0) is None


def test_the_fourth_firing_within_an_hour_is_flapping_and_held_until_quiet_for_half_an_hour() -> None:
    record = None
    at = 0.0
    for _ in range(4):
        record = advance(record, reading("bad", at, for_seconds=0.0, keep=0.0), at)
        at += 60.0
        quiet = advance(record, reading("good", at, for_seconds=0.0, keep=0.0), at)
        record, flapping = quiet, record
        at += 60.0

    assert flapping is not None
    assert (flapping.flapping, flapping.fired_seconds) == (True, 360.0)
    assert record is not None
    assert record.state == "clearing"
    at = 420.0
    while record.state == "clearing":
        at += 60.0
        after = advance(record, reading("good", at, for_seconds=0.0, keep=0.0), at)
        assert after is not None
        record = after
    assert (record.state, record.resolved_seconds, record.flapping) == ("resolved", 420.0 + 1_800.0, False)


def test_a_condition_known_to_have_begun_earlier_counts_from_there() -> None:
    seen = replace(reading("bad", 2_000.0), since_seconds=1_300.0)

    record = advance(None, seen, 2_000.0)

    assert record is not None
    assert (record.state, record.active_since_seconds) == ("firing", 1_300.0)


def test_the_fingerprint_is_of_the_rule_and_its_identity_whatever_their_order() -> None:
    one = fingerprint("MfuLow", {"cluster": "a", "job_id": "j1"})

    assert one == fingerprint("MfuLow", {"job_id": "j1", "cluster": "a"})
    assert len(one) == 64
    assert one != fingerprint("MfuLow", {"cluster": "a", "job_id": "j2"})
    assert one != fingerprint("JobHang", {"cluster": "a", "job_id": "j1"})
    assert fingerprint("R", {"a": "x", "b": "y"}) != fingerprint("R", {"a": "xb", "b": ""})


def test_new_values_of_a_firing_alert_leave_its_identity_alone() -> None:
    record = play(("bad", 0, 601))
    worse = advance(record, replace(reading("bad", 615.0), values={"mfu": 0.1}, severity="critical"), 615.0)

    assert record is not None
    assert worse is not None
    assert worse.fingerprint == record.fingerprint
    assert (worse.values, worse.severity) == ({"mfu": 0.1}, "critical")


CONDITIONS = st.sampled_from(["bad", "between", "good", "paused", "missing"])


@given(st.lists(st.tuples(CONDITIONS, st.floats(0.1, 200.0)), max_size=60), st.floats(1.0, 600.0))
def test_it_never_fires_before_the_condition_has_held_for_its_time(
    story: list[tuple[Condition, float]], for_seconds: float
) -> None:
    record = None
    at = held = 0.0
    previous: Condition = "good"
    for condition, passed in story:
        at += passed
        if condition in ("between", "good"):
            held = 0.0
        elif condition == "bad" and previous == "bad":
            held += passed
        before = record.state if record else "inactive"
        record = advance(record, reading(condition, at, for_seconds=for_seconds, keep=0.0), at)
        if record is not None and record.state == "firing" and before in ("inactive", "pending", "no_data"):
            assert held >= for_seconds - 1e-6
            held = 0.0
        previous = condition


@given(st.lists(st.tuples(CONDITIONS, st.floats(0.1, 2_000.0)), max_size=60))
def test_only_good_evidence_resolves(story: list[tuple[Condition, float]]) -> None:
    record = None
    at = 0.0
    for condition, passed in story:
        at += passed
        before = record
        record = advance(record, reading(condition, at, for_seconds=30.0, keep=30.0), at)
        if before is not None and before.state in ("firing", "clearing"):
            assert record is not None
            assert record.state != "resolved" or condition == "good"
