"""``flopwatch goodput model``: the loss model with values of one's own."""

import json

import pytest

from flopwatch.goodput_command import main


def answer(capsys, *arguments):
    assert main(["model", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_published_failure_rate_loses_2_31_percent_before_saves(capsys):
    """128 nodes at 6.5e-3 a node and day, 10 minutes to detect and restart, a checkpoint an hour."""
    said = answer(
        capsys, "--failures-per-node-day", "6.5e-3", "--nodes", "128", "--detect", "4m", "--restart", "6m",
        "--interval", "60m", "--save", "0",
    )  # fmt: skip

    assert said["lost_ratio"] == pytest.approx(0.0231, abs=5e-5)
    assert said["ettr_ratio"] == pytest.approx(0.977, abs=5e-4)


def test_without_an_interval_the_best_one_is_taken(capsys):
    said = answer(capsys, "--mttf", "7.9h", "--restart", "0", "--save", "60s")

    assert said["interval_seconds"] / 60 == pytest.approx(30.8, abs=0.05)
    assert said["lost_ratio"] == pytest.approx(2 * 60 / said["interval_seconds"])
    assert next(gain["ratio"] for gain in said["gains"] if gain["name"] == "checkpoint_optimum") == 0.0


def test_people_get_a_line_a_figure(capsys):
    assert main(["model", "--mttf", "1d", "--restart", "10m", "--save", "1m", "--interval", "1h"]) == 0

    printed = capsys.readouterr().out
    assert "ETTR" in printed
    assert "gain: restart_halved" in printed


@pytest.mark.parametrize(
    "arguments",
    [
        ["model", "--mttf", "soon"],
        ["model", "--restart", "1m", "--save", "1m"],
        ["model", "--mttf", "-1h"],
        [],
    ],
)
def test_wrong_use_ends_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err
