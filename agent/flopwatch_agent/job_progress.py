"""What logs, configurations and the SDK said of one job so far."""

import dataclasses
from dataclasses import dataclass, field

from flopwatch.wire import Finding, RunFacts, StepRecord
from flopwatch_agent.hub_cache import is_model_name
from flopwatch_agent.sdk_messages import JobWords

MAX_RUN_FACTS = 24


@dataclass(slots=True)
class JobProgress:
    """What is known of one job beside its processes."""

    run: dict[tuple[str, str, int], RunFacts] = field(default_factory=dict)
    words: JobWords = field(default_factory=JobWords)
    has_steps: bool = False
    has_times: bool = False
    """Whether its log or the SDK gave the time of a step."""
    reason: str | None = None
    last_step: StepRecord | None = None
    findings: dict[str, Finding] = field(default_factory=dict)

    def add_run(self, facts: RunFacts) -> None:
        """Keep the newest word of each source on each launch."""
        facts = without_free_text(facts)
        self.run[facts.source, facts.origin, facts.session] = facts
        while len(self.run) > MAX_RUN_FACTS:
            del self.run[next(iter(self.run))]


def without_free_text(facts: RunFacts) -> RunFacts:
    """The facts without a model's name that is no plain one: configurations hold whole paths there, or anything."""
    name = (facts.shape or {}).get("name")
    if name is None or (isinstance(name, str) and is_model_name(name)):
        return facts
    shape = {key: value for key, value in (facts.shape or {}).items() if key != "name"}
    return dataclasses.replace(facts, shape=shape)
