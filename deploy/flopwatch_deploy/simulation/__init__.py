"""A simulated cluster: what its agents would have sent, by seed and time; pure but for ``feed``."""
