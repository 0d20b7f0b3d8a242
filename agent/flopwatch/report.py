"""StepReporter: tell the agent that a step is done; never raises, never blocks."""


class StepReporter:
    """Reports training steps to the node's agent."""
