"""Which tests one of two workers runs, one after the other.

What starts agents stays with one worker, because agents see every process of the machine; what shares a server or a
browser stays with the other; unit tests go to whichever is free.
"""

from xdist.scheduler import LoadScopeScheduling

WITH_AGENTS = (
    "tests/e2e/",
    "tests/integration/agent/",
    "tests/integration/prometheus/",
    "tests/integration/trainers/",
)
"""Folders whose tests start agents, or jobs that agents would find."""


class ByRoom(LoadScopeScheduling):
    """Keeps the tests of a room together, in their order."""

    def _split_scope(self, nodeid: str) -> str:
        return room(nodeid)


def room(nodeid: str) -> str:
    """What a test shares with others; the test itself when it shares nothing."""
    if nodeid.startswith(WITH_AGENTS):
        return "agents"
    return "servers" if nodeid.startswith("tests/integration/") else nodeid
