import numpy as np
import pytest

from flopwatch_collector.compute.detection.scores import (
    individual_score,
    persistently_slow,
    relative_scores,
)
from flopwatch_collector.compute.detection.spikes import spike_share, spikes
from flopwatch_collector.compute.progress import hang_threshold_seconds


def test_scores_are_the_best_median_over_ones_own() -> None:
    scores = relative_scores({0: [10.0], 1: [10.2], 2: [9.9], 3: [13.5]})

    assert [round(scores[rank], 3) for rank in range(4)] == [0.990, 0.971, 1.000, 0.733]


def test_only_the_rank_below_the_level_in_three_reports_is_slow() -> None:
    slow = {0: 0.99, 1: 0.97, 2: 1.0, 3: 0.733}

    assert persistently_slow([slow, slow, slow]) == {3}
    assert persistently_slow([slow, slow]) == frozenset()


def test_a_rank_that_is_slow_in_turns_is_not_persistently_slow() -> None:
    assert persistently_slow([{0: 0.7, 1: 1.0}, {0: 1.0, 1: 0.7}, {0: 0.7, 1: 1.0}]) == frozenset()


def test_a_rank_without_times_has_no_score() -> None:
    assert relative_scores({0: [], 1: [2.0]}) == {1: 1.0}


def test_an_individual_score_is_held_against_the_ranks_own_best() -> None:
    assert individual_score([9.0, 10.0], [12.0]) == 0.75
    assert individual_score([], [12.0]) is None


@pytest.mark.parametrize(("p99", "threshold"), [(12, 120), (90, 450), (200, 600), (400, 800)])
def test_a_hang_is_five_gaps_within_its_bounds(p99: float, threshold: float) -> None:
    assert hang_threshold_seconds(p99) == threshold


def test_equal_steps_need_a_tenth_more_to_spike() -> None:
    assert not spikes(np.array([10.0] * 9 + [10.5])).any()
    assert spikes(np.array([10.0] * 9 + [30.0])).tolist() == [False] * 9 + [True]


def test_the_share_of_spikes_needs_ten_steps() -> None:
    assert spike_share(np.array([10.0] * 9)) is None
    assert spike_share(np.array([10.0] * 9 + [30.0])) == 0.1
