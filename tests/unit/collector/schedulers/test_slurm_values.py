"""Slurm's ways to write numbers, GPUs and ranges."""

import pytest

from flopwatch_collector.schedulers.slurm_values import (
    gpus_of,
    indices_of,
    moment,
    node_names,
    number,
    text,
    words,
)


@pytest.mark.parametrize(
    ("written", "gpus"),
    [
        ("gpu:h100:8(S:0-1)", 8),
        ("gpu:8", 8),
        ("gres:gpu:2", 2),
        ("gres/gpu:a100:4", 4),
        ("cpu=8,mem=4G,node=2,billing=8,gres/gpu=16,gres/gpu:h100=16", 16),
        ("gres/gpu:h100=8,gres/gpu:a100=8", 16),
        ("gpu:a100:2,gpu:h100:1", 3),
        ("gpu:1g.10gb:3", 3),
        ("gpu:nvidia_h100_80gb_hbm3:4(IDX:0,2-4)", 4),
        ("gpu", 1),
        ("gpu:0", 0),
        ("nic:2", None),
        ("cpu=8,gres/gpumem=80G,gres/gpuutil=50", None),
        ("gpus=4", None),
        ("", None),
    ],
)
def test_gpus_are_counted_in_every_way_they_are_written(written: str, gpus: int | None) -> None:
    assert gpus_of(written) == gpus


@pytest.mark.parametrize(
    ("written", "indices"),
    [
        ("gpu:h100:6(IDX:0-3,5,7)", (0, 1, 2, 3, 5, 7)),
        ("gpu:2(IDX:0-1),nic:1(IDX:4)", (0, 1)),
        ("gpu:a100:1(IDX:0),gpu:h100:2(IDX:4-5)", (0, 4, 5)),
        ("gpu:h100:8(IDX:N/A)", None),
        ("gpu:8", None),
        ("nic:1(IDX:0)", None),
    ],
)
def test_indices_are_known_only_where_they_are_told(written: str, indices: tuple[int, ...] | None) -> None:
    assert indices_of(written) == indices


def test_ranges_of_nodes_keep_their_zeros() -> None:
    assert node_names("gpu[001-004,007]") == ("gpu001", "gpu002", "gpu003", "gpu004", "gpu007")
    assert node_names("r[1-2]n[01-02],login") == ("r1n01", "r1n02", "r2n01", "r2n02", "login")
    assert node_names("gpu[09-11]-ib") == ("gpu09-ib", "gpu10-ib", "gpu11-ib")
    assert node_names(None) == ()


@pytest.mark.parametrize("written", ["gpu[1-", "gpu[a-b]", "gpu1]", "gpu[1-900000000]"])
def test_what_is_no_list_of_nodes_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match=r"no list|stands for more"):
        node_names(written)


def test_numbers_of_all_versions_are_read_and_unset_ones_are_not_known() -> None:
    assert number({"set": True, "infinite": False, "number": 4}) == 4.0
    assert number({"set": False, "infinite": False, "number": 0}) is None
    assert number({"set": True, "infinite": True, "number": 0}) is None
    assert number("17") == 17.0
    assert number(True) is None
    assert moment(0) is None
    assert moment(4_294_967_294) is None
    assert moment({"set": True, "infinite": False, "number": 1_796_078_173}) == 1_796_078_173.0


def test_states_are_read_as_lists_texts_and_objects() -> None:
    assert words(["RUNNING", "CONFIGURING"]) == {"RUNNING", "CONFIGURING"}
    assert words("IDLE+DRAIN") == {"IDLE", "DRAIN"}
    assert words("down*") == {"DOWN"}
    assert words({"current": ["COMPLETED"], "reason": "None"}) == {"COMPLETED"}
    assert words(None) == frozenset()


def test_words_for_nothing_are_nothing() -> None:
    assert [text(word) for word in ("(null)", "None assigned", "", "None", "alice", {"name": "normal"})] == [
        None, None, None, None, "alice", "normal",
    ]  # fmt: skip
