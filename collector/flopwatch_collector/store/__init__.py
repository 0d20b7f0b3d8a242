"""The Store port, its engines, and the control state."""
