"""Signing in to a dashboard of its own process, which stands before a real collector."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Browser, expect
from tests.fixtures.listening import Server
from tests.integration.dashboard.collector_pages import Site, site
from tests.integration.dashboard.conftest import looking

from flopwatch.settings import SettingError
from flopwatch_dashboard import forwarding
from flopwatch_dashboard.__main__ import main
from flopwatch_dashboard.client import HttpQuery
from flopwatch_dashboard.forwarding import Collector
from flopwatch_dashboard.standalone import signed_in

WAIT = 60_000
PAGE = {"accept": "text/html"}
PROXY = {"sign_in": {"trusted_proxies": ["127.0.0.0/8"], "proxy_user_header": "X-Forwarded-User"}}
SILENCE = {"matchers": [{"name": "alertname", "value": "NodeDown"}], "comment": "being repaired"}


def dashboard(url: str) -> Any:
    """The application before the collector at ``url``."""
    return signed_in(HttpQuery(url, None, 30.0), Collector(url, 30.0))


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("collector"), PROXY) as running:
        yield running


@pytest.fixture
def client(collector: Site) -> Iterator[TestClient]:
    collector.token("viewer", "somebody")
    with TestClient(dashboard(collector.url), base_url="http://pages.example") as made:
        yield made


def enter(client: TestClient, secret: str) -> Any:
    return client.post("/login", data={"token": secret, "next": "/ui/alerts"}, follow_redirects=False)


def guard(client: TestClient) -> dict[str, str]:
    return {"x-flopwatch-guard": str(client.cookies["flopwatch_guard"])}


def test_who_has_not_signed_in_is_led_to_the_collector_s_form_and_back(
    collector: Site, client: TestClient
) -> None:
    away = client.get("/ui/alerts?range=6h", headers=PAGE, follow_redirects=False)
    form = client.get(away.headers["location"])
    wrong = enter(client, "fw_wrong")
    right = enter(client, collector.token("operator", "ada"))
    page = client.get("/ui/alerts", headers=PAGE)

    assert (away.status_code, away.headers["location"]) == (303, "/login?next=/ui/alerts%3Frange%3D6h")
    assert 'name="token"' in form.text
    assert wrong.status_code == 401
    assert (right.status_code, right.headers["location"]) == (303, "/ui/alerts")
    assert page.status_code == 200
    assert client.get("/api/v1/whoami").json() == {
        "name": "ada", "role": "operator", "teams": [], "way": "session",
    }  # fmt: skip


def test_programs_are_told_and_the_pages_parts_are_for_those_who_signed_in(client: TestClient) -> None:
    asked = client.post("/ui/_dash-update-component", json={})

    assert asked.status_code == 401
    assert asked.json()["error"] == "unauthorized"
    assert client.get("/healthz").json() == {"ok": True}


def test_a_change_reaches_the_collector_with_the_person_s_name_and_needs_the_session_s_guard(
    collector: Site, client: TestClient
) -> None:
    enter(client, collector.token("operator", "ada"))
    body = {**SILENCE, "end_seconds": time.time() + 600}

    without = client.post("/api/v1/alerts/silences", json=body)
    elsewhere = client.post(
        "/api/v1/alerts/silences", json=body, headers={**guard(client), "origin": "https://evil.example"}
    )
    made = client.post(
        "/api/v1/alerts/silences", json=body, headers={**guard(client), "origin": "http://pages.example"}
    )
    lines = client.get("/api/v1/audit").json()["entries"]

    assert (without.status_code, elsewhere.status_code, made.status_code) == (403, 403, 200)
    line = next(one for one in lines if one["action"] == "POST /api/v1/alerts/silences")
    assert line["by"] == "ada"
    assert json.loads(line["subject"])["comment"] == "being repaired"


def test_a_viewer_changes_nothing_and_sees_their_team_s_jobs_only(
    collector: Site, client: TestClient
) -> None:
    enter(client, collector.token("viewer", "alan", ("nlp",)))

    refused = client.put("/api/v1/costs", json={"changes": {"own.pue": 1.3}}, headers=guard(client))
    alerts = client.get("/api/v1/query/alerts").json()["active"]

    assert refused.status_code == 403
    assert {one["rule"] for one in alerts if "job_id" in one["labels"]} == {"CkptSlow"}


def test_signing_out_holds_at_once(collector: Site, client: TestClient) -> None:
    enter(client, collector.token("viewer", "grace"))
    before = client.get("/ui/").status_code
    kept = "; ".join(f"{name}={value}" for name, value in client.cookies.items())

    out = client.post("/logout", follow_redirects=False)

    assert (before, out.status_code, out.headers["location"]) == (200, 303, "/login?ended=1")
    assert client.get("/ui/", headers={"cookie": kept}).status_code == 401


def test_nobody_names_themselves_in_a_proxy_s_header(client: TestClient) -> None:
    assert client.get("/api/v1/whoami", headers={"x-forwarded-user": "root"}).status_code == 401


def test_what_agents_push_is_not_handed_on(client: TestClient, collector: Site) -> None:
    bearer = {"authorization": f"Bearer {collector.token('admin', 'root')}"}

    assert client.post("/api/v1/ingest", json={}, headers=bearer).status_code in (404, 405)
    assert not forwarding.is_handed_on("/api/v1/leases")
    assert not forwarding.is_handed_on("/api/v1/auditors")
    assert not forwarding.is_handed_on("/login/elsewhere")


def test_a_body_of_more_than_a_mebibyte_is_refused(client: TestClient, collector: Site) -> None:
    bearer = {"authorization": f"Bearer {collector.token('admin', 'root')}"}

    answer = client.post("/api/v1/alerts/fitting", content=b"x" * ((1 << 20) + 1), headers=bearer)

    assert (answer.status_code, answer.text) == (413, "the body is larger than 1048576 bytes\n")


def test_before_a_collector_that_asks_nobody_to_sign_in_nothing_is_shown(tmp_path: Path) -> None:
    with site(tmp_path) as open_to_all, TestClient(dashboard(open_to_all.url)) as client:
        answers = [client.get(path) for path in ("/ui/", "/api/v1/query/status", "/login")]

    assert [one.status_code for one in answers] == [503, 503, 503]
    assert "flopwatch token create --role viewer" in answers[0].text


def test_without_a_collector_nobody_comes_in() -> None:
    with TestClient(dashboard("http://127.0.0.1:1")) as client:
        answer = client.get("/ui/", headers=PAGE)

    assert answer.status_code == 503
    assert "http://127.0.0.1:1/api/v1/whoami" in answer.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0", "--prometheus", "http://p:9090"], "over a Prometheus nobody signs in"),
        (["--host", "0.0.0.0"], "dashboard.sign_in is 'off'; allowed: auto or on beyond loopback"),
    ],
)
def test_beyond_loopback_it_is_not_open_by_mistake(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "flopwatch.toml"
    file.write_text('[dashboard]\nsign_in = "off"\n')

    with pytest.raises(SettingError, match=message):
        main(["--config", str(file), *arguments])


def test_each_reader_s_pages_show_what_the_collector_lets_them_see(collector: Site, browser: Browser) -> None:
    shown = {}
    server = Server(dashboard(collector.url)).start()
    try:
        for name, teams in (("ada", ()), ("alan", ("nlp",))):
            with looking(browser, server.url) as seen:
                page = seen.page
                page.set_default_timeout(WAIT)
                page.goto(f"{server.url}/ui/alerts?lang=en")
                page.fill("#token", collector.token("viewer", name, teams))
                page.click("form button")
                expect(page.locator("#person .who")).to_contain_text(name, timeout=WAIT)
                expect(page.locator("main")).to_contain_text("checkpoints take long", timeout=WAIT)
                shown[name] = "vit-g: 9 % of its steps" in page.inner_text("main")
                assert seen.complaints == []
    finally:
        server.stop()

    assert shown == {"ada": True, "alan": False}
