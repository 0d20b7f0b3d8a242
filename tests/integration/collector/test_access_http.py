"""Who may push, read and see the pages."""

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from fastapi import FastAPI
from starlette.responses import PlainTextResponse
from tests.integration.collector.batches import batch
from tests.integration.collector.serving import Client, Front, front, serving

from flopwatch.query import Query

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def mount(app: FastAPI, _: Query, prefix: str) -> None:
    async def page(_: object) -> PlainTextResponse:
        return PlainTextResponse("page")

    app.add_route(f"{prefix}{{rest:path}}", page)


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Front]:
    with front(tmp_path, mount=mount) as made:
        yield made


@pytest.fixture
def client(collector: Front) -> Iterator[Client]:
    with serving(collector.app) as asked:
        yield asked


def test_without_any_token_everything_is_open(client: Client) -> None:
    assert client.push(batch(at=time.time())).status == 200
    assert client.get("/api/v1/query/status").status == 200
    assert client.get("/ui/").body == b"page"


def test_with_a_token_pushing_needs_one(collector: Front, client: Client) -> None:
    collector.tokens.create("agent", "node")

    answer = client.push(batch(at=time.time()))

    assert (answer.status, answer.json()["error"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_an_unknown_token_is_401_and_is_not_echoed(collector: Front, client: Client) -> None:
    collector.tokens.create("agent", "node")
    client.token = "fw_guess"

    answer = client.push(batch(at=time.time()))

    assert answer.status == 401
    assert b"guess" not in answer.body


@pytest.mark.parametrize(
    ("role", "push", "read"),
    [("agent", 200, 403), ("viewer", 403, 200), ("operator", 403, 200), ("admin", 200, 200)],
)
def test_a_role_gives_its_rights_and_no_more(
    collector: Front, client: Client, role: str, push: int, read: int
) -> None:
    _, client.token = collector.tokens.create(role, "x")  # type: ignore[arg-type]

    assert client.push(batch(at=time.time())).status == push
    for path in ("/api/v1/query/status", "/api/v1/export/jobs.csv", "/api/v1/jobs", "/metrics", "/ui/"):
        assert client.get(path).status == read


def test_a_revoked_token_is_of_no_use_while_others_are(collector: Front, client: Client) -> None:
    collector.tokens.create("viewer", "other")
    token, client.token = collector.tokens.create("viewer", "x")
    before = client.get("/api/v1/query/status").status

    collector.tokens.revoke(token.token_id)

    assert (before, client.get("/api/v1/query/status").status) == (200, 401)


def test_only_the_hash_of_a_secret_is_kept(collector: Front, tmp_path: Path) -> None:
    _, secret = collector.tokens.create("agent", "node")

    assert len(secret) >= 43
    for file in tmp_path.glob("control.sqlite*"):
        assert secret.encode() not in file.read_bytes()


def test_probes_are_open_and_unknown_paths_stay_404(collector: Front, client: Client) -> None:
    collector.tokens.create("viewer", "x")

    assert client.get("/healthz").status == 200
    assert client.get("/readyz").status == 200
    assert client.get("/api/v1/nothing").status == 404


def test_many_guesses_from_one_address_are_slowed_down(collector: Front, client: Client) -> None:
    collector.tokens.create("viewer", "x")
    client.token = "fw_guess"

    answers = [client.get("/api/v1/query/status") for _ in range(60)]

    assert {answer.status for answer in answers[:40]} == {401}
    assert answers[-1].status == 429
    assert int(answers[-1].headers["retry-after"]) >= 1


def test_a_person_without_a_token_is_led_to_the_form_and_back(collector: Front, client: Client) -> None:
    _, secret = collector.tokens.create("viewer", "ada")

    led = client.get("/ui/jobs", Accept="text/html")
    form = client.get(led.headers["location"])
    signed = client.ask("POST", "/login", urlencode({"token": secret, "next": "/ui/jobs"}), FORM)
    cookie = signed.headers["set-cookie"]
    page = client.get("/ui/jobs", Cookie=cookie.partition(";")[0])

    assert (led.status, led.headers["location"]) == (303, "/login?next=/ui/jobs")
    assert b'value="/ui/jobs"' in form.body
    assert (signed.status, signed.headers["location"]) == (303, "/ui/jobs")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert (page.status, page.body) == (200, b"page")


def test_a_pages_own_requests_are_401_not_redirected(collector: Front, client: Client) -> None:
    collector.tokens.create("viewer", "x")

    answer = client.ask("POST", "/ui/_dash-update-component", "{}", {"Accept": "application/json"})

    assert answer.status == 401


def test_the_form_refuses_a_wrong_token_and_leads_nowhere_else(collector: Front, client: Client) -> None:
    _, secret = collector.tokens.create("viewer", "ada")

    wrong = client.ask("POST", "/login", urlencode({"token": "fw_wrong"}), FORM)
    away = client.ask("POST", "/login", urlencode({"token": secret, "next": "//evil.example/x"}), FORM)
    script = client.get("/login?next=%22%3E%3Cscript%3E")

    assert wrong.status == 401
    assert b"fw_wrong" not in wrong.body
    assert away.headers["location"] == "/ui/"
    assert b"<script" not in script.body
