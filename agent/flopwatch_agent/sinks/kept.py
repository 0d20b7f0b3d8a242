"""Connections to the collector that are used again: with TLS a new one costs the collector more than a batch does."""

import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, ImproperConnectionState

CONNECT_SECONDS = 4.0


class PatientConnection(HTTPConnection):
    """Gives up early on a host that does not answer at all, late on one that is at work."""

    def connect(self) -> None:
        """Connect within ``CONNECT_SECONDS``; the answer may take the time that was given."""
        answer_seconds, self.timeout = self.timeout, CONNECT_SECONDS
        super().connect()
        self.sock.settimeout(answer_seconds)
        self.timeout = answer_seconds


class PatientSecureConnection(PatientConnection, HTTPSConnection):
    """The same over TLS."""


class _Kept:
    """The connection of the last request, and whether it can carry the next one."""

    def __init__(self) -> None:
        self._host = ""
        self._connection: HTTPConnection | None = None
        self._response: HTTPResponse | None = None

    def ask(self, request: urllib.request.Request, make: Callable[[], HTTPConnection]) -> HTTPResponse:
        """The answer to a request; asked once more when the collector had closed the connection meanwhile.

        Raises:
            OSError: it cannot be reached, or broke off.
            HTTPException: what it says is no answer.
        """
        connection = self._usable(request.host)
        if connection is not None:
            try:
                return self._sent(request, connection)
            except (ConnectionError, ImproperConnectionState):
                self.close()
        self._host, self._connection = request.host, make()
        return self._sent(request, self._connection)

    def close(self) -> None:
        """Use it no more."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._response = None

    def _usable(self, host: str) -> HTTPConnection | None:
        """The connection, when its last answer was read to the end and said that more may follow."""
        last = self._response
        if host != self._host or last is None or last.will_close or last.length != 0:
            self.close()
        return self._connection

    def _sent(self, request: urllib.request.Request, connection: HTTPConnection) -> HTTPResponse:
        headers = {name.title(): value for name, value in request.header_items()}
        data = request.data if isinstance(request.data, bytes) else None
        try:
            connection.request(request.get_method(), request.selector, data, headers)
            self._response = connection.getresponse()
        except (OSError, HTTPException):
            self.close()
            raise
        return self._response


class PlainHandler(urllib.request.HTTPHandler):
    """Opens plain connections that give up early, and keeps one."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = _Kept()

    def close(self) -> None:
        """Use no connection any more."""
        self._kept.close()

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        """Send a request."""
        return _answered(req, self._kept, lambda: PatientConnection(req.host, timeout=req.timeout))


class SecureHandler(urllib.request.HTTPSHandler):
    """The same over TLS; through a proxy each request has a connection of its own."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(context=context)
        self._tls = context
        self._kept = _Kept()

    def close(self) -> None:
        """Use no connection any more."""
        self._kept.close()

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        """Send a request."""
        if req.has_proxy():
            return self.do_open(PatientSecureConnection, req, context=self._tls)
        return _answered(
            req,
            self._kept,
            lambda: PatientSecureConnection(req.host, timeout=req.timeout, context=self._tls),
        )


def _answered(
    request: urllib.request.Request, kept: _Kept, make: Callable[[], HTTPConnection]
) -> HTTPResponse:
    """The answer, or the failure, as ``urllib`` passes it on."""
    try:
        response = kept.ask(request, make)
    except OSError as error:
        raise urllib.error.URLError(error) from error
    response.url = request.full_url
    response.msg = response.reason  # type: ignore[assignment]  # as urllib's own handlers do
    return response
