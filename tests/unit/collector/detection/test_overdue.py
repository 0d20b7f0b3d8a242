from dataclasses import replace

import pytest

from flopwatch_collector.compute.detection.overdue import (
    Silence,
    corroboration,
    may_decide,
    missing_signals,
    standing,
)

HUNG = Silence(overdue_seconds=700.0, gap_seconds=9.0, tensor_active_ratio=0.0005, power_ratio=0.12)


def test_silence_with_idle_tensor_pipes_and_low_power_is_a_hang() -> None:
    assert corroboration(HUNG) == ("tensor_off", "power_low")
    assert standing(HUNG) == "hang"


def test_two_signals_find_a_hang_within_two_minutes() -> None:
    assert standing(replace(HUNG, overdue_seconds=89.0)) == "progressing"
    assert standing(replace(HUNG, overdue_seconds=91.0)) == "hang"


def test_one_signal_waits_for_the_full_threshold() -> None:
    one = replace(HUNG, tensor_active_ratio=None)

    assert standing(replace(one, overdue_seconds=119.0)) == "progressing"
    assert standing(replace(one, overdue_seconds=121.0)) == "hang"


def test_silence_without_hardware_signals_is_only_suspect() -> None:
    alone = Silence(overdue_seconds=700.0, gap_seconds=9.0)

    assert standing(alone) == "suspect"
    assert missing_signals(alone) == ("tensor_active", "power", "network")


def test_busy_hardware_makes_silence_suspect_and_no_hang() -> None:
    assert standing(replace(HUNG, tensor_active_ratio=0.4, power_ratio=0.98)) == "suspect"


@pytest.mark.parametrize(("phase", "ceiling"), [("CKPT", 900.0), ("EVAL", 7_200.0), ("RECOVERY", 7_200.0)])
def test_an_open_phase_is_no_hang_before_its_ceiling(phase: str, ceiling: float) -> None:
    still = replace(HUNG, phase=phase, disk_writing=False)

    assert standing(replace(still, overdue_seconds=ceiling)) == "progressing"
    assert standing(replace(still, overdue_seconds=ceiling + 1.0)) == "hang"


def test_a_long_phase_is_judged_by_three_times_the_longest_it_had() -> None:
    slow = replace(HUNG, phase="CKPT", disk_writing=False, longest_phase_seconds=800.0)

    assert standing(replace(slow, overdue_seconds=2_400.0)) == "progressing"
    assert standing(replace(slow, overdue_seconds=2_401.0)) == "hang"


def test_in_a_phase_beyond_its_ceiling_nobody_is_blamed_while_something_moves_or_is_not_known() -> None:
    late = replace(HUNG, phase="CKPT", overdue_seconds=1_000.0)

    assert standing(replace(late, disk_writing=True)) == "progressing"
    assert standing(replace(late, nic_ratio=0.3)) == "progressing"
    assert standing(replace(late, nic_ratio=None)) == "suspect"
    assert standing(replace(late, tensor_active_ratio=0.4, power_ratio=0.9, nic_ratio=0.01)) == "suspect"
    assert standing(replace(late, tensor_active_ratio=0.4, power_ratio=0.9, nic_ratio=0.015)) == "progressing"


def test_a_source_that_is_not_alive_is_unknown() -> None:
    assert standing(replace(HUNG, source_alive=False)) == "unknown"


def test_pauses_the_run_had_before_are_waited_for() -> None:
    pausing = replace(HUNG, longest_pause_seconds=200.0)

    assert standing(replace(pausing, overdue_seconds=290.0)) == "progressing"
    assert standing(replace(pausing, overdue_seconds=301.0)) == "hang"


def test_a_run_that_writes_is_not_called_hung() -> None:
    assert standing(replace(HUNG, nic_ratio=0.3)) == "suspect"
    assert standing(replace(HUNG, disk_writing=True)) == "suspect"
    assert standing(replace(HUNG, nic_ratio=0.001)) == "hang"


def test_what_moves_counts_once_a_silence_is_long_enough_to_be_judged() -> None:
    assert not may_decide(None)
    assert not may_decide(Silence(gap_seconds=9.0))
    assert not may_decide(replace(HUNG, overdue_seconds=90.0))
    assert may_decide(replace(HUNG, overdue_seconds=91.0))
    assert not may_decide(replace(HUNG, gap_seconds=100.0, overdue_seconds=200.0))  # two gaps
    assert may_decide(replace(HUNG, gap_seconds=100.0, overdue_seconds=201.0))
