"""What is decided before the collector serves."""

import contextlib
import socket
from pathlib import Path

import pytest

from flopwatch import tls
from flopwatch.settings import SettingError
from flopwatch_collector import __main__ as start
from flopwatch_collector.config import CollectorSettings


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]"])
def test_loopback_without_a_token_may_be_served(host: str) -> None:
    start.require_protection(CollectorSettings(host=host), has_token=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "gpu-head", ""])
def test_beyond_loopback_a_token_or_insecure_is_needed(host: str) -> None:
    with pytest.raises(start.CannotStart, match="flopwatch token create --role agent"):
        start.require_protection(CollectorSettings(host=host), has_token=False)

    start.require_protection(CollectorSettings(host=host), has_token=True)
    start.require_protection(CollectorSettings(host=host, insecure=True), has_token=False)


def test_the_command_line_has_the_last_word(tmp_path: Path) -> None:
    file = tmp_path / "flopwatch.toml"
    file.write_text('[collector]\nport = 1\nhost = "10.0.0.1"\n[costs]\nprice_per_gpu_hour = 1.0\n')
    arguments = start.parser().parse_args(
        ["--config", str(file), "--port", "3", "--price", "2.5", "--insecure"]
    )

    settings = start.settings_of(arguments, {"FLOPWATCH_COLLECTOR_PORT": "2"})

    assert (settings.collector.host, settings.collector.port) == ("10.0.0.1", 3)
    assert settings.collector.insecure
    assert settings.costs.price_per_gpu_hour == 2.5


def test_a_wrong_option_is_refused_like_the_setting_it_stands_for() -> None:
    arguments = start.parser().parse_args(["--price", "-4"])

    with pytest.raises(SettingError, match=r"costs\.price_per_gpu_hour is -4\.0; allowed: 0 or more"):
        start.settings_of(arguments, {})


def test_a_port_in_use_is_said_with_the_way_out() -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as other:
        settings = CollectorSettings(port=other.getsockname()[1])

        with pytest.raises(
            start.CannotStart, match=rf"port {settings.port} on 127\.0\.0\.1 is in use.*--port"
        ):
            start.listening(settings)


def test_a_host_that_is_not_this_machines_is_named() -> None:
    with pytest.raises(
        SettingError, match=r"collector\.host is '203\.0\.113\.7'; allowed: an address of this"
    ):
        start.listening(CollectorSettings(host="203.0.113.7", port=0))


def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing, text = tmp_path / "missing.pem", tmp_path / "text.pem"
    text.write_text("no certificate")

    with pytest.raises(SettingError, match=r"collector\.tls_cert is .*missing\.pem"):
        tls.check("collector", missing, text)
    with pytest.raises(SettingError, match=r"collector\.tls_key is .*the key of tls_cert, both as PEM"):
        tls.check("collector", text, text)


def test_the_url_has_the_port_that_was_taken() -> None:
    with contextlib.closing(start.listening(CollectorSettings(port=0))) as listener:
        port = listener.getsockname()[1]

        assert port > 0
        assert start.url(CollectorSettings(port=0), listener) == f"http://127.0.0.1:{port}/"
