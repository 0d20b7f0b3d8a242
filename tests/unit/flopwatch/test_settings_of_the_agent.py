"""The agent's settings from tables and environment."""

from pathlib import Path

import pytest

from flopwatch.settings import SettingError
from flopwatch_agent.config import data_folder, settings_from, socket_path


def test_defaults_are_those_of_the_documentation() -> None:
    chosen = settings_from({}, {})

    assert (chosen.port, chosen.interval_seconds, chosen.cluster, chosen.collector_url) == (
        9095,
        10.0,
        "default",
        None,
    )
    assert chosen.node_name


def test_the_environment_overrules_the_file() -> None:
    tables = {"agent": {"port": 1, "interval_seconds": 5, "log_globs": ["/a/*.log"]}}

    chosen = settings_from(tables, {"FLOPWATCH_AGENT_PORT": "2", "FLOPWATCH_AGENT_GPM": "false"})

    assert (chosen.port, chosen.interval_seconds, chosen.log_globs, chosen.gpm) == (
        2,
        5.0,
        ("/a/*.log",),
        False,
    )


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ({"port": -1}, "agent.port"), ({"port": "9095"}, "agent.port"),
        ({"interval_seconds": 61}, "agent.interval_seconds"),
        ({"interval_seconds": float("nan")}, "agent.interval_seconds"), ({"cluster": ""}, "agent.cluster"),
        ({"node": "a\nb"}, "agent.node"), ({"spool_max_bytes": 5}, "agent.spool_max_bytes"),
        ({"collector_url": "ftp://x"}, "agent.collector_url"),
        ({"collector_url": "http://x:99999"}, "agent.collector_url"),
    ],
)  # fmt: skip
def test_a_value_out_of_range_is_named(table: dict[str, object], name: str) -> None:
    with pytest.raises(SettingError, match=name.replace(".", r"\.")):
        settings_from({"agent": table}, {})


def test_the_token_does_not_show_in_the_settings_text() -> None:
    assert "fw_secret" not in repr(settings_from({}, {"FLOPWATCH_AGENT_TOKEN": "fw_secret"}))


def test_the_socket_may_be_switched_off_or_put_elsewhere() -> None:
    off = settings_from({"agent": {"sdk_socket": "off"}}, {})
    named = settings_from({"agent": {"sdk_socket": "/x/y.sock"}}, {})

    assert socket_path(off, {}) is None
    assert socket_path(named, {}) == Path("/x/y.sock")


def test_the_data_folder_is_the_one_that_is_set() -> None:
    assert data_folder(settings_from({"agent": {"data_dir": "/spool"}}, {}), {}) == Path("/spool")


def test_a_token_file_named_by_the_environment_is_read_again_each_time(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first\n")
    chosen = settings_from({}, {"FLOPWATCH_AGENT_TOKEN_FILE": str(tmp_path / "token")})

    assert chosen.bearer() == "first"
    (tmp_path / "token").write_text("second")
    assert chosen.bearer() == "second"
    (tmp_path / "token").write_text("")
    with pytest.raises(SettingError, match="it is empty"):
        chosen.bearer()
