"""The three-node example says what the collector does."""

from pathlib import Path
from xml.dom import minidom

import pytest
import tomllib

from flopwatch.settings import SettingError
from flopwatch_collector import config
from flopwatch_collector.store.clickhouse.tables import Layout, statements

EXAMPLE = Path(__file__).parents[3] / "deploy" / "clickhouse"


def test_the_schema_shown_is_the_one_that_is_made() -> None:
    shown = (EXAMPLE / "schema.sql").read_text().split("\n\n", 1)[1]
    made = statements(Layout(database="flopwatch", cluster="flopwatch", raw_days=14.0))
    assert shown == ";\n\n".join(made) + ";\n"


def test_the_collectors_settings_are_read() -> None:
    settings = config.read(tomllib.loads((EXAMPLE / "flopwatch.toml").read_text()), {}).collector
    assert (settings.store, settings.clickhouse_cluster) == ("clickhouse", "flopwatch")


def test_the_nodes_settings_name_the_cluster_and_an_odd_number_of_keepers() -> None:
    nodes = minidom.parse(str(EXAMPLE / "config.d" / "flopwatch.xml"))  # noqa: S318 - our own file
    (cluster,) = nodes.getElementsByTagName("remote_servers")[0].getElementsByTagName("flopwatch")
    hosts = [host.firstChild.data for host in cluster.getElementsByTagName("host")]
    keepers = nodes.getElementsByTagName("raft_configuration")[0].getElementsByTagName("hostname")
    assert hosts == [keeper.firstChild.data for keeper in keepers] == [f"clickhouse-{n}" for n in (1, 2, 3)]
    users = minidom.parse(str(EXAMPLE / "users.d" / "flopwatch.xml"))  # noqa: S318
    assert users.getElementsByTagName("insert_quorum")[0].firstChild.data == "auto"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"clickhouse_url": None}, r"collector\.clickhouse_url is None; allowed: an address"),
        ({"clickhouse_url": "tcp://h:9000"}, "begins with http"),
        ({"clickhouse_url": "http://u:geheim@h"}, "'http://h'; allowed: .* without user and password"),
        ({"control_url": "mysql://u:geheim@h/d"}, r"control_url is 'mysql://h/d'; allowed: .*postgresql://"),
        ({"lease_seconds": 0.5}, "1 to 600"),
        ({"clickhouse_database": " "}, "a name"),
        ({"raw_bytes": 1e9}, "raw_bytes .* unset with store"),
        ({"store": "embedded"}, 'unset, unless store = "clickhouse"'),
    ],
)
def test_settings_that_do_not_go_together_are_refused_without_their_secrets(wrong, told) -> None:
    given = {"store": "clickhouse", "clickhouse_url": "http://h:8123"} | wrong
    tables = {"collector": {name: value for name, value in given.items() if value is not None}}
    with pytest.raises(SettingError, match=told) as refused:
        config.read(tables, {})
    assert "geheim" not in str(refused.value)
