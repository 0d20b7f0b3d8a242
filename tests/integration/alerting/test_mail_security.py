"""Mail over STARTTLS and TLS with login, against a server whose certificate is made here; throttling and outages."""

import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures.smtp_server import HOST, Behaviour, SmtpServer, certificate
from tests.integration.alerting.test_channels import alert, body, channel

from flopwatch.settings import SettingError
from flopwatch_collector.alerting.delivery.notifier import Notifier
from flopwatch_collector.alerting.delivery.outbox import OUTBOX_KIND, Channel, Entry
from flopwatch_collector.alerting.delivery.posting import DeliveryFailed
from flopwatch_collector.alerting.notices import Notice
from flopwatch_collector.store.control_sqlite import SqliteControl

Serve = Callable[[Behaviour], int]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """The certificate of the server, and what it encrypts with."""
    cert, key = certificate(tmp_path_factory.mktemp("certificates"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return cert, context


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts servers, and ends them."""
    with ExitStack() as stack:

        def started(behaviour: Behaviour) -> int:
            server = SmtpServer(behaviour)
            thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            return int(server.server_address[1])

        yield started


def mail(port: int, cert: Path | None, folder: Path, **changes: Any) -> Channel:
    secret = folder / "password"
    secret.write_text("s3cret\n")
    given: dict[str, Any] = {
        "kind": "smtp", "host": HOST, "port": port, "sender": "flopwatch@example.org", "to": ["ops@example.org"],
        "username": "flopwatch", "password_file": str(secret), "tls": "starttls", **changes,
    }  # fmt: skip
    if cert is not None:
        given["ca_file"] = str(cert)
    return channel(**given)


@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_a_mail_goes_encrypted_after_a_login(
    serve: Serve, made: tuple[Path, ssl.SSLContext], tmp_path: Path, tls: str
) -> None:
    behaviour = Behaviour(context=made[1], implicit=tls == "tls", login=("flopwatch", "s3cret"))
    port = serve(behaviour)

    mail(port, made[0], tmp_path, tls=tls).send(body(alert()), "d1")

    (taken,) = behaviour.mails
    assert (taken.encrypted, taken.user, taken.receivers) == (True, "flopwatch", ["ops@example.org"])
    assert taken.message["Subject"] == "[FIRING] warning MfuLow on a"
    assert behaviour.passwords_in_clear == 0


@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_a_server_whose_certificate_nobody_vouches_for_gets_neither_password_nor_mail(
    serve: Serve, made: tuple[Path, ssl.SSLContext], tmp_path: Path, tls: str
) -> None:
    behaviour = Behaviour(context=made[1], implicit=tls == "tls", login=("flopwatch", "s3cret"))
    port = serve(behaviour)

    with pytest.raises(DeliveryFailed) as caught:
        mail(port, None, tmp_path, tls=tls).send(body(alert()), "d1")

    assert not caught.value.permanent
    assert (behaviour.mails, behaviour.passwords_in_clear) == ([], 0)


def test_a_server_of_another_name_gets_nothing(serve: Serve, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "mail.example.org")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    behaviour = Behaviour(context=context, login=("flopwatch", "s3cret"))

    with pytest.raises(DeliveryFailed):
        mail(serve(behaviour), cert, tmp_path).send(body(alert()), "d1")

    assert (behaviour.mails, behaviour.passwords_in_clear) == ([], 0)


def test_a_server_that_offers_no_starttls_gets_no_password(
    serve: Serve, made: tuple[Path, ssl.SSLContext], tmp_path: Path
) -> None:
    behaviour = Behaviour(login=("flopwatch", "s3cret"))

    with pytest.raises(DeliveryFailed, match="offers no TLS"):
        mail(serve(behaviour), made[0], tmp_path).send(body(alert()), "d1")

    assert (behaviour.mails, behaviour.passwords_in_clear) == ([], 0)


def test_a_refused_login_is_tried_again_and_its_password_is_not_printed(
    serve: Serve, made: tuple[Path, ssl.SSLContext], tmp_path: Path
) -> None:
    behaviour = Behaviour(context=made[1], login=("flopwatch", "another"))

    with pytest.raises(DeliveryFailed, match=r"login refused \(535\)") as caught:
        mail(serve(behaviour), made[0], tmp_path).send(body(alert()), "d1")

    assert not caught.value.permanent
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"tls": "none", "host": "mail.example.org"}, "notify.w.tls"),
        ({"ca_file": "/nonexistent/ca.pem"}, "notify.w.ca_file"),
    ],
)
def test_what_would_send_a_password_in_the_clear_is_refused(
    tmp_path: Path, changes: dict[str, Any], name: str
) -> None:
    with pytest.raises(SettingError) as caught:
        mail(25, None, tmp_path, **changes)

    assert caught.value.name == name


def test_throttling_and_an_outage_lose_no_mail_and_repeat_none(
    serve: Serve, made: tuple[Path, ssl.SSLContext], tmp_path: Path
) -> None:
    behaviour = Behaviour(
        context=made[1], login=("flopwatch", "s3cret"), answers=["421 too many", "452 later", "250 taken"]
    )
    control = SqliteControl(tmp_path / "control.sqlite")
    notifier = Notifier([mail(serve(behaviour), made[0], tmp_path)], control, external_url="http://c")
    notifier.start()
    try:
        for number in (1, 2, 3):
            one = alert(number)
            notice = Notice(status="firing", group_labels={"alertname": f"R{number}"}, alerts=(one,))
            pending = notifier.prepare((notice,), time.time(), simulated=False)
            control.save_all({OUTBOX_KIND: pending.documents})
            notifier.hand_over(pending)
        deadline = time.monotonic() + 60.0
        while control.load(OUTBOX_KIND, Entry) and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        notifier.stop()
        control.close()

    told = "\n".join(one.message.get_content() for one in behaviour.mails)
    assert [told.count(f"llama-{number}: MFU") for number in (1, 2, 3)] == [1, 1, 1]
    assert behaviour.passwords_in_clear == 0
