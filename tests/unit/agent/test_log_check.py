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
    said = capsys.readouterr().err
    assert f"flopwatch: {tmp_path / 'none'} cannot be read: No such file or directory\n" in said
    assert "--unit is 'step'; allowed: GROUP=UNIT" in said


def test_the_shape_that_the_sdk_told_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = {"n_layers": 2, "hidden": 64, "ffn_hidden": 256, "n_heads": 4, "vocab": 1000}
    lines = [{"event": "run", "world_size": 8, "shape": shape}]
    lines += [{"event": "step", "step": n, "end_time_seconds": 1000.0 + n, "seconds": 1.0} for n in range(3)]
    (tmp_path / "a.log").write_text("".join(f"flopwatch: {json.dumps(line)}\n" for line in lines))

    log_check.main(["check", str(tmp_path / "a.log"), "--json"])

    document = json.loads(capsys.readouterr().out)
    assert document["run"]["model"] == shape
    assert document["not_found"] == ["parameter count", "tokens per step", "number format"]


def test_the_formats_of_the_settings_file_are_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.log").write_text("".join(f"it={n} dt=250\n" for n in range(4)))
    settings = tmp_path / "flopwatch.toml"
    settings.write_text(
        "[[agent.log_format]]\nname = 'ours'\nexpression = 'it=(?P<step>\\d+) dt=(?P<seconds>[\\d.]+)'\n"
        "units = {seconds = 'ms'}\n"
    )

    log_check.main(["check", str(tmp_path / "a.log"), "--json", "--config", str(settings)])

    document = json.loads(capsys.readouterr().out)
    assert [(row["step"], row["step_time_s"]) for row in document["steps"]] == [
        (0, 0.25), (1, 0.25), (2, 0.25), (3, 0.25),
    ]  # fmt: skip


def test_a_wrong_format_of_the_settings_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.log").write_text("x\n")
    settings = tmp_path / "flopwatch.toml"
    settings.write_text("[[agent.log_format]]\nexpression = 'it=(?P<step>'\n")

    assert log_check.main(["check", str(tmp_path / "a.log"), "--config", str(settings)]) == 2
    assert "agent.log_format[0].expression" in capsys.readouterr().err
