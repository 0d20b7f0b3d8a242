"""``flopwatch dashboard`` with a certificate: a real process on a real socket, before a collector without one."""

import http.client
import os
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.fixtures.smtp_server import HOST, certificate
from tests.integration.dashboard.collector_pages import Site, site
from tests.ports import free_port

from flopwatch.settings import SettingError
from flopwatch_dashboard.__main__ import main

START_SECONDS = 60.0
needs_openssl = pytest.mark.skipif(
    shutil.which("openssl") is None and not os.environ.get("FLOPWATCH_TEST_EVERYTHING"),
    reason="openssl is not installed",
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return certificate(tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("collector")) as running:
        yield running


def settings(folder: Path, cert: Path, key: Path, **others: str) -> Path:
    """A settings file with that pair."""
    file = folder / "flopwatch.toml"
    table = {"tls_cert": str(cert), "tls_key": str(key), **others}
    file.write_text("[dashboard]\n" + "".join(f'{name} = "{value}"\n' for name, value in table.items()))
    return file


class Secured:
    """A client that trusts one certificate."""

    def __init__(self, port: int, cert: Path) -> None:
        self._port = port
        self._context = ssl.create_default_context(cafile=str(cert))

    def ask(
        self, method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, http.client.HTTPMessage]:
        """Status and headers of the answer."""
        connection = http.client.HTTPSConnection(HOST, self._port, timeout=60, context=self._context)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.headers
        finally:
            connection.close()

    def await_start(self, process: "subprocess.Popen[bytes]") -> None:
        """Wait until it answers."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                assert self.ask("GET", "/healthz")[0] == 200
            except ConnectionRefusedError:
                assert process.poll() is None, "the dashboard ended"
                assert time.monotonic() < deadline, f"no answer within {START_SECONDS} s"
                time.sleep(0.1)
            else:
                return


@needs_openssl
def test_it_speaks_https_and_its_cookies_are_for_https_only(
    collector: Site, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = pair
    port = free_port()
    file = settings(tmp_path, cert, key, sign_in="on", collector_url=collector.url)
    client = Secured(port, cert)
    form = urlencode({"token": collector.token("viewer", "grace"), "next": "/ui/"})
    process = subprocess.Popen(
        [sys.executable, "-m", "flopwatch_dashboard", "--config", str(file), "--port", str(port)]
    )
    try:
        client.await_start(process)
        entered, told = client.ask(
            "POST", "/login", form, {"Content-Type": "application/x-www-form-urlencoded"}
        )
        cookies = told.get_all("set-cookie") or []
        session = next(
            one for one in cookies if one.startswith("flopwatch_session=") and "Max-Age=0" not in one
        )
        page, _ = client.ask(
            "GET", "/ui/", headers={"Cookie": session.partition(";")[0], "Accept": "text/html"}
        )
    finally:
        process.terminate()
        process.wait(timeout=START_SECONDS)

    assert (entered, page) == (303, 200)
    assert cookies
    assert [one for one in cookies if "; secure" not in one.lower()] == []


@needs_openssl
def test_a_pair_that_cannot_be_used_is_refused_before_anything_is_served(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = pair
    (tmp_path / "other").mkdir()
    _, another = certificate(tmp_path / "other")
    missing, text = tmp_path / "missing.pem", tmp_path / "text.pem"
    text.write_text("no certificate")
    wrong = {
        r"dashboard\.tls_cert is '.*missing\.pem'; allowed: a readable file \(No such file": (missing, key),
        r"dashboard\.tls_key is '.*missing\.pem'; allowed: a readable file \(No such file": (cert, missing),
        r"dashboard\.tls_key is '.*text\.pem'; allowed: the key of tls_cert, both as PEM": (text, text),
        r"dashboard\.tls_key is '.*localhost\.key'; allowed: the key of tls_cert": (cert, another),
    }

    for message, (one, two) in wrong.items():
        with pytest.raises(SettingError, match=message):
            main(["--config", str(settings(tmp_path, one, two))])


def test_a_certificate_without_a_key_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "flopwatch.toml"
    file.write_text('[dashboard]\ntls_cert = "cert.pem"\n')

    with pytest.raises(
        SettingError, match=r"dashboard\.tls_key is 'None'; allowed: both tls_cert and tls_key"
    ):
        main(["--config", str(file)])


@needs_openssl
def test_a_key_under_a_password_is_refused_and_not_asked_for(pair: tuple[Path, Path], tmp_path: Path) -> None:
    cert, key = pair
    locked = tmp_path / "locked.pem"
    subprocess.run(
        ["openssl", "pkey", "-in", str(key), "-aes256", "-passout", "pass:secret", "-out", str(locked)],
        check=True,
        capture_output=True,
    )

    with pytest.raises(
        SettingError, match=r"dashboard\.tls_key is '.*locked\.pem'; .*PEM without a password"
    ):
        main(["--config", str(settings(tmp_path, cert, locked))])
