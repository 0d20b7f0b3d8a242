import json
from pathlib import Path
from typing import Any

import pytest

from flopwatch import cli


def config(folder: Path, text: str) -> str:
    path = folder / "flopwatch.toml"
    path.write_text(text)
    return str(path)


def test_a_test_alert_goes_to_every_channel(
    receiver: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config(
        tmp_path,
        f'[[notify]]\nname = "one"\nurl = "{receiver.url}"\n[[notify]]\nname = "two"\nurl = "{receiver.url}"\n',
    )

    status = cli.main(["alerts", "test", "--config", path])

    assert status == 0
    assert [one.body["receiver"] for one in receiver.received] == ["one", "two"]
    assert receiver.received[0].body["version"] == "4"
    assert receiver.received[0].body["commonLabels"]["alertname"] == "TestAlert"
    out = capsys.readouterr().out
    assert out == (
        f"one (http://127.0.0.1:{receiver.port}/…): delivered\n"
        f"two (http://127.0.0.1:{receiver.port}/…): delivered\n"
    )


def test_a_channel_that_does_not_take_it_is_named_with_its_problem(
    receiver: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver.statuses = [403]
    path = config(tmp_path, f'[[notify]]\nname = "oncall"\nurl = "{receiver.url}"\n')

    status = cli.main(["alerts", "test", "--config", path, "--json"])

    assert status == 1
    assert json.loads(capsys.readouterr().out) == {
        "results": [
            {
                "channel": "oncall",
                "address": f"http://127.0.0.1:{receiver.port}/…",
                "delivered": False,
                "problem": "answered 403",
            }
        ]
    }


def test_without_a_channel_it_says_how_to_add_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = cli.main(["alerts", "test", "--config", config(tmp_path, "[alerts]\n")])

    assert status == 2
    assert "[[notify]]" in capsys.readouterr().err


def test_a_wrong_setting_stops_it_with_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = config(tmp_path, '[[notify]]\nname = "oncall"\nurl = "mailto:ops@example.com"\n')

    assert cli.main(["alerts", "test", "--config", wrong]) == 2
    assert "notify.oncall.url" in capsys.readouterr().err


def test_an_unknown_rule_in_send_stops_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = config(tmp_path, '[alerts]\nsend = ["MfuLo"]\n')

    assert cli.main(["alerts", "test", "--config", wrong]) == 2
    assert "alerts.send is 'MfuLo'" in capsys.readouterr().err
