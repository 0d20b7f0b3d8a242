import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fastapi import FastAPI, Request, Response
from fastapi.testclient import TestClient
from tests.fixtures.dashboard_cluster import ClusterQuery
from tests.fixtures.listening import Server

from flopwatch.query import Range
from flopwatch.settings import SettingError
from flopwatch_dashboard.__main__ import main
from flopwatch_dashboard.client import CollectorUnavailable, HttpQuery
from flopwatch_dashboard.config import DashboardSettings, settings_from
from flopwatch_dashboard.standalone import application

ASKED = Range(seconds=21_600.0, cluster="train a", points=300)


def economy_route(api: FastAPI, query: ClusterQuery, requests: list[Request]) -> None:
    """The Breakeven page's answer; a negative input is refused."""

    @api.get("/api/v1/query/economy")
    def economy(request: Request, overrides: str = "") -> Response:
        requests.append(request)
        message = '{"error": "invalid", "message": "setting costs.own.pue is -1.0; allowed: 1 or more"}'
        if "=-" in overrides:
            return Response(message, status_code=422, media_type="application/json")
        return Response(msgspec.json.encode(query.economy(ASKED, {})), media_type="application/json")


def collector(query: ClusterQuery, requests: list[Request]) -> FastAPI:
    """The collector's query routes over the cluster, as its contract describes them."""
    api = FastAPI(openapi_url=None)

    def answer(value: Any) -> Response:
        if value is None:
            return Response('{"detail": "no such job"}', status_code=404, media_type="application/json")
        return Response(msgspec.json.encode(value), media_type="application/json")

    economy_route(api, query, requests)

    @api.get("/api/v1/query/{name}")
    def named(name: str, request: Request) -> Response:
        requests.append(request)
        if name == "status":
            return answer(query.status())
        if name == "broken":
            return Response("{")
        return answer(getattr(query, name)(ASKED))

    @api.get("/api/v1/query/jobs/{job_id:path}")
    def job(job_id: str, request: Request) -> Response:
        requests.append(request)
        return answer(query.job(job_id, ASKED))

    @api.get("/api/v1/export/{name}.csv")
    def export(name: str, request: Request) -> Response:
        requests.append(request)
        return Response(f"{name},gpu_hours\n", media_type="text/csv")

    return api


@pytest.fixture
def asked() -> list[Request]:
    return []


@pytest.fixture
def remote(asked: list[Request]) -> Iterator[HttpQuery]:
    server = Server(collector(ClusterQuery(), asked)).start()
    yield HttpQuery(server.url, "secret", timeout_seconds=5)
    server.stop()


def test_every_answer_arrives_as_it_was_given(remote: HttpQuery) -> None:
    local = ClusterQuery()

    assert remote.status() == local.status()
    assert remote.fleet(ASKED) == local.fleet(ASKED)
    assert remote.jobs(ASKED) == local.jobs(ASKED)
    assert remote.job("train-a-1001", ASKED) == local.job("train-a-1001", ASKED)
    assert remote.alerts(ASKED) == local.alerts(ASKED)


def test_the_question_and_the_token_are_sent(remote: HttpQuery, asked: list[Request]) -> None:
    remote.fleet(ASKED)

    assert dict(asked[0].query_params) == {"seconds": "21600", "points": "300", "cluster": "train a"}
    assert asked[0].headers["authorization"] == "Bearer secret"


def test_changed_inputs_are_sent_and_a_refused_one_is_named(remote: HttpQuery, asked: list[Request]) -> None:
    answer = remote.economy(ASKED, {"own.pue": 1.25, "cloud.uplift_ratio": 0.1})

    assert answer == ClusterQuery().economy(ASKED, {})
    assert asked[0].query_params["overrides"] == "cloud.uplift_ratio=0.1,own.pue=1.25"
    with pytest.raises(ValueError, match=r"costs\.own\.pue is -1\.0; allowed: 1 or more"):
        remote.economy(ASKED, {"own.pue": -1.0})


def test_a_job_that_is_not_there_is_none(remote: HttpQuery) -> None:
    assert remote.job("k8s:x/y z", ASKED) is None


def test_a_collector_that_is_down_is_named() -> None:
    query = HttpQuery("http://127.0.0.1:1", None, timeout_seconds=2)

    with pytest.raises(CollectorUnavailable, match=r"http://127\.0\.0\.1:1/api/v1/query/status"):
        query.status()


def test_an_answer_that_is_none_is_named(remote: HttpQuery) -> None:
    with pytest.raises(CollectorUnavailable, match="not the answer expected"):
        remote._ask("broken", dict, None)


def test_the_own_process_hands_the_csv_on(remote: HttpQuery, asked: list[Request]) -> None:
    with TestClient(application(remote)) as client:
        answer = client.get("/api/v1/export/ledger.csv?seconds=3600")

    assert answer.text == "ledger,gpu_hours\n"
    assert answer.headers["content-disposition"] == 'attachment; filename="flopwatch-ledger.csv"'
    assert dict(asked[-1].query_params) == {"seconds": "3600"}


def test_the_own_process_says_when_the_collector_is_down() -> None:
    with TestClient(application(HttpQuery("http://127.0.0.1:1", None, 2))) as client:
        assert client.get("/healthz").json() == {"ok": True}
        assert client.get("/api/v1/export/ledger.csv").status_code == 502
        assert client.get("/api/v1/export/passwords.csv").status_code == 422


def test_settings_come_from_the_file_and_the_environment() -> None:
    settings = settings_from(
        {"dashboard": {"port": 9000}}, {"FLOPWATCH_DASHBOARD_COLLECTOR_URL": "https://c:1"}
    )

    assert settings == DashboardSettings(port=9000, collector_url="https://c:1")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"port": 0}, "dashboard.port is 0; allowed: 1 to 65535"),
        (
            {"collector_url": "collector:8095"},
            "dashboard.collector_url is 'collector:8095'; allowed: an address",
        ),
        ({"timeout_seconds": 0}, "dashboard.timeout_seconds is 0.0; allowed: 0.1 to 300"),
        ({"colour": "red"}, "dashboard.colour is 'red'; allowed: one of collector_url"),
        ({"token": "a", "token_file": "b"}, "dashboard.token_file is 'b'; allowed: absent"),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_allowed(table: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError) as error:
        settings_from({"dashboard": table}, {})

    assert message in str(error.value)


def test_the_token_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")

    assert DashboardSettings(token_file=file).bearer() == "secret"
    file.write_text(" ")
    with pytest.raises(SettingError, match="it is empty"):
        DashboardSettings(token_file=file).bearer()
    with pytest.raises(SettingError, match="a readable file"):
        DashboardSettings(token_file=tmp_path / "none").bearer()


def test_a_taken_port_is_one_clear_line() -> None:
    server = Server(FastAPI()).start()
    port = server.url.rpartition(":")[2]
    try:
        with pytest.raises(SettingError, match=f"dashboard.port is '127.0.0.1:{port}'"):
            main(["--port", port])
    finally:
        server.stop()


def test_settings_hide_the_token() -> None:
    settings = dataclasses.replace(DashboardSettings(), token="secret")

    assert "secret" not in repr(settings)
