"""A mail server on loopback that takes every mail and keeps it."""

import contextlib
import email
import email.policy
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage


@dataclass
class MailBox:
    """What has arrived."""

    port: int = 0
    mails: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    refusing: bool = False


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    box: MailBox


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def say(self, text: str) -> None:
        self.wfile.write(text.encode() + b"\r\n")

    def handle(self) -> None:
        receivers: list[str] = []
        self.say("220 here")
        for line in self.rfile:
            word = line.strip().upper()
            if word == b"QUIT":
                self.say("221 bye")
                return
            if word == b"DATA":
                self.take(receivers)
                receivers = []
            elif word.startswith(b"RCPT"):
                receivers.append(line.decode().split("<")[1].split(">")[0])
                self.say("550 no" if self.server.box.refusing else "250 ok")
            else:
                self.say("250 ok")

    def take(self, receivers: list[str]) -> None:
        self.say("354 go on")
        lines = []
        for line in self.rfile:
            if line == b".\r\n":
                break
            lines.append(line[1:] if line.startswith(b"..") else line)
        parsed = email.message_from_bytes(b"".join(lines), policy=email.policy.default)
        assert isinstance(parsed, EmailMessage)
        self.server.box.mails.append((receivers, parsed))
        self.say("250 taken")


@contextlib.contextmanager
def mail_server() -> Iterator[MailBox]:
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.box = MailBox(port=server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server.box
        server.shutdown()
        thread.join(5)
