"""Ports for servers that must be told theirs before they start."""

import itertools
import os
import socket

FIRST, LAST = 20_000, 32_000
"""Below the ports of outgoing connections: one of those could take a free port before its server does."""
STRIDE = 997
"""Test workers have neighbouring process ids: they begin far from each other."""
_start = os.getpid() * STRIDE % (LAST - FIRST)
_turn = itertools.count()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on, another one each time.

    Raises:
        OSError: all are taken.
    """
    for turn in itertools.islice(_turn, LAST - FIRST):
        port = FIRST + (_start + turn) % (LAST - FIRST)
        with socket.socket() as probe:
            # As the servers do it: a port whose last connections are still being closed counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"no port from {FIRST} to {LAST} is free")
