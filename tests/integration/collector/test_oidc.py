"""Sign-in over an OpenID Connect provider that is a process of its own."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.integration.collector.serving import Answer, Client, front, serving
from tests.integration.collector.test_sign_in import pages

from flopwatch_collector.config_sign_in import SignInSettings

PROVIDER = Path(__file__).parents[2] / "fixtures" / "oidc_provider.py"


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    command = [sys.executable, str(PROVIDER), "flopwatch", "the secret"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


@pytest.fixture
def client(tmp_path: Path, issuer: str) -> Iterator[Client]:
    settings = SignInSettings(
        oidc_issuer=issuer, oidc_client_id="flopwatch", oidc_client_secret="the secret", default_role="none",
        operator_groups=("gpu-ops",), viewer_groups=("nlp-people",), team_groups={"nlp-people": "nlp"},
    )  # fmt: skip
    with front(tmp_path, mount=pages, sign_in=settings) as collector, serving(collector.app) as made:
        yield made


def at_provider(address: str, person: str) -> str:
    """The address that the provider leads back to, for a person who signs in there."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    connection.request("GET", f"{parts.path}?{parts.query}", headers={"X-Person": person})
    answer = connection.getresponse()
    connection.close()
    back = urlsplit(answer.headers["location"])
    return f"{back.path}?{back.query}"


def signed_in(client: Client, person: str) -> Answer:
    """The answer to the browser that comes back."""
    left = client.get("/login/oidc?next=/ui/%3Flang%3Dzh")
    assert left.status == 303
    pending = left.headers["set-cookie"].partition(";")[0]
    return client.get(at_provider(left.headers["location"], person), Cookie=pending)


def test_the_form_offers_the_provider_and_pages_lead_to_it(client: Client, issuer: str) -> None:
    led = client.get("/ui/", Accept="text/html")
    form = client.get(led.headers["location"])

    assert b'href="/login/oidc?next=%2Fui%2F"' in form.body
    assert b"Sign in with 127.0.0.1" in form.body


def test_leaving_asks_for_a_code_with_state_nonce_and_a_challenge(client: Client, issuer: str) -> None:
    left = client.get("/login/oidc")
    asked = parse_qs(urlsplit(left.headers["location"]).query)

    assert left.headers["location"].startswith(f"{issuer}/authorize?")
    assert (asked["response_type"], asked["code_challenge_method"]) == (["code"], ["S256"])
    assert asked["redirect_uri"] == [f"http://127.0.0.1:{client.port}/login/oidc/callback"]
    assert min(len(asked[name][0]) for name in ("state", "nonce", "code_challenge")) >= 20
    assert "HttpOnly" in left.headers["set-cookie"]


@pytest.mark.parametrize(("person", "role", "teams"), [("ada", "operator", []), ("grace", "viewer", ["nlp"])])
def test_whoever_the_provider_signs_in_has_the_role_and_teams_of_their_groups(
    client: Client, person: str, role: str, teams: list[str]
) -> None:
    back = signed_in(client, person)
    page = client.get("/ui/", Cookie=f"flopwatch_session={session_of(client, person)}").json()

    assert (back.status, back.headers["location"]) == (303, "/ui/?lang=zh")
    assert page == {"name": person, "role": role, "teams": teams, "can_leave": True}


def session_of(client: Client, person: str) -> str:
    """The secret of a fresh session."""
    return cookies_of(client, person)["flopwatch_session"].value


def cookies_of(client: Client, person: str) -> SimpleCookie:
    """The cookies of somebody who has just signed in."""
    left = client.get("/login/oidc")
    pending = left.headers["set-cookie"].partition(";")[0]
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=30)
    connection.request("GET", at_provider(left.headers["location"], person), headers={"Cookie": pending})
    answer = connection.getresponse()
    cookies = SimpleCookie("; ".join(answer.headers.get_all("set-cookie") or []))
    connection.close()
    return cookies


def test_signing_out_ends_the_session_at_the_provider_too_and_leads_back(client: Client, issuer: str) -> None:
    cookies = cookies_of(client, "ada")
    sent = "; ".join(f"{name}={cookies[name].value}" for name in ("flopwatch_session", "flopwatch_id"))

    out = client.ask("POST", "/logout", "", {"Cookie": sent})
    wait, _, address = out.headers["refresh"].partition("; url=")
    where = urlsplit(address)
    connection = http.client.HTTPConnection(where.netloc, timeout=30)
    connection.request("GET", f"{where.path}?{where.query}")
    told = json.loads(connection.getresponse().read())
    connection.close()

    assert (out.status, wait, address.partition("?")[0]) == (200, "0", f"{issuer}/logout")
    assert b"You have signed out." in out.body
    assert (told["ended"], told["client_id"]) == ("ada", "flopwatch")
    assert told["post_logout_redirect_uri"] == f"http://127.0.0.1:{client.port}/login?ended=1"
    assert cookies["flopwatch_id"]["path"] == "/logout"
    assert cookies["flopwatch_id"]["httponly"]
    assert client.get("/ui/", Cookie=sent).status == 401


def test_who_signed_in_otherwise_is_led_to_the_form_only(client: Client) -> None:
    out = client.ask("POST", "/logout", "", {"Cookie": "flopwatch_session=ended-long-ago"})

    assert (out.status, out.headers["location"]) == (303, "/login?ended=1")
    assert "refresh" not in out.headers


@pytest.mark.parametrize(
    "person", ["expired", "other-audience", "other-key", "wrong-nonce", "unsigned", "mallory"]
)
def test_a_token_that_is_not_right_signs_nobody_in(client: Client, person: str) -> None:
    back = signed_in(client, person)

    assert back.status == 403
    assert "flopwatch_session" not in back.headers.get("set-cookie", "")
    told = b"no group that may look" if person == "mallory" else b"did not sign you in"
    assert told in back.body


def test_an_answer_that_this_browser_did_not_ask_for_signs_nobody_in(client: Client) -> None:
    left = client.get("/login/oidc")
    other = client.get("/login/oidc").headers["set-cookie"].partition(";")[0]
    back = at_provider(left.headers["location"], "ada")

    assert client.get(back).status == 403
    assert client.get(back, Cookie=other).status == 403


def test_a_provider_that_does_not_answer_is_said(tmp_path: Path) -> None:
    settings = SignInSettings(oidc_issuer="http://127.0.0.1:1", oidc_client_id="flopwatch")
    with front(tmp_path, mount=pages, sign_in=settings) as collector, serving(collector.app) as client:
        left = client.get("/login/oidc")

    assert left.status == 403
    assert b"the provider does not answer" in left.body
