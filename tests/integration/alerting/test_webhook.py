import logging
from pathlib import Path
from typing import Any

import pytest

from flopwatch.settings import SettingError
from flopwatch_collector.alerting.delivery.channels import channels
from flopwatch_collector.alerting.delivery.posting import DeliveryFailed
from flopwatch_collector.alerting.delivery.webhook import Webhook, from_settings
from flopwatch_collector.config import NotifySettings

BODY = {"version": "4", "status": "firing", "text": "语言"}


def test_a_message_is_posted_as_json_with_its_delivery_id_and_token(receiver: Any, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0ken\n")
    channel = from_settings(NotifySettings(name="oncall", url=receiver.url, token_file=tmp_path / "token"))

    channel.send(BODY, "d1")

    (request,) = receiver.received
    assert request.body == BODY
    assert request.path == "/hooks/secret-token"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["Flopwatch-Delivery"] == "d1"
    assert request.headers["Authorization"] == "Bearer t0ken"


def test_the_address_may_be_in_a_file(receiver: Any, tmp_path: Path) -> None:
    (tmp_path / "url").write_text(receiver.url + "\n")

    from_settings(NotifySettings(url_file=tmp_path / "url")).send(BODY, "d1")

    assert len(receiver.received) == 1


@pytest.mark.parametrize(
    ("status", "permanent"),
    [(500, False), (503, False), (429, False), (401, False), (404, False), (400, True)],
)
def test_an_answer_that_is_not_2xx_is_a_failure(receiver: Any, status: int, permanent: bool) -> None:
    receiver.statuses = [status]

    with pytest.raises(DeliveryFailed, match=f"answered {status}") as caught:
        Webhook(name="w", url=receiver.url).send(BODY, "d1")

    assert caught.value.permanent is permanent


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_is_not_followed(receiver: Any, status: int) -> None:
    receiver.statuses = [status]
    receiver.location = receiver.url

    with pytest.raises(DeliveryFailed, match=f"answered {status}"):
        Webhook(name="w", url=receiver.url).send(BODY, "d1")

    assert len(receiver.received) == 1


def test_a_receiver_that_does_not_answer_fails_in_time(receiver: Any) -> None:
    receiver.delay_seconds = 1.0

    with pytest.raises(DeliveryFailed, match="no answer in time"):
        Webhook(name="w", url=receiver.url, timeout_seconds=0.1).send(BODY, "d1")


def test_a_receiver_that_is_not_there_fails_without_naming_the_address(receiver: Any) -> None:
    channel = Webhook(name="w", url="http://user:pa55@127.0.0.1:1/hooks/secret-token?key=abc")

    with pytest.raises(DeliveryFailed) as caught:
        channel.send(BODY, "d1")

    assert "refused" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_user_in_the_address_is_sent_as_basic_authorization(receiver: Any) -> None:
    url = receiver.url.replace("http://", "http://ann:p%40ss@")

    Webhook(name="w", url=url).send(BODY, "d1")

    assert receiver.received[0].headers["Authorization"] == "Basic YW5uOnBAc3M="


def test_the_privacy_form_has_neither_user_nor_path_nor_query() -> None:
    channel = Webhook(
        name="w", url="https://user:pa55@hooks.example.com:8443/services/T0/secret?key=abc", token="t"
    )

    assert channel.privacy_form == "https://hooks.example.com:8443/…"
    assert Webhook(name="w", url="https://hooks.example.com/").privacy_form == "https://hooks.example.com"
    assert "secret" not in repr(channel)
    assert "token" not in repr(channel)


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://127.0.0.1:9/x", True),
        ("http://127.8.8.8/x", True),
        ("http://[::1]:9/x", True),
        ("http://localhost/x", True),
        ("http://localhost.example.com/x", False),
        ("http://10.0.0.1/x", False),
        ("https://hooks.example.com/127.0.0.1", False),
    ],
)
def test_only_this_machine_is_loopback(url: str, loopback: bool) -> None:
    assert Webhook(name="w", url=url).loopback is loopback


@pytest.mark.parametrize(
    "url",
    ["ftp://example.com/s3cret", "hooks.example.com", "http://", "http://h:99999/s3cret", "http://h/ s3cret"],
)
def test_an_address_that_is_not_http_stops_the_start_with_the_settings_name(url: str) -> None:
    with pytest.raises(SettingError, match=r"notify\.oncall\.url") as caught:
        from_settings(NotifySettings(name="oncall", url=url))

    assert "s3cret" not in str(caught.value)


def test_a_channel_needs_one_address_and_a_name_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="either url or url_file"):
        from_settings(NotifySettings())
    with pytest.raises(SettingError, match=r"notify\.webhook\.url_file"):
        from_settings(NotifySettings(url_file=tmp_path / "absent"))
    with pytest.raises(SettingError, match=r"notify\.name"):
        channels((NotifySettings(url="http://a.example"), NotifySettings(url="http://b.example")))


def test_nothing_secret_is_logged(receiver: Any, caplog: pytest.LogCaptureFixture) -> None:
    receiver.statuses = [500]
    with caplog.at_level(logging.DEBUG), pytest.raises(DeliveryFailed):
        Webhook(name="w", url=receiver.url, token="t0ken").send(BODY, "d1")

    assert "secret-token" not in caplog.text
    assert "t0ken" not in caplog.text
