"""``flopwatch logs check``: the document, the report, the exit status."""

import json
from pathlib import Path

import pytest

from flopwatch_agent import log_check

LOGS = Path(__file__).parents[2] / "fixtures" / "trainer_logs"


def test_the_document_has_the_rows_of_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    status = log_check.main(["check", str(LOGS / "llm_c_v2.log"), "--json"])

    document = json.loads(capsys.readouterr().out)
    assert status == 0
    assert document["schema"] == "trainer-log-expected/1"
    assert len(document["steps"]) == 36
    assert document["steps"][1]["step_time_s"] == pytest.approx(0.14925)
    assert document["run"]["world_size"] == 8
    assert document["run"]["device_name"] == "NVIDIA H100 80GB HBM3"


def test_the_kind_of_a_file_follows_from_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    for name, rows in (("lightning_csvlogger.csv", 20), ("mlflow_iteration_time.metric", 30)):
        log_check.main(["check", str(LOGS / name), "--json"])
        assert len(json.loads(capsys.readouterr().out)["steps"]) == rows


def test_the_report_names_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    status = log_check.main(["check", str(LOGS / "torchtune_disk.txt")])

    report = capsys.readouterr().out
    assert status == 0
    assert "trainer: torchtune; 32 rows" in report
    assert "unknown" in report
    assert "not found: model shape, parameter count, world size, tokens per step, number format" in report


def test_a_file_without_steps_is_status_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "build.log").write_text("gcc -c x.c\n")

    status = log_check.main(["check", str(tmp_path / "build.log")])

    assert status == 1
    assert "none recognised; 0 rows" in capsys.readouterr().out


def test_a_missing_file_and_a_wrong_unit_are_status_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = log_check.main(["check", str(tmp_path / "none")])
    (tmp_path / "x").write_text("it=1\n")
    wrong = log_check.main(["check", str(tmp_path / "x"), "--format", r"it=(?P<step>\d+)", "--unit", "step"])

    assert (missing, wrong) == (2, 2)
    assert "--unit is 'step'; allowed: GROUP=UNIT" in capsys.readouterr().err
