import pytest
from starlette.datastructures import Headers
from tests.integration.collector.batches import MemoryControl

from flopwatch_collector.api.access import COOKIE, cookie_of, retry_after, secret_of
from flopwatch_collector.api.export import cell
from flopwatch_collector.api.tokens import RIGHTS, Tokens


@pytest.mark.parametrize(
    ("headers", "secret"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"authorization": "Bearer fw_1"}, "fw_1", id="bearer"),
        pytest.param({"authorization": "bearer   fw_1 "}, "fw_1", id="any case"),
        pytest.param({"authorization": "Basic fw_1"}, None, id="another scheme"),
        pytest.param({"authorization": "Bearer "}, None, id="empty"),
    ],
)
def test_the_secret_of_a_program_is_in_the_header(headers: dict[str, str], secret: str | None) -> None:
    assert secret_of(Headers(headers)) == secret


@pytest.mark.parametrize(
    ("header", "value"),
    [
        pytest.param("a=b; flopwatch_session=s3", "s3", id="cookie"),
        pytest.param("flopwatch_session=", None, id="empty cookie"),
        pytest.param("[]=;;==", None, id="broken cookie"),
    ],
)
def test_the_secret_of_a_person_is_in_the_cookie(header: str, value: str | None) -> None:
    assert cookie_of(Headers({"cookie": header}), COOKIE) == value


def test_a_secret_is_256_bits_and_found_only_by_itself() -> None:
    tokens = Tokens(MemoryControl(), lambda: 5.0)
    token, secret = tokens.create("viewer", "ada")
    tokens.create("agent", "node")

    assert len(secret.removeprefix("fw_")) == 43
    assert tokens.find(secret) == token
    assert tokens.find(secret + "x") is None
    assert tokens.find("\ud800") is None


def test_a_token_of_another_process_is_known_after_a_refresh() -> None:
    control = MemoryControl()
    here, there = Tokens(control), Tokens(control)
    _, secret = there.create("viewer", "ada")

    assert here.find(secret) is None
    here.refresh()
    assert here.find(secret) is not None


def test_a_revoked_token_stays_listed_and_is_not_found() -> None:
    tokens = Tokens(MemoryControl(), lambda: 9.0)
    token, secret = tokens.create("viewer", "ada")

    tokens.revoke(token.token_id)

    assert tokens.find(secret) is None
    assert not tokens.any_valid()
    assert [(each.name, each.revoked_seconds) for each in tokens.all()] == [("ada", 9.0)]


def test_no_reader_may_push_and_no_agent_may_read() -> None:
    assert RIGHTS["agent"] == {"ingest", "schedule"}
    assert "ingest" not in RIGHTS["viewer"] | RIGHTS["operator"]


@pytest.mark.parametrize(("seconds", "header"), [(0.01, "1"), (1.0, "1"), (1.2, "2"), (9.5, "10")])
def test_retry_after_is_whole_seconds_and_never_too_short(seconds: float, header: str) -> None:
    assert retry_after(seconds) == header


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(None, "", id="unknown"),
        pytest.param(0.0, 0.0, id="zero"),
        pytest.param(True, "true", id="flag"),
        pytest.param(-1.5, -1.5, id="negative number"),
        pytest.param("=1+1", "'=1+1", id="formula"),
        pytest.param("@x", "'@x", id="at sign"),
        pytest.param("plain", "plain", id="text"),
    ],
)
def test_a_cell_is_no_formula_and_unknown_is_empty(value: object, shown: object) -> None:
    assert cell(value) == shown
