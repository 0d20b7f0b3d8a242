"""Store and compute to query answers."""
