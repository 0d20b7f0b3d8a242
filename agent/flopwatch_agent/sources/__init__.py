"""What the agent reads: one file a part of the node."""
