"""Rules, state, delivery."""
