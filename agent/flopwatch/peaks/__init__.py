"""The tables of dense peaks."""
