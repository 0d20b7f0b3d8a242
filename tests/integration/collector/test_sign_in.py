"""Signing in, sessions, what a browser may change, teams, proxies, and the book of changes: over real HTTP."""

import json
import time
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from fastapi import FastAPI
from tests.integration.collector.serving import Answer, Client, Front, front, serving
from tests.integration.collector.static_query import ROW

from flopwatch import viewer
from flopwatch.query import Query
from flopwatch_collector.api.sessions import KIND as SESSION_KIND
from flopwatch_collector.api.sessions import Session, guard_of
from flopwatch_collector.config_sign_in import SignInSettings

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
SILENCE = "/api/v1/alerts/silences"
PROXY = SignInSettings(
    trusted_proxies=("127.0.0.0/8",),
    proxy_user_header="X-Forwarded-User",
    proxy_groups_header="X-Forwarded-Groups",
    operator_groups=("gpu-ops",),
    team_groups={"nlp-people": "nlp"},
)


def pages(api: FastAPI, _: Query, prefix: str) -> None:
    """A page that says who looks at it."""

    @api.get(prefix)
    async def page() -> dict[str, Any]:
        who = viewer.current()
        return {"name": who.name, "role": who.role, "teams": who.teams, "can_leave": who.can_leave}


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Front]:
    with front(tmp_path, mount=pages) as made:
        yield made


@pytest.fixture
def client(collector: Front) -> Iterator[Client]:
    with serving(collector.app) as made:
        yield made


def silence() -> str:
    matcher = {"name": "alertname", "value": "NodeDown"}
    return json.dumps(
        {"matchers": [matcher], "end_seconds": time.time() + 3_600, "comment": "being repaired"}
    )


def sign_in(client: Client, secret: str) -> dict[str, str]:
    """The headers with which the browser of somebody who has signed in asks."""
    answer = client.ask("POST", "/login", urlencode({"token": secret}), FORM)
    assert answer.status == 303
    cookie = SimpleCookie(answer.headers["set-cookie"])
    return {"Cookie": f"flopwatch_session={cookie['flopwatch_session'].value}"}


def guarded(client: Client, headers: dict[str, str]) -> dict[str, str]:
    """The same with the guard that the page reads from its other cookie."""
    secret = headers["Cookie"].partition("=")[2]
    return {**headers, **JSON, "X-Flopwatch-Guard": guard_of(secret)}


def test_a_page_knows_who_looks_and_what_they_may_do(collector: Front, client: Client) -> None:
    _, secret = collector.tokens.create("operator", "ada")

    page = client.get("/ui/", **sign_in(client, secret)).json()

    assert page == {"name": "ada", "role": "operator", "teams": [], "can_leave": True}


def test_without_any_token_everybody_may_do_everything_and_nobody_signs_in(client: Client) -> None:
    assert client.get("/ui/").json() == {"name": None, "role": "admin", "teams": [], "can_leave": False}
    assert client.ask("POST", SILENCE, silence(), JSON).status == 200


def test_the_secret_of_a_session_is_kept_as_its_hash_only(
    collector: Front, client: Client, tmp_path: Path
) -> None:
    _, secret = collector.tokens.create("viewer", "ada")
    cookie = sign_in(client, secret)["Cookie"].partition("=")[2]

    assert len(cookie) == 43
    assert secret not in cookie
    for file in tmp_path.glob("control.sqlite*"):
        assert cookie.encode() not in file.read_bytes()


def test_a_session_ends_with_its_token(collector: Front, client: Client) -> None:
    token, secret = collector.tokens.create("viewer", "ada")
    headers = sign_in(client, secret)
    before = client.get("/ui/", **headers).status

    collector.tokens.revoke(token.token_id)
    collector.tokens.create("viewer", "somebody else")

    assert (before, client.get("/ui/", **headers).status) == (200, 401)


def test_signing_out_ends_the_session_for_good(collector: Front, client: Client) -> None:
    _, secret = collector.tokens.create("viewer", "ada")
    headers = sign_in(client, secret)

    out = client.ask("POST", "/logout", "", {**headers, **FORM})

    assert (out.status, out.headers["location"]) == (303, "/login?ended=1")
    assert "Max-Age=0" in out.headers["set-cookie"]
    assert client.get("/ui/", **headers).status == 401


def test_a_session_that_was_not_used_or_is_too_old_has_ended(collector: Front, client: Client) -> None:
    _, secret = collector.tokens.create("viewer", "ada")
    ages = {"unused for 5 h": (5 * 3_600, 5 * 3_600), "begun 13 h ago": (13 * 3_600, 10)}
    found = {}

    for name, (begun, used) in ages.items():
        headers = sign_in(client, secret)
        kept = collector.control.load(SESSION_KIND, Session)
        newest = max(kept.values(), key=lambda one: one.created_seconds)
        old = {
            "session_id": newest.session_id, "name": "ada", "role": "viewer", "token_id": newest.token_id,
            "created_seconds": time.time() - begun, "seen_seconds": time.time() - used,
        }  # fmt: skip
        collector.control.save(SESSION_KIND, {newest.session_id: Session(**old)})  # type: ignore[arg-type]
        collector.doors.sessions.refresh()
        found[name] = client.get("/ui/", **headers).status

    assert found == {"unused for 5 h": 401, "begun 13 h ago": 401}


def test_an_operator_s_browser_changes_something_only_with_its_guard(
    collector: Front, client: Client
) -> None:
    _, secret = collector.tokens.create("operator", "ada")
    headers = sign_in(client, secret)
    other = sign_in(client, secret)

    without = client.ask("POST", SILENCE, silence(), {**headers, **JSON})
    foreign = client.ask("POST", SILENCE, silence(), {**guarded(client, headers), "Cookie": other["Cookie"]})
    right = client.ask("POST", SILENCE, silence(), guarded(client, headers))

    assert (without.status, foreign.status, right.status) == (403, 403, 200)
    assert "x-flopwatch-guard" in without.json()["message"]
    assert right.json()["created_by"] == "ada"


def test_a_viewer_s_browser_changes_nothing(collector: Front, client: Client) -> None:
    _, secret = collector.tokens.create("viewer", "grace")

    answer = client.ask("POST", SILENCE, silence(), guarded(client, sign_in(client, secret)))

    assert answer.status == 403
    assert answer.json()["message"] == "a token of role viewer does not give the right to operate"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"Sec-Fetch-Site": "cross-site"}, 403, id="another site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, 403, id="another host of the same site"),
        pytest.param({"Sec-Fetch-Site": "same-origin"}, 200, id="our page"),
        pytest.param({"Origin": "http://evil.example"}, 403, id="another origin"),
        pytest.param({"Origin": "null"}, 403, id="no origin to name"),
        pytest.param({"Origin": "http://127.0.0.1:PORT"}, 200, id="our origin"),
        pytest.param({}, 200, id="a program"),
    ],
)
def test_what_a_page_of_another_site_sends_is_refused_even_where_nobody_signs_in(
    client: Client, headers: dict[str, str], status: int
) -> None:
    sent = {name: value.replace("PORT", str(client.port)) for name, value in headers.items()}

    assert client.ask("POST", SILENCE, silence(), {**JSON, **sent}).status == status


def test_the_form_of_another_site_signs_nobody_in(collector: Front, client: Client) -> None:
    _, secret = collector.tokens.create("viewer", "ada")
    body = urlencode({"token": secret})

    answer = client.ask("POST", "/login", body, {**FORM, "Sec-Fetch-Site": "cross-site"})

    assert answer.status == 403
    assert "set-cookie" not in answer.headers


def test_many_tries_at_the_form_are_slowed_down(collector: Front, client: Client) -> None:
    _, secret = collector.tokens.create("viewer", "ada")

    answers = [client.ask("POST", "/login", urlencode({"token": f"fw_{n}"}), FORM) for n in range(40)]
    right = client.ask("POST", "/login", urlencode({"token": secret}), FORM)

    assert {answer.status for answer in answers[:10]} == {401}
    assert (answers[-1].status, right.status) == (429, 429)
    assert b"Too many attempts" in answers[-1].body
    assert int(answers[-1].headers["retry-after"]) >= 1


@pytest.mark.parametrize(
    ("path", "headers", "words"),
    [
        pytest.param("/login", {}, b"Access token", id="english"),
        pytest.param(
            "/login", {"Accept-Language": "zh-CN,zh;q=0.9"}, "访问令牌".encode(), id="browser's language"
        ),
        pytest.param(
            f"/login?next={quote('/ui/?lang=zh')}", {}, "访问令牌".encode(), id="the page's language"
        ),
        pytest.param("/login?lang=en", {"Accept-Language": "zh"}, b"Access token", id="chosen"),
    ],
)
def test_the_form_speaks_the_reader_s_language_without_a_script(
    client: Client, path: str, headers: dict[str, str], words: bytes
) -> None:
    answer = client.get(path, **headers)

    assert words in answer.body
    assert b"<script" not in answer.body
    assert answer.headers["content-security-policy"].startswith(
        "default-src 'none'; style-src 'unsafe-inline'"
    )


def test_the_form_is_in_the_theme_of_the_page_that_was_wanted(client: Client) -> None:
    assert b'data-theme="dark"' in client.get(f"/login?next={quote('/ui/?theme=dark')}").body


def test_where_somebody_wanted_to_go_is_kept_with_its_question(collector: Front, client: Client) -> None:
    _, secret = collector.tokens.create("viewer", "ada")

    led = client.get("/ui/jobs?range=6h&lang=zh", Accept="text/html")
    signed = client.ask(
        "POST", "/login", urlencode({"token": secret, "next": "/ui/jobs?range=6h&lang=zh"}), FORM
    )

    assert led.headers["location"] == "/login?next=/ui/jobs%3Frange%3D6h%26lang%3Dzh"
    assert signed.headers["location"] == "/ui/jobs?range=6h&lang=zh"


def test_an_agent_s_token_signs_nobody_in(collector: Front, client: Client) -> None:
    _, secret = collector.tokens.create("agent", "node")

    answer = client.ask("POST", "/login", urlencode({"token": secret}), FORM)

    assert answer.status == 403
    assert b"its role is for agents" in answer.body


def test_every_change_and_sign_in_is_written_down_with_who_what_and_when(
    collector: Front, client: Client
) -> None:
    _, secret = collector.tokens.create("operator", "ada")
    client.ask("POST", "/login", urlencode({"token": "fw_wrong"}), FORM)
    headers = sign_in(client, secret)
    client.ask("POST", SILENCE, silence(), guarded(client, headers))
    client.ask("POST", SILENCE, "{}", guarded(client, headers))

    entries = client.get("/api/v1/audit", **headers).json()["entries"]

    assert [(one["by"], one["action"]) for one in entries] == [
        ("ada", f"POST {SILENCE}"), ("ada", "signed in"), ("127.0.0.1", "sign-in refused"),
    ]  # fmt: skip
    assert "being repaired" in entries[0]["subject"]
    assert all(abs(one["seconds"] - time.time()) < 60 for one in entries)
    assert secret not in json.dumps(entries)


def test_the_book_of_changes_is_for_operators(collector: Front, client: Client) -> None:
    _, secret = collector.tokens.create("viewer", "grace")

    assert client.get("/api/v1/audit", **sign_in(client, secret)).status == 403


def test_a_token_of_a_team_sees_its_jobs_only(collector: Front, client: Client) -> None:
    _, client.token = collector.tokens.create("viewer", "ada", ("nlp",))
    before = client.get("/api/v1/query/jobs").json()["rows"]
    _, client.token = collector.tokens.create("viewer", "grace")

    whole = client.get("/api/v1/query/jobs").json()["rows"]

    assert ROW.account is None
    assert (before, [row["job_id"] for row in whole]) == ([], [ROW.job_id])


@pytest.mark.parametrize(
    "path", ["/api/v1/jobs", "/api/v1/report", "/api/v1/leases", "/metrics", "/api/v1/nodes"]
)
def test_what_is_of_all_jobs_is_not_told_to_a_team(collector: Front, client: Client, path: str) -> None:
    _, client.token = collector.tokens.create("viewer", "ada", ("nlp",))

    assert client.get(path).status in (403, 404)


def asked(client: Client, **headers: str) -> Answer:
    return client.get("/ui/", **headers)


def test_a_trusted_proxy_says_who_asks_with_which_role_and_teams(tmp_path: Path) -> None:
    with front(tmp_path, mount=pages, sign_in=PROXY) as collector, serving(collector.app) as client:
        ada = asked(client, **{"X-Forwarded-User": "ada", "X-Forwarded-Groups": "gpu-ops, all"}).json()
        grace = asked(client, **{"X-Forwarded-User": "grace", "X-Forwarded-Groups": "nlp-people"}).json()
        nobody = asked(client)
        change = {"X-Forwarded-User": "ada", "X-Forwarded-Groups": "gpu-ops", **JSON}
        without = client.ask("POST", SILENCE, silence(), change)
        right = client.ask("POST", SILENCE, silence(), {**change, "X-Flopwatch-Guard": "same-site"})

    assert (ada["name"], ada["role"], ada["can_leave"]) == ("ada", "operator", False)
    assert (grace["role"], grace["teams"]) == ("viewer", ["nlp"])
    assert nobody.status == 401
    assert (without.status, right.status, right.json()["created_by"]) == (403, 200, "ada")


def test_the_headers_of_anybody_else_sign_nobody_in(tmp_path: Path) -> None:
    elsewhere = SignInSettings(trusted_proxies=("10.0.0.0/8",), proxy_user_header="X-Forwarded-User")
    with front(tmp_path, mount=pages, sign_in=elsewhere) as collector, serving(collector.app) as client:
        assert asked(client, **{"X-Forwarded-User": "ada"}).status == 401
