"""Trainer logs: bytes to step records, by grammars that are data."""
