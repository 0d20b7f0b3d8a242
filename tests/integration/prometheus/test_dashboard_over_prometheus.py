"""``flopwatch dashboard --prometheus``: wired from settings, served, honest about what it leaves out."""

import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fixtures.listening import Server
from tests.integration.collector.static_query import STATUS
from tests.ports import free_port

from flopwatch.query import Range
from flopwatch.settings import SettingError
from flopwatch_collector.prometheus.unanswered import UNAVAILABLE
from flopwatch_dashboard.client import CollectorUnavailable
from flopwatch_dashboard.components import frame
from flopwatch_dashboard.config import DashboardSettings, settings_from
from flopwatch_dashboard.standalone import application_of
from flopwatch_dashboard.view import View
from flopwatch_deploy.dashboard import prometheus


@pytest.fixture
def served() -> Iterator[Server]:
    query = prometheus(DashboardSettings(prometheus_url=f"http://127.0.0.1:{free_port()}"))
    assert query is not None
    server = Server(application_of(query)).start()
    yield server
    server.stop()


def test_without_an_address_it_is_a_collector_s_dashboard() -> None:
    assert prometheus(DashboardSettings()) is None


def test_it_starts_while_prometheus_is_down_and_hands_no_csv_on(served: Server) -> None:
    with urllib.request.urlopen(f"{served.url}/healthz") as answer:
        assert answer.status == 200
    with urllib.request.urlopen(f"{served.url}/ui/") as answer:
        assert b"flopwatch" in answer.read()
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{served.url}/api/v1/export/ledger.csv")
    with refused.value as error:
        assert error.code == 404
        assert b"only a collector has it" in error.read()


def test_an_outage_is_shown_as_a_collector_s_is() -> None:
    query = prometheus(DashboardSettings(prometheus_url=f"http://127.0.0.1:{free_port()}"))
    assert query is not None

    for ask in (
        query.status,
        lambda: query.fleet(Range()),
        lambda: query.jobs(Range()),
        lambda: query.alerts(Range()),
    ):
        with pytest.raises(CollectorUnavailable, match="Connection refused"):
            ask()


def test_the_frame_names_what_is_left_empty() -> None:
    notice = str(frame.notice(replace(STATUS, unavailable=UNAVAILABLE), View()))

    assert "Not available from this source, so left empty: training steps, MFU" in notice
    assert "past alerts" in notice
    assert "left empty" not in str(frame.notice(STATUS, View()))


def test_settings_come_from_the_file_and_wrong_ones_are_named(tmp_path: Path) -> None:
    table = {
        "prometheus_url": "https://mimir.example.com/prometheus",
        "prometheus_headers": {"X-Scope-OrgID": "training"},
        "prometheus_ca_file": str(tmp_path / "none.pem"),
    }
    settings = settings_from({"dashboard": table}, {})

    assert settings.prometheus_headers == {"X-Scope-OrgID": "training"}
    with pytest.raises(SettingError, match=r"dashboard\.prometheus_ca_file"):
        prometheus(settings)
    with pytest.raises(
        SettingError, match=r"dashboard\.prometheus_url is 'mimir:9009'; allowed: an address such as"
    ):
        prometheus(DashboardSettings(prometheus_url="mimir:9009"))
    with pytest.raises(SettingError, match=r"dashboard\.prometheus_cluster_label"):
        DashboardSettings(prometheus_cluster_label="k8s-cluster")
    (tmp_path / "token").write_text("")
    with pytest.raises(SettingError, match=r"dashboard\.prometheus_token_file"):
        prometheus(
            DashboardSettings(prometheus_url="http://a:9090", prometheus_token_file=tmp_path / "token")
        )
