"""Small pure rules of the sources: field tables, host counters, permissions, states of ports."""

import os

import pytest

from flopwatch_agent.gpu_reader import ratio
from flopwatch_agent.nvml_fields import DETAIL_FIELDS, FIELDS, branch_of, known_on
from flopwatch_agent.permissions import allows
from flopwatch_agent.sources.host import MEMORY, cpu_ratios, meminfo, pressure_ratio
from flopwatch_agent.sources.network import port_is_active, rate_bits


def ids(version: str | None) -> set[int]:
    return {field.field_id for field in known_on((*FIELDS, *DETAIL_FIELDS), branch_of(version))}


def test_ids_that_changed_their_meaning_are_asked_only_where_it_is_known() -> None:
    assert not ids("570.124.06") & set(range(251, 274))
    assert ids("575.51.03") & set(range(251, 274)) == {251, 252, 253}
    assert ids("580.126.09") & set(range(251, 274)) == {269, 270, 271}
    assert ids("615.1") & set(range(251, 274)) == {269, 270, 271}
    assert not ids(None) & set(range(230, 274))


@pytest.mark.parametrize(
    ("version", "branch"), [("580.126.09", 580), ("470", 470), ("", None), (None, None), ("x.1", None)]
)
def test_the_branch_is_the_first_number_of_the_driver(version: str | None, branch: int | None) -> None:
    assert branch_of(version) == branch


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 0.0), (50, 0.5), (100, 1.0), (101, None), (-1, None), (2**32 - 1, None)]
)
def test_a_percentage_outside_its_range_is_unknown(percent: float, value: float | None) -> None:
    assert ratio(percent) == value


def test_cpu_shares_are_unknown_when_a_counter_went_back() -> None:
    assert cpu_ratios((10, 0, 0, 10, 0), (5, 0, 0, 20, 0)) == (None, None)
    assert cpu_ratios((10, 0, 0, 10, 0), (10, 0, 0, 10, 0)) == (None, None)


def test_lines_that_are_no_sizes_are_left_out_of_meminfo() -> None:
    assert meminfo("MemTotal: 2 kB\nHugePages_Total: 5\nodd\nA: x kB", MEMORY) == {"MemTotal": 2048}


def test_pressure_is_unknown_without_accounting() -> None:
    assert pressure_ratio("") is None


@pytest.mark.parametrize(
    ("text", "active"), [("4: ACTIVE", True), ("1: DOWN", False), ("9: NEW", None), ("", None), (None, None)]
)
def test_a_ports_state_is_its_number(text: str | None, active: bool | None) -> None:
    assert port_is_active(text) is active


@pytest.mark.parametrize(
    ("text", "bits"), [("400 Gb/sec (4X NDR)", 4e11), ("2.5 Gb/sec (1X SDR)", 2.5e9), ("", None), ("?", None)]
)
def test_a_ports_rate_is_in_bits_a_second(text: str, bits: float | None) -> None:
    assert rate_bits(text) == bits


def status(mode: int, uid: int = 1000, gid: int = 100) -> os.stat_result:
    return os.stat_result((0o100000 | mode, 1, 1, 1, uid, gid, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("mode", "uid", "groups", "allowed"),
    [
        (0o600, 1000, {5}, True), (0o600, 1001, {100}, False), (0o640, 1001, {100}, True), (0o640, 1001, {5}, False),
        (0o604, 1001, {5}, True), (0o064, 1000, {100}, False), (0o000, 0, {0}, True), (0o604, 1001, {100}, False),
    ],
)  # fmt: skip
def test_a_mode_allows_by_the_first_class_that_fits(
    mode: int, uid: int, groups: set[int], allowed: bool
) -> None:
    assert allows(status(mode), uid, frozenset(groups)) is allowed
