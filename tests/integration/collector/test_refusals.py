"""What the API of a whole collector refuses, route by route."""

import http.client
import json
from collections.abc import Iterator
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from tests.integration.collector.serving import Answer, Client
from tests.integration.dashboard.collector_pages import Site, site

JSON = {"Content-Type": "application/json"}
OF_AGENTS = {("POST", "/api/v1/ingest"), ("POST", "/api/v1/leases"), ("POST", "/api/v1/queue")}
ASKED_BY_POST = {("POST", "/api/v1/alerts/fitting")}
"""No change: whoever reads may ask."""
OF_TEAMS = ("/api/v1/query/", "/api/v1/export/", "/api/v1/whoami")
COSTS = "/api/v1/costs"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("collector")) as running:
        yield running


@pytest.fixture(scope="module")
def bearers(collector: Site) -> dict[str, dict[str, str]]:
    """The header of a token of each role."""
    roles = ("agent", "viewer", "operator", "admin")
    made = {role: collector.token(role, role) for role in roles}
    made["of nlp"] = collector.token("viewer", "alan", ("nlp",))
    return {name: {"Authorization": f"Bearer {secret}"} for name, secret in made.items()}


@pytest.fixture(scope="module")
def client(collector: Site) -> Iterator[Client]:
    made = Client(port=urlsplit(collector.url).port or 0)
    yield made
    made.close()


@pytest.fixture(scope="module")
def routes(client: Client, bearers: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Method, path with an item that is not there, and whether it takes a body."""
    paths = client.get("/api/v1/openapi.json", **bearers["admin"]).json()["paths"]
    found = [
        (method.upper(), path, "requestBody" in about)
        for path, methods in paths.items()
        for method, about in methods.items()
        if path.startswith("/api/v1/")
    ]
    assert len(found) >= 40
    return [(method, _filled(path), body) for method, path, body in found]


def _filled(path: str) -> str:
    parts = ("none" if part.startswith("{") else part for part in path.split("/"))
    return "/".join(part.replace("{name}", "jobs") for part in parts)


def test_no_route_answers_without_a_token(client: Client, bearers: Any, routes: Any) -> None:
    answers = {f"{m} {path}": client.ask(m, path, "{}", JSON) for m, path, _ in routes}

    assert {name: answer.status for name, answer in answers.items() if answer.status != 401} == {}
    assert {answer.json()["error"] for answer in answers.values()} == {"unauthorized"}


def test_an_agent_s_token_reads_and_changes_nothing_that_people_do(
    client: Client, bearers: Any, routes: Any
) -> None:
    asked = [(m, path) for m, path, _ in routes if (m, path) not in OF_AGENTS]
    answers = {f"{m} {path}": client.ask(m, path, "{}", {**JSON, **bearers["agent"]}) for m, path in asked}

    assert {name: answer.status for name, answer in answers.items() if answer.status != 403} == {}
    assert all("of role agent does not give the right to" in a.json()["message"] for a in answers.values())


def test_a_viewer_s_token_changes_and_pushes_nothing(client: Client, bearers: Any, routes: Any) -> None:
    asked = [(m, path) for m, path, _ in routes if m != "GET" and (m, path) not in ASKED_BY_POST]
    asked = [one for one in asked if one != ("POST", "/api/v1/alerts/rehearsal")]
    answers = {f"{m} {path}": client.ask(m, path, "{}", {**JSON, **bearers["viewer"]}) for m, path in asked}

    assert len(asked) >= 12
    assert {name: answer.status for name, answer in answers.items() if answer.status != 403} == {}


def test_a_team_s_viewer_is_told_what_they_see_where_a_route_is_of_all(
    client: Client, bearers: Any, routes: Any
) -> None:
    asked = [path for m, path, _ in routes if m == "GET" and not path.startswith(OF_TEAMS)]
    answers = {path: client.get(path, **bearers["of nlp"]) for path in asked}
    refused = {path: answer for path, answer in answers.items() if answer.status == 403}

    assert set(asked) - set(refused) == set()
    told = {answer.json()["message"] for answer in refused.values()}
    assert all("alan sees the jobs of nlp only" in one or "does not give the right" in one for one in told)


def test_a_browser_changes_nothing_without_its_session_s_guard(
    client: Client, collector: Site, bearers: Any, routes: Any
) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    entered = client.ask("POST", "/login", urlencode({"token": collector.token("admin", "root")}), form)
    cookie = SimpleCookie(entered.headers["set-cookie"])["flopwatch_session"].value
    session = {"Cookie": f"flopwatch_session={cookie}", **JSON}
    asked = [(m, path) for m, path, _ in routes if m != "GET"]
    answers = {f"{m} {path}": client.ask(m, path, "{}", session) for m, path in asked}

    assert {name: answer.status for name, answer in answers.items() if answer.status != 403} == {}
    assert all("needs the header x-flopwatch-guard" in a.json()["message"] for a in answers.values())


def test_a_body_of_more_than_four_mebibytes_is_refused_by_every_route(
    client: Client, bearers: Any, routes: Any
) -> None:
    large = b'{"comment": "' + b"x" * (4 << 20) + b'"}'
    asked = [(m, path) for m, path, takes in routes if takes and path != "/api/v1/ingest"]
    answers = [client.ask(m, path, large, {**JSON, **bearers["admin"]}) for m, path in asked]

    assert len(asked) >= 10
    assert {(answer.status, answer.json()["error"]) for answer in answers} == {(413, "too_large")}
    assert {answer.json()["message"] for answer in answers} == {"the body is larger than 4194304 bytes"}


def test_the_document_names_what_is_refused(client: Client, bearers: Any) -> None:
    paths = client.get("/api/v1/openapi.json", **bearers["admin"]).json()["paths"]
    found = {
        f"{method} {path}": ("requestBody" in about, set(about["responses"]))
        for path, methods in paths.items()
        for method, about in methods.items()
        if path.startswith("/api/v1/")
    }
    of_bodies = {"401", "403", "413", "422", "429", "500"}

    assert {name: told for name, (takes, told) in found.items() if takes and of_bodies - told} == {}
    assert {name for name, (takes, told) in found.items() if not takes and told & {"400", "413"}} == set()
    assert {name: told for name, (_, told) in found.items() if {"401", "403", "429", "500"} - told} == {}


def test_a_body_without_a_length_is_not_taken_beyond_the_limit_either(collector: Site, bearers: Any) -> None:
    pieces = (b"x" * (1 << 20) for _ in range(5))
    where = urlsplit(collector.url)
    connection = http.client.HTTPConnection(where.netloc, timeout=60)
    connection.request(
        "POST",
        "/api/v1/alerts/fitting",
        pieces,
        {**JSON, **bearers["admin"], "Transfer-Encoding": "chunked"},
        encode_chunked=True,
    )
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()

    assert (answer.status, told["error"]) == (413, "too_large")


def test_a_body_that_is_no_json_or_of_another_shape_is_refused_on_every_route(
    client: Client, bearers: Any, routes: Any
) -> None:
    admin = {**JSON, **bearers["admin"]}
    asked = [(m, path) for m, path, takes in routes if takes]
    shapes = {f"{m} {path}": client.ask(m, path, "[1]", admin) for m, path in asked}
    broken = {f"{m} {path}": client.ask(m, path, '{"comment": ', admin) for m, path in asked}

    assert len(asked) >= 9
    for answers in (shapes, broken):
        assert {name: a.status for name, a in answers.items() if a.status not in (404, 422)} == {}
        assert all(a.json()["message"] for a in answers.values())


def saved(client: Client, bearers: Any, body: dict[str, Any]) -> Answer:
    return client.ask("PUT", COSTS, json.dumps(body), {**JSON, **bearers["operator"]})


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"changes": {"own.pue": 0.5}, "comment": "x"}, ("costs.own.pue", "0.5", "1")),
        ({"changes": {"own.colour": 1}, "comment": "x"}, ("own.colour", "", "one of")),
        ({"costs": {"currency": 5}, "comment": "x"}, ("costs.currency", "5", "")),
        ({"comment": "x"}, ("changes", "both or neither", "either changes or costs")),
        (
            {"changes": {"own.pue": 1.2}, "costs": {}, "comment": "x"},
            ("changes", "both or neither", "either changes or costs"),
        ),
        ({"changes": {"own.pue": 1.2}}, ("comment", "", "required")),
        ({"changes": {"own.pue": 1.2}, "comment": ""}, ("comment", "", "at least 1")),
        ({"changes": {"own.pue": "much"}, "comment": "x"}, ("changes.own.pue", "much", "number")),
        ({"changes": {"own.pue": 1.2}, "comment": "x", "version": -1}, ("version", "-1", "equal to 0")),
        ({"changes": {"own.pue": 1.2}, "comment": "x", "why": 1}, ("why", "1", "not permitted")),
    ],
)
def test_costs_that_cannot_be_are_refused_by_field_value_and_what_is_allowed(
    client: Client, bearers: Any, body: dict[str, Any], told: tuple[str, str, str]
) -> None:
    answer = saved(client, bearers, body)

    assert answer.status == 422
    problem = answer.json()["fields"][0]
    assert told[0] in problem["field"]
    assert told[1] in problem["value"]
    assert told[2] in problem["allowed"]
    assert problem["allowed"] != ""
    assert client.get(COSTS, **bearers["viewer"]).json()["source"] == "settings"


def test_costs_made_from_an_older_version_are_409_and_there_is_nothing_to_withdraw_twice(
    client: Client, bearers: Any
) -> None:
    operator = bearers["operator"]
    nothing = client.ask("DELETE", COSTS, headers=operator)
    first = saved(client, bearers, {"changes": {"own.pue": 1.2}, "comment": "measured", "version": 0})
    late = saved(client, bearers, {"changes": {"own.pue": 1.4}, "comment": "guessed", "version": 0})
    back = client.ask("DELETE", f"{COSTS}?comment=wrong+after+all", headers=operator)
    again = client.ask("DELETE", COSTS, headers=operator)

    assert (nothing.status, nothing.json()["error"]) == (404, "not_found")
    assert (first.status, first.json()["version"], first.json()["costs"]["own"]["pue"]) == (200, 1, 1.2)
    assert (late.status, late.json()["error"]) == (409, "conflict")
    assert "look at the costs again" in late.json()["message"]
    assert (back.status, back.json()["source"]) == (200, "settings")
    assert (again.status, again.json()["error"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/v1/audit?from=20&to=10", "to"),
        ("/api/v1/audit?limit=0", "limit"),
        ("/api/v1/audit?by=a&by=b", "by"),
        ("/api/v1/jobs?limit=ten", "limit"),
        ("/api/v1/query/economy?overrides=own.pue", "overrides"),
        ("/api/v1/query/fleet?end=-1", "end"),
        ("/api/v1/report?format=docx", "format"),
        ("/api/v1/alerts/rules?seconds=0", "seconds"),
    ],
)
def test_a_wrong_parameter_is_named_on_other_routes_too(
    client: Client, bearers: Any, path: str, field: str
) -> None:
    answer = client.get(path, **bearers["admin"])

    assert answer.status == 422
    told = answer.json()["fields"][0]
    assert field in told["field"]
    assert told["allowed"]
