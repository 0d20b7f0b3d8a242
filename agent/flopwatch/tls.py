"""A server's certificate and key, as two settings of its table: ``tls_cert`` and ``tls_key``."""

import ssl
from pathlib import Path

from flopwatch.settings import SettingError


def require_both(table: str, cert: Path | None, key: Path | None) -> None:
    """Both are given, or neither.

    Raises:
        SettingError: one is missing.
    """
    if (cert is None) != (key is None):
        raise SettingError(f"{table}.tls_key", str(key), "both tls_cert and tls_key, or neither")


def check(table: str, cert: Path | None, key: Path | None) -> None:
    """Refuse a certificate or key that cannot be used; without both there is nothing to refuse.

    Raises:
        SettingError: a file cannot be read, or they do not belong together.
    """
    if cert is None or key is None:
        return
    for name, path in (("tls_cert", cert), ("tls_key", key)):
        try:
            path.read_bytes()
        except OSError as error:
            raise SettingError(f"{table}.{name}", str(path), f"a readable file ({error.strerror})") from error
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=_refuse_encrypted)
    except ssl.SSLError as error:
        allowed = f"the key of tls_cert, both as PEM without a password ({error.reason})"
        raise SettingError(f"{table}.tls_key", str(key), allowed) from error


def _refuse_encrypted() -> str:
    """No password: a server that starts by itself has nobody to ask for one."""
    return ""
