"""Every setting and every metric stands in docs/agent.md."""

import dataclasses
from pathlib import Path

from flopwatch import metrics
from flopwatch_agent.config import AgentSettings

TEXT = (Path(__file__).parents[3] / "docs" / "agent.md").read_text()


def test_every_setting_is_documented() -> None:
    assert [f.name for f in dataclasses.fields(AgentSettings) if f"| `{f.name}` |" not in TEXT] == []


def test_every_metric_is_documented_with_its_help() -> None:
    assert [
        m.name for m in metrics.ALL if f"| `{m.name}` | {', '.join(m.labels)} | {m.help} |" not in TEXT
    ] == []
