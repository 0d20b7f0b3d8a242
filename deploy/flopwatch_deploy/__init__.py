"""The parts put together on one machine: up, demo, the simulated cluster."""
