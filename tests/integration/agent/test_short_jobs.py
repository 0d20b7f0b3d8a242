"""Jobs that came and went leave no series and no memory behind."""

from pathlib import Path

import pytest
from tests.integration.agent.short_jobs import Node

from flopwatch_agent import log_finder, positions
from flopwatch_agent.sources import job_host, steps

BOUND = 20
WAVE, WAVES = 10, 16


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node whose agent's caches are as small as a test's number of jobs asks for."""
    monkeypatch.setattr(log_finder, "MAX_OUTPUTS", BOUND)
    monkeypatch.setattr(steps, "MAX_LEFT", BOUND)
    monkeypatch.setattr(positions, "MAX_KEPT", BOUND)
    # What is looked at now and then is looked at in every wave, however long one takes.
    monkeypatch.setattr(job_host, "READ_SECONDS", 0.0)
    monkeypatch.setattr(job_host, "FAMILY_SECONDS", 0.0)
    return Node(tmp_path)


def test_hundreds_of_short_jobs_leave_the_page_and_the_agent_s_tables_as_they_were(node: Node) -> None:
    node.look()
    empty = node.page()
    kept = []
    for _ in range(WAVES):
        node.begin(WAVE)
        node.look()
        node.look()
        running = node.page()
        assert running.count("flopwatch_job_gpu_info{") == WAVE
        assert set(node.live.values()) == {item.ref for item in node.taken.sightings}
        node.end()
        node.look()
        kept.append(node.kept())

    assert node.steps_seen == WAVE * WAVES * 8
    assert node.page() == empty
    # The first waves fill what has a bound; from then on nothing comes to it.
    early, late = max(kept[: WAVES // 2]), max(kept[WAVES // 2 :])
    assert late <= early + 2 * WAVE, str(kept)
