"""The agent of a training node: sources, the daemon, sinks."""
