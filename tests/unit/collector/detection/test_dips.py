"""Regular dips of a run's pace, and what it writes in them; each figure worked out by hand."""

import numpy as np
import pytest

from flopwatch_collector.compute.detection.dips import Dips, periodic_dips, told_seconds
from flopwatch_collector.compute.detection.writes import writes_during, writes_since
from flopwatch_collector.model import PHASE_KINDS

NAN = float("nan")
NO_PHASES = {name: np.empty(0) for name in ("ts", "end", "kind")}


def course(apart, *, covered=1, lost=()):
    """Reports of a session that end so many seconds after one another."""
    ends = np.concatenate(([0.0], np.cumsum(np.asarray(apart, dtype=float))))
    count = ends.size
    return {
        "ts": ends,
        "step": np.arange(count) * float(covered),
        "session": np.ones(count),
        "lost": np.isin(np.arange(count), lost),
    }


def every(period, dip, *, count=100, usual=10.0, first=None):
    """So many seconds a step, and a dip at every so many of them."""
    return [
        usual + (dip if number % period == (first or period - 1) % period else 0.0) for number in range(count)
    ]


def test_a_pause_at_every_twentieth_step_is_its_share_of_whole_periods() -> None:
    found = periodic_dips(course(every(20, 50.0)), NO_PHASES)

    assert found is not None
    # 50 s in every 20 x 10 s + 50 s.
    assert found.lost_ratio == pytest.approx(50 / 250)
    assert (found.period_steps, found.period_seconds) == (20.0, 250.0)
    assert found.dip_seconds == pytest.approx(50.0)
    # The first is the 20th step: from 190 s to 250 s.
    assert (found.begins[0], found.ends[0]) == (190.0, 250.0)


def test_pauses_of_many_lengths_every_ten_minutes_follow_the_clock_and_not_the_steps() -> None:
    # 57 steps and 30 s, then 36 steps and 240 s: ten minutes either way.
    apart = ([10.0] * 56 + [40.0] + [10.0] * 35 + [250.0]) * 5

    found = periodic_dips(course(apart), NO_PHASES)

    assert found is not None
    assert (found.period_seconds, found.period_steps) == (600.0, None)
    # Between the first dip and the last: five of 240 s, four of 30 s, in nine periods.
    assert found.lost_ratio == pytest.approx((5 * 240 + 4 * 30) / 5_400)


def test_reports_of_several_steps_hide_in_which_of_them_the_pause_was() -> None:
    # Reports every 10 steps of 1 s, a pause of 15 s every 250 steps: in the report that ends at or after it.
    pauses = [(at + 9) // 10 for at in range(250, 2_501, 250)]
    apart = [10.0 + (15.0 if number + 1 in pauses else 0.0) for number in range(250)]

    found = periodic_dips(course(apart, covered=10), NO_PHASES)

    assert found is not None
    assert found.period_steps == 250.0
    assert found.lost_ratio == pytest.approx(15 / 265)


def test_a_pause_that_reaches_into_the_next_step_is_one_dip() -> None:
    apart = every(15, 30.0, count=120)
    for number in range(15, 120, 15):
        apart[number] += 8.0

    found = periodic_dips(course(apart), NO_PHASES)

    assert found is not None
    assert (found.period_steps, found.period_seconds) == (15.0, 188.0)
    # Eight dips of 30 s, all but the last with 8 s of the next step.
    assert found.dip_seconds == pytest.approx(30.0 + 7 * 8.0 / 8)


@pytest.mark.parametrize("seed", range(40))
def test_long_steps_at_random_are_not_regular(seed: int) -> None:
    random = np.random.default_rng(seed)
    apart = 10.0 * random.normal(1.0, 0.02, 400)
    apart[random.random(400) < 0.04] += 40.0

    assert periodic_dips(course(apart), NO_PHASES) is None


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.10])
def test_noise_alone_is_no_dip(noise: float) -> None:
    apart = 10.0 * np.random.default_rng(1).normal(1.0, noise, 400)

    assert periodic_dips(course(apart), NO_PHASES) is None


def test_every_second_step_that_takes_longer_is_the_runs_usual_pace() -> None:
    assert periodic_dips(course(every(2, 10.0)), NO_PHASES) is None


def test_three_dips_are_too_few() -> None:
    assert periodic_dips(course(every(30, 50.0)), NO_PHASES) is None


def test_steps_that_were_rolled_back_and_sessions_before_the_newest_do_not_count() -> None:
    steps = course(every(20, 50.0))
    steps["session"] = np.where(np.arange(101) < 90, 1, 2)

    assert periodic_dips(steps, NO_PHASES) is None
    assert periodic_dips(course(every(20, 50.0), lost=range(101)), NO_PHASES) is None


def test_told_phases_need_no_guess_and_communication_is_within_steps() -> None:
    begins = [190.0 + 250.0 * number for number in range(5)]
    kinds = {name: PHASE_KINDS.index(name) for name in ("checkpoint", "communication")}

    def phases(kind):
        return {
            "ts": np.array(begins), "end": np.array(begins) + 50.0, "kind": np.full(5, kinds[kind]),
        }  # fmt: skip

    assert periodic_dips(course(every(20, 50.0)), phases("checkpoint")) is None
    assert periodic_dips(course(every(20, 50.0)), phases("communication")) is not None


def test_told_seconds_of_an_interval_are_those_within_it() -> None:
    phases = {
        "ts": np.array([5.0, 28.0]), "end": np.array([12.0, NAN]), "kind": np.array([2.0, 3.0]),
    }  # fmt: skip

    told = told_seconds(phases, np.array([0.0, 10.0, 20.0]), np.array([10.0, 20.0, 30.0]))

    # 5 to 10, 10 to 12, and what still lasts from 28 on.
    assert told.tolist() == [5.0, 2.0, 2.0]


DIPS = Dips(
    lost_ratio=0.2, period_seconds=300.0, period_steps=30.0, dip_seconds=60.0,
    begins=np.array([100.0, 400.0, 700.0, 1_000.0]), ends=np.array([160.0, 460.0, 760.0, 1_060.0]),
)  # fmt: skip


def hosts(written, *, node=1.0, step=10.0):
    """Samples of a node, of which the counter says what it wrote by each time."""
    times = np.arange(0.0, 1_201.0, step)
    return {
        "ts": times,
        "node": np.full(times.size, node),
        "disk_write_bytes": np.array([written(at) for at in times.tolist()]),
    }


def in_dips(rate):
    """Bytes written by a time at so many a second in the dips only."""

    def written(at):
        return rate * sum(min(max(at - begin, 0.0), 60.0) for begin in DIPS.begins.tolist())

    return written


def both(first, second):
    return {name: np.concatenate([first[name], second[name]]) for name in first}


def test_a_node_that_writes_in_dips_only_writes_checkpoints() -> None:
    assert writes_during(hosts(in_dips(1e9)), DIPS) is True
    assert writes_during(both(hosts(lambda at: 0.0), hosts(in_dips(1e9), node=2.0)), DIPS) is True


def test_writes_that_the_kernel_makes_a_little_later_count_as_well() -> None:
    assert writes_during(hosts(lambda at: in_dips(1e9)(at - 25.0)), DIPS) is True


def test_writes_at_all_times_are_not_those_of_checkpoints() -> None:
    assert writes_during(hosts(lambda at: 5e7 * at), DIPS) is False
    # Between dips as well: 40 MB/s against 100 MB/s in them, less than three times as much.
    assert writes_during(hosts(lambda at: 4e7 * at + in_dips(6e7)(at)), DIPS) is False


def test_a_log_that_is_flushed_in_dips_is_no_checkpoint() -> None:
    assert writes_during(hosts(in_dips(1e6)), DIPS) is False


def test_counters_that_never_grow_or_are_not_known_say_nothing() -> None:
    assert writes_during(hosts(lambda at: 7.0), DIPS) is None
    assert writes_during(hosts(lambda at: NAN), DIPS) is None
    assert writes_during({name: values[:0] for name, values in hosts(in_dips(1.0)).items()}, DIPS) is None


def test_a_counter_that_begins_anew_is_not_taken_for_writes() -> None:
    assert writes_during(hosts(lambda at: 1e12 if at < 630.0 else 5.0), DIPS) is None


def test_writes_in_a_silence_are_those_of_its_newest_two_minutes() -> None:
    assert writes_since(hosts(lambda at: 2e7 * at), 900.0, 1_200.0) is True
    assert writes_since(hosts(lambda at: 2e7 * min(at, 1_050.0)), 900.0, 1_200.0) is False
    assert writes_since(hosts(lambda at: NAN), 900.0, 1_200.0) is None
